"""Hold a filing against the right one: each fault by itself, all else as it was, and Arelle without a complaint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core import Check, Verdict
from ...parts.xbrl import FactKey, FactValue, Link
from ...parts.xbrl import Filing as Read
from .faults import Fault
from .filing import Filing
from .render import SUMMATION, role_uri

Said = Mapping[FactKey, tuple[FactValue, ...]]


def grade(right: Filing, faults: Sequence[Fault], given: Read, read: Read) -> Verdict:
    """`given` is what Arelle read of the files as the agent got them, `read` of those handed in."""
    if read.failure:
        return Verdict.of(Check(name="loads", score=0.0, gate=True, evidence=read.failure))
    said, now = right.said(), _sorted(read.facts)
    touched = {key for fault in faults for key in fault.keys}
    gates = [
        _gate("loads", [], f"{len(read.facts)} different facts"),
        _gate("right facts kept", _lost(said, now, touched), "every fact that was right is as it was"),
        _gate("nothing invented", _invented(said, now, touched, read), "no fact of anything else"),
        _gate("taxonomy kept", _moved(right, faults, given, read), "schema and links as they were"),
    ]
    checks = [_fault_check(index, fault, right, said, now, read) for index, fault in enumerate(faults, 1)]
    complaints = [message for message in read.messages if not message.startswith("[info]")] if read.codes else []
    clean = Check(
        name="calculation 1.1",
        score=0.0 if read.codes else 1.0,
        weight=0.5,
        evidence="; ".join([f"{len(read.codes)} complaints", *complaints[:2]]) if read.codes else "Arelle is content",
    )
    return Verdict.of(*gates, *checks, clean)


def _sorted(facts: Said) -> dict[FactKey, tuple[FactValue, ...]]:
    return {key: tuple(sorted(values)) for key, values in facts.items()}


def _gate(name: str, wrong: Sequence[str], fine: str) -> Check:
    evidence = f"{len(wrong)} wrong: {'; '.join(wrong[:3])}" if wrong else fine
    return Check(name=name, score=0.0 if wrong else 1.0, gate=True, evidence=evidence)


def _lost(said: Said, now: Said, touched: set[FactKey]) -> list[str]:
    return [
        f"{words(key)} was {_values(values)}, is {_values(now.get(key, ()))}"
        for key, values in sorted(said.items())
        if key not in touched and now.get(key) != values
    ]


def _invented(said: Said, now: Said, touched: set[FactKey], read: Read) -> list[str]:
    new = [words(key) for key in sorted(now) if key not in said and key not in touched]
    return [*new, *(f"{name}, of another entity or namespace, or nil" for name in read.strangers)]


def _moved(right: Filing, faults: Sequence[Fault], given: Read, read: Read) -> list[str]:
    touched = {(role_uri(right, role), *ends) for fault in faults for role, *ends in fault.arcs}
    before, after = ({_plain(link) for link in one.links if link[1:4] not in touched or link[0] != SUMMATION}
                     for one in (given, read))  # fmt: skip
    moved = [f"lost {_link(link)}" for link in sorted(before - after)]
    moved += [f"new {_link(link)}" for link in sorted(after - before)]
    moved += [f"element changed: {concept[0]}" for concept in sorted(given.concepts ^ read.concepts)]
    return moved


def _plain(link: Link) -> Link:
    """The order of a calculation says nothing."""
    return (*link[:5], *link[6:]) if link[0] == SUMMATION else link


def _link(link: Link) -> str:
    return f"{link[0].rpartition('/')[2]} {link[2]} to {link[3]} in {link[1].rpartition('/')[2]}"


def _fault_check(index: int, fault: Fault, right: Filing, said: Said, now: Said, read: Read) -> Check:
    wrong = [
        f"{words(key)} is {_values(now.get(key, ()))}, not {_values(said.get(key, ()))}"
        for key in fault.keys
        if _distinct(now.get(key, ())) != _distinct(said.get(key, ()))
    ]
    for role, parent, child in fault.arcs:
        want = {str(arc.weight) for arc in right.arcs if arc[:3] == (role, parent, child)}
        ends = (SUMMATION, role_uri(right, role), parent, child)
        has = sorted(link[4] for link in read.links if link[:4] == ends)
        if has != sorted(want):
            wrong.append(f"{child} in {parent} of {role} weighs {has or 'nothing'}, not {sorted(want) or 'nothing'}")
    return Check(
        name=f"fault {index}: {fault.kind}", score=0.0 if wrong else 1.0, evidence="; ".join(wrong[:3]) or "repaired"
    )


def _distinct(values: tuple[FactValue, ...]) -> set[FactValue]:
    """What was filed wrongly twice may be taken out, or be made to say the same."""
    return set(values)


def words(key: FactKey) -> str:
    """A key, for evidence."""
    members = "".join(f" {member}" for _, member in key.dimensions)
    return f"{key.concept} {key.period}{members} {key.unit.rpartition(':')[2]}"


def _values(values: tuple[FactValue, ...]) -> str:
    return " and ".join(f"{value} (decimals {decimals})" for value, decimals in values) or "not filed"
