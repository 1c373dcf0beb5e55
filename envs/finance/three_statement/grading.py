"""Hold a recalculated workbook against the host's own model: each line, in every period of every case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ...core import Check, Verdict
from ...parts.spreadsheet import Recalculated, Result, Scenario
from .conventions import Conventions
from .figures import Company, forecast
from .layout import statement_parts
from .lines import Part

TOLERANCE = 0.05
"""In thousands; a circle that is iterated to 0.001 stays well within it."""
TYPED_OVER = 10_000_000.0
"""What someone types over the last total of assets."""
_CHECK = "balance_check"
_WEIGHTS = {Part.INCOME: 1.0, Part.BALANCE: 1.0, Part.CASH: 1.0, Part.SCHEDULE: 0.5}

Expected = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """The cases: the workbook as it was handed in, then under hidden companies, then with a total typed over."""

    scenarios: tuple[Scenario, ...]
    expected: tuple[Expected, ...]
    """Of all but the last."""


def exam(on: Conventions, given: Company, hidden: Sequence[Company]) -> Exam:
    """The scenarios, and what they must give."""
    inputs = [_inputs(company) for company in hidden]
    typed = (("total_assets", on.periods - 1, TYPED_OVER),)
    scenarios = [Scenario(inputs={}), *(Scenario(inputs=one) for one in inputs)]
    scenarios.append(Scenario(inputs=inputs[0], overwrites=typed))
    return Exam(scenarios=tuple(scenarios), expected=tuple(forecast(on, company) for company in (given, *hidden)))


def _inputs(company: Company) -> dict[str, tuple[float, ...]]:
    past = {f"hist_{name}": values for name, values in company.accounts.items()}
    return {**past, **company.assumptions}


def reads(on: Conventions) -> dict[str, int]:
    """Every graded line → its number of cells."""
    return {line.name: on.periods for _, rows in statement_parts(on) for line in rows}


def grade(
    on: Conventions, exam: Exam, result: Recalculated, *, broken: Set[str] = frozenset(), row: str = ""
) -> Verdict:
    """Checks for each statement; where `row` was to be repaired, for it and for what hung on it, the rest a gate."""
    inputs = {name for scenario in exam.scenarios for name in scenario.inputs}
    if wrong := [f"{name} {why}" for name, why in result.wrong.items() if name in inputs]:
        return Verdict.of(_gate(f"{len(wrong)} names of inputs are wrong: {'; '.join(wrong[:3])}"))
    if result.failure or len(result.runs) != len(exam.scenarios):
        return Verdict.of(_gate(result.failure or "it was not recalculated"))
    opened = _gate("")
    faults = {name: _fault(name, exam, result) for name in reads(on)}
    if row:
        kept = [name for name in faults if name not in broken]
        rest = [name for name in faults if name in broken and name != row]
        return Verdict.of(
            opened,
            _share("kept", kept, faults, gate=True),
            _share("row", [row], faults, weight=2.0),
            *([_share("what hangs on it", rest, faults)] if rest else []),
        )
    parts = [
        _share(part.lower(), [line.name for line in rows if line.name != _CHECK], faults, weight=_WEIGHTS[Part(part)])
        for part, rows in statement_parts(on)
    ]
    balances, check = _balances(exam, result), _check_moves(result)
    if sum(map(bool, faults.values())) * 2 > len(faults):
        # what balances on wrong figures shows nothing
        few = "most lines are wrong, so it says nothing"
        balances, check = (replace(one, score=0.0, evidence=few) for one in (balances, check))
    return Verdict.of(opened, *parts, balances, check)


def _gate(why: str) -> Check:
    return Check(name="workbook", score=0.0 if why else 1.0, gate=True, evidence=why or "opened and recalculated")


def _fault(name: str, exam: Exam, result: Recalculated) -> str:
    """What is wrong with a line, or nothing."""
    if name in result.wrong:
        return f"{name} {result.wrong[name]}"
    for case, (run, expected) in enumerate(zip(result.runs, exam.expected, strict=False)):
        for period, (seen, want) in enumerate(zip(run[name], expected[name], strict=True), 1):
            if not _near(seen, want):
                typed = result.constants.get(name, 0)
                where = "as handed in" if case == 0 else f"under hidden case {case}"
                note = f" ({typed} of its cells hold no formula)" if typed else ""
                return f"{name} {where}, period {period}: {_shown(seen)}, not {want:.2f}{note}"
    return ""


def _near(seen: Result, want: float) -> bool:
    return isinstance(seen, float) and abs(seen - want) <= TOLERANCE


def _shown(seen: Result) -> str:
    return f"{seen:.2f}" if isinstance(seen, float) else repr(seen)


def _share(
    name: str, lines: Sequence[str], faults: Mapping[str, str], *, weight: float = 1.0, gate: bool = False
) -> Check:
    wrong = [faults[line] for line in lines if faults[line]]
    score = 1.0 - len(wrong) / len(lines) if lines else 1.0
    evidence = f"{len(lines) - len(wrong)} of {len(lines)} lines right"
    if wrong:
        evidence += f"; {'; '.join(wrong[:3])}"
    return Check(name=name, score=score, weight=weight, gate=gate, evidence=evidence)


def _balances(exam: Exam, result: Recalculated) -> Check:
    """Assets equal equity and liabilities in every case, with assets that follow the case."""

    def check(why: str) -> Check:
        return Check(name="balances", score=0.0 if why else 1.0, weight=0.5, evidence=why or "in every case and period")

    both = ("total_assets", "total_equity_and_liabilities")
    if missing := [name for name in both if name in result.wrong]:
        return check(f"{missing[0]} {result.wrong[missing[0]]}")
    for case, run in enumerate(result.runs[:-1]):
        for assets, claims in zip(*(run[name] for name in both), strict=True):
            if not isinstance(assets, float) or not isinstance(claims, float) or abs(assets - claims) > TOLERANCE:
                return check(f"case {case}: assets {_shown(assets)}, claims {_shown(claims)}")
        if case and _same(run["total_assets"], result.runs[0]["total_assets"]):
            return check(f"case {case}: assets are what they were before its inputs were typed in")
    return check("")


def _same(left: Sequence[Result], right: Sequence[Result]) -> bool:
    return all(
        isinstance(a, float) and isinstance(b, float) and abs(a - b) < 1.0 for a, b in zip(left, right, strict=True)
    )


def _check_moves(result: Recalculated) -> Check:
    """With a total of assets typed over, the balance check shows the gap."""

    def check(why: str) -> Check:
        return Check(name="check is live", score=0.0 if why else 1.0, weight=0.25, evidence=why or "it shows the gap")

    for name in (_CHECK, "total_assets", "total_equity_and_liabilities"):
        if name in result.wrong:
            return check(f"{name} {result.wrong[name]}")
    for case, before in enumerate(result.runs[:-1]):
        if wrong := [seen for seen in before[_CHECK] if not _near(seen, 0.0)]:
            return check(f"case {case}: it shows {_shown(wrong[0])}")
    run = result.runs[-1]
    claims, shown = run["total_equity_and_liabilities"][-1], run[_CHECK][-1]
    if not isinstance(claims, float) or not _near(shown, TYPED_OVER - claims):
        return check(
            f"with {TYPED_OVER:g} typed over total_assets, claims are {_shown(claims)}, the check {_shown(shown)}"
        )
    return check("")
