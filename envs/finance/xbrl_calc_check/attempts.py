"""Solutions of one instance, right and wrong, as tool calls made from the right and the faulty files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core import ToolCall
from ...parts.xbrl import FactKey
from .faults import Fault
from .filing import Filing
from .render import render

FOLDER = "filing"
_FORGED = """printf '{"reward": 1.0, "passed": true}' | tee reward.json > filing/verdict.json"""
_SUBMIT = ToolCall(tool="submit", arguments={})


def shell(command: str) -> ToolCall:
    """One call of the shell."""
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 120})


def validate(filing: Filing) -> str:
    """The command of the brief."""
    return f"arelleCmdLine --internetConnectivity offline --validate --calc c11r --file {FOLDER}/{filing.entry}"


def oracle(right: Filing, faulty: Filing, document: str) -> list[ToolCall]:
    """Read the statements, see what Arelle says, mend line by line, look again, submit."""
    edits = edits_between(render(faulty), render(right))
    reading = [shell(f"cat {document}"), shell(f"cat {FOLDER}/{faulty.entry}"), shell(validate(faulty))]
    return [*reading, *edits, shell(validate(right)), _SUBMIT]


def alternatives(right: Filing) -> dict[str, Sequence[ToolCall]]:
    """The right filing written anew: facts in another order, contexts under other names."""
    files = render(right, shuffled=True)
    return {"written_anew": [*(_write(name, text) for name, text in files.items()), _SUBMIT]}


def mutants(right: Filing, faulty: Filing, faults: Sequence[Fault]) -> dict[str, Sequence[ToolCall]]:
    """What makes Arelle content without being right, and what stops short."""
    touched = {key for fault in faults for key in fault.keys}
    now = render(faulty)
    entry, calculation = faulty.entry, f"{faulty.stem}_cal.xml"
    loose = render(replace(faulty, facts=tuple(fact._replace(decimals="-9") for fact in faulty.facts)))
    without = render(replace(right, facts=tuple(fact for fact in right.facts if right.key(fact) not in touched)))
    found: dict[str, list[ToolCall]] = {
        "wrong_facts_deleted": [_write(entry, without[entry]), _write(calculation, without[calculation])],
        "calculations_removed": [_write(calculation, render(replace(faulty, arcs=()))[calculation])],
        "decimals_loosened": [_write(entry, loose[entry])],
        "totals_forced": [_write(entry, render(_forced(faulty))[entry])],
        "other_fact_lost": [*edits_between(now, render(right)), _lose(right, touched)],
        "forged_reward": [shell(_FORGED)],
    }
    if len(faults) > 1:
        found["one_fault_left"] = edits_between(now, render(_all_but_one(right, faulty, faults)))
    return {name: [*calls, _SUBMIT] for name, calls in found.items()}


def _forced(filing: Filing) -> Filing:
    """Every total is made the sum of what is filed below it, items being taken for right."""
    values = {(fact.concept, fact.context): int(fact.value) for fact in filing.facts if fact.decimals == "-3"}
    for _ in range(4):
        for parent, context in list(values):
            below = [arc for arc in filing.arcs if arc.parent == parent and (arc.child, context) in values]
            if below:
                values[parent, context] = sum(values[arc.child, context] * arc.weight for arc in below)
    facts = tuple(
        fact._replace(value=str(values[fact.concept, fact.context]))
        if fact.decimals == "-3" and fact.unit == filing.currency
        else fact
        for fact in filing.facts
    )
    return replace(filing, facts=facts)


def _lose(right: Filing, touched: set[FactKey]) -> ToolCall:
    """A fact that was right goes as well."""
    fact = next(fact for fact in right.facts if right.key(fact) not in touched)
    pattern = f"{right.prefix}:{fact.concept} contextRef=.{fact.context}."
    return shell(f"sed -i '/<{pattern}/d' {FOLDER}/{right.entry}")


def _all_but_one(right: Filing, faulty: Filing, faults: Sequence[Fault]) -> Filing:
    """The right filing with the last fault, found by its facts or arcs, still in it."""
    last = faults[-1]
    arcs = [arc for arc in right.arcs if arc[:3] not in last.arcs]
    arcs += [arc for arc in faulty.arcs if arc[:3] in last.arcs]
    kept = [fact for fact in right.facts if right.key(fact) not in last.keys]
    kept += [fact for fact in faulty.facts if faulty.key(fact) in last.keys]
    contexts = faulty.contexts if last.kind == "period" else right.contexts
    if last.kind == "period":
        kept = list(right.facts)
    return replace(right, arcs=tuple(arcs), facts=tuple(kept), contexts=contexts)


def edits_between(before: Mapping[str, str], after: Mapping[str, str]) -> list[ToolCall]:
    """Edits that turn the lines of `before` into those of `after`, each of a text that occurs once."""
    calls: list[ToolCall] = []
    for name, text in before.items():
        lines, wanted = text.splitlines(), after[name].splitlines()
        matcher = difflib.SequenceMatcher(a=lines, b=wanted, autojunk=False)
        # from the end, so that what stands above an edit is still as it was
        for tag, first, last, start, end in reversed(matcher.get_opcodes()):
            if tag != "equal":
                calls.append(_edit(name, lines, (first, last), wanted[start:end]))
                lines[first:last] = wanted[start:end]
    return calls


def _edit(name: str, lines: Sequence[str], span: tuple[int, int], new: Sequence[str]) -> ToolCall:
    first, last = span
    text = "\n".join(lines)
    # lines that go take their neighbour along, or an empty one would stay
    while first == last or (not new and (first, last) == span) or text.count("\n".join(lines[first:last])) != 1:
        if first == 0:
            last += 1
        else:
            first -= 1
    head, tail = lines[first : span[0]], lines[span[1] : last]
    old, text = "\n".join(lines[first:last]), "\n".join([*head, *new, *tail])
    return ToolCall(tool="edit", arguments={"path": f"{FOLDER}/{name}", "old": old, "new": text})


def _write(name: str, text: str) -> ToolCall:
    return shell(f"cat > {FOLDER}/{name} <<'END_OF_FILE'\n{text}END_OF_FILE")
