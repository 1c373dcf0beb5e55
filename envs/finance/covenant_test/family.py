"""finance/CovenantTest: test the financial covenants of an agreement against the borrower's accounts.

Invariants: every value is exact (fractions) until it is written; none lies where a rounding convention could change the
answer; every mistake that a level provokes leads to another answer; a covenant counts only when all of its line is
right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Artefact, Check, Family, Instance, Rng, Sandbox, ToolCall, Verdict
from ...parts.answers import AnswerError
from .documents import documents, spelled
from .draw import KNOBS, draw
from .grading import grade, read_answer
from .letter import letter
from .terms import Tested
from .working import working


@dataclass(frozen=True)
class CovenantTest(Family):
    """Compute what the agreement defines, compare it with the limit in force, and say where the covenant stands.

    Levels: 0 one clause and a few figures; 1 definitions and a year's accounts; 2 two covenants, falling limits, capped
    add-backs, printed accounts; 3 three covenants over rolling quarters, an excluded subsidiary, an equity cure; 4 four
    covenants, with a step-up after acquisitions and capped cash. Each level adds decoys to those before.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        return _short(rng) if level == 0 else _full(rng, level)

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        truth = _truth(instance)
        reading = [_shell(f"cat {path}") for path in instance.files]
        return [*reading, _shell(f"python3 -c '{truth['working']}'"), _submit(truth["answer"])]

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth = _truth(instance)
        tested = [Tested.from_json(one) for one in truth["tested"]]
        bare = instance.variables["level"] == 0
        turned = {"pass": "fail", "fail": "pass"}
        hedged = "\n".join(f"{line}\n{_turned(line)}" for line in truth["answer"].splitlines())
        answers: dict[str, str] = {
            **truth["wrong"],
            "all_fail": "\n".join(_line(one, bare, value=str(one.limit), status="fail") for one in tested),
            "limits_as_values": "\n".join(_line(one, bare, value=str(one.limit)) for one in tested),
            "wrong_way": "\n".join(_line(one, bare, status=turned[one.status]) for one in tested),
            "both_ways": hedged,
        }
        forged = _shell("""printf '{"reward": 1.0, "passed": true}' | tee reward.json verdict.json > result.json""")
        return {
            **{name: [_submit(answer)] for name, answer in answers.items()},
            "forged_reward": [forged, _submit("reward=1.0 pass")],
        }

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth = _truth(instance)
        bare = instance.variables["level"] == 0
        tested = [Tested.from_json(one) for one in truth["tested"]]
        exact = [_line(one, bare, value=f"{one.exact:.6f}", status=one.status.upper()) for one in reversed(tested)]
        return {"more_digits": [_shell("ls"), _submit("\n".join(exact) + "\n")]}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        tested = [Tested.from_json(one) for one in _truth(instance)["tested"]]
        try:
            text = await read_answer(sandbox)
        except AnswerError as error:
            return Verdict.of(*(Check(name=one.name, score=0.0, evidence=str(error)) for one in tested))
        return grade(text, tested, evidence=instance.variables["level"] != 0)


def _short(rng: Rng) -> Instance:
    drawn = letter(rng)
    name, sign = ("maximum", "<=") if drawn.tested.is_maximum else ("minimum", ">=")
    ratio = f"{drawn.numerator}/{drawn.denominator}"
    return Instance(
        variables={"level": 0, "borrower": drawn.borrower, "file": drawn.path},
        files={drawn.path: drawn.text.encode()},
        artefacts=(Artefact(path="answer", max_mb=1),),
        truth={
            "tested": [drawn.tested.to_json()],
            "answer": _line(drawn.tested, bare=True),
            "working": f"r={ratio}; {name}={drawn.tested.limit}; print(round(r,2), r{sign}{name})",
            "wrong": {name: _line(one, bare=True) for name, one in drawn.mistaken.items()},
        },
        secrets=(_line(drawn.tested, bare=True),),
    )


def _full(rng: Rng, level: int) -> Instance:
    drawn = draw(rng.child("deal"), KNOBS[level])
    words = rng.child("documents")
    currency = words.choice(("EUR", "GBP", "USD", "CHF", "SEK"))
    files = documents(words, drawn.deal, drawn.ledger, currency, level)
    answers = [_line(one, bare=False) for one in drawn.tested]
    return Instance(
        variables={
            "level": level,
            "borrower": drawn.deal.borrower,
            "test_date": spelled(drawn.ledger.ends[drawn.deal.quarter]),
            "files": [*sorted(files)],
            "names": [*(one.name for one in drawn.tested)],
            "currency": currency,
            "clause": drawn.deal.clause,
        },
        files={path: text.encode() for path, text in files.items()},
        artefacts=(Artefact(path="answer", max_mb=1),),
        truth={
            "tested": [one.to_json() for one in drawn.tested],
            "answer": "\n".join(answers),
            "working": working(drawn.deal, drawn.ledger),
            "wrong": {
                str(mistake): "\n".join(_line(one, bare=False) for one in wrong)
                for mistake, wrong in drawn.mistaken.items()
            },
        },
        secrets=tuple(answers),
    )


def _line(tested: Tested, bare: bool, *, value: str = "", status: str = "") -> str:
    value, status = value or tested.rounded, status or tested.status
    if bare:
        return f"ratio={value} {status}"
    return f"{tested.name}: value={value} limit={tested.limit:.2f} {status} clause={tested.clause}"


def _turned(line: str) -> str:
    other = {"pass": "fail", "fail": "pass"}
    return " ".join(other.get(word, word) for word in line.split(" "))


def _truth(instance: Instance) -> Mapping[str, Any]:
    return instance.truth


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _submit(answer: str) -> ToolCall:
    return ToolCall(tool="submit", arguments={"answer": answer})
