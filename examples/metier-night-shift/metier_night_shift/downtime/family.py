"""nightshift/DowntimeReport: minutes of downtime of each service in a month, from a log of outages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from metier.envs.core import Artefact, Check, Family, Instance, Rng, Sandbox, ToolCall, Verdict

SERVICES = ("auth", "billing", "cdn", "dns", "mail", "search", "storage", "vpn", "wiki")
Outage = tuple[str, int, int]
"""Service, first minute and end, counted from the month's beginning; negative before it."""


def merged(spans: Sequence[tuple[int, int]], end: int | None) -> int:
    """The minutes that the spans cover, inside [0, end) where there is an end.

    Example:
        >>> merged([(0, 10), (5, 20), (-30, 2), (95, 200)], 100)
        25
    """
    total, reached = 0, 0 if end is not None else -(10**9)
    for start, stop in sorted(spans):
        start, stop = max(start, reached), stop if end is None else min(stop, end)
        if stop > start:
            total += stop - start
            reached = stop
    return total


def answer(minutes: Mapping[str, int]) -> str:
    """As the report is submitted."""
    return "\n".join(f"{name}={count}" for name, count in minutes.items())


def said(calls: Mapping[str, int]) -> list[ToolCall]:
    """Submitting a report."""
    return [ToolCall(tool="submit", arguments={"answer": answer(calls)})]


@dataclass(frozen=True)
class DowntimeReport(Family):
    """Levels: 0 outages apart from each other; 1 overlapping and nested ones; 2 also across the month's ends."""

    def generate(self, rng: Rng, level: int) -> Instance:
        first = datetime(2020 + rng.integer(0, 9), rng.integer(1, 12), 1)
        length = (first.replace(day=28) + timedelta(days=4)).replace(day=1) - first
        end = length.days * 1440
        outages: list[Outage] = []
        for name in sorted(rng.sample(SERVICES, 3 + level)):
            outages += _outages(rng.child(name), name, level, end)
        log = "".join(
            f"{name},{_time(first, start)},{_time(first, stop)}\n" for name, start, stop in rng.shuffled(outages)
        )
        names = sorted({name for name, *_ in outages})
        spans = {name: [(start, stop) for who, start, stop in outages if who == name] for name in names}
        return Instance(
            variables={"month": first.strftime("%B %Y")},
            files={"outages.csv": ("service,start,end\n" + log).encode()},
            artefacts=(Artefact(path="answer", max_mb=1),),
            truth={
                "minutes": {name: merged(each, end) for name, each in spans.items()},
                "summed": {name: sum(stop - start for start, stop in each) for name, each in spans.items()},
                "longest": {name: max(stop - start for start, stop in each) for name, each in spans.items()},
                "inclusive": {name: merged(each, end) + len(each) for name, each in spans.items()},
            },
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        look = ToolCall(tool="shell", arguments={"command": "sort outages.csv"})
        return [look, *said(_part(instance, "minutes"))]

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        minutes = _part(instance, "minutes")
        first, *_ = minutes
        found = {
            "the longest outage only": said(_part(instance, "longest")),
            "both ends counted": said(_part(instance, "inclusive")),
            "hours instead of minutes": said({name: count // 60 for name, count in minutes.items()}),
            "one service forgotten": said({name: count for name, count in minutes.items() if name != first}),
            "a service twice, one of them right": said({**minutes, f"{first} ": minutes[first] + 1}),
        }
        if _part(instance, "summed") != minutes:
            found["overlaps counted twice"] = said(_part(instance, "summed"))
        return found

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        lines = answer(dict(reversed(_part(instance, "minutes").items())))
        write = ToolCall(tool="shell", arguments={"command": f"cat > answer <<'END'\n{lines}\nEND"})
        return {"written, in another order": [write, ToolCall(tool="submit")]}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        try:
            text = (await sandbox.read("/workspace/answer", max_bytes=10_000)).decode("utf-8", "replace")
        except ConnectionError:
            raise
        except (OSError, ValueError) as error:
            return Verdict.of(Check(name="report", score=0.0, gate=True, evidence=f"no report: {error}"))
        lines = [line.partition("=") for line in text.split("\n") if line.strip()]
        minutes = _part(instance, "minutes")
        names = [name.strip() for name, *_ in lines]
        shape = Check(
            name="one line for each service",
            score=float(sorted(names) == sorted(minutes)),
            gate=True,
            evidence=f"{len(lines)} lines for {len(minutes)} services",
        )
        reported = {name.strip(): value.strip() for name, _, value in lines}
        checks = [
            Check(
                name=name, score=float(reported.get(name) == str(count)), evidence=f"{reported.get(name, 'none')[:20]}"
            )
            for name, count in minutes.items()
        ]
        return Verdict.of(shape, *checks)


def _part(instance: Instance, name: str) -> dict[str, int]:
    part = instance.truth[name]
    assert isinstance(part, dict)
    return {key: int(str(value)) for key, value in part.items()}


def _time(first: datetime, minute: int) -> str:
    return (first + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%MZ")


def _outages(rng: Rng, name: str, level: int, end: int) -> list[Outage]:
    """Two to four apart from each other; above level 0 some that overlap them, above level 1 some across the ends."""
    slots = rng.sample(range(1, end // 4000), rng.integer(2, 4))
    made = [(name, slot * 4000 + rng.integer(0, 999), slot * 4000 + rng.integer(1300, 2600)) for slot in slots]
    if level >= 1:
        _, start, stop = made[0]
        made += [(name, start + 70, stop - 130), (name, stop - 45, stop + rng.integer(60, 900))]
    if level >= 2:
        made += [(name, -rng.integer(20, 900), rng.integer(15, 700)), (name, end - rng.integer(9, 90), end + 61)]
    return made
