"""Certification: run the gates on an environment, and write what they found into its folder.

An environment's word is not taken for it. A red gate says which level, which seed and what; a sandbox that cannot be
had or is lost is no finding, and raises. What a certificate of the same environment has already shown is not shown
again: a run that was cut short goes on where it stopped, and a new gate is tried alone.
"""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from metier.envs.core import ConfigError, Json, SandboxBackend
from metier.envs.entry import Entry
from metier.envs.registry import get, suggest
from metier.images import digest as image_digest

from ..grading import secret_fingerprint
from ..prepare import Preparer
from ..sandbox import open_backend
from .bench import Bench, Cell, ends
from .certificate import Certificate, GateReport, load, save
from .digest import environment_digest
from .gates import GATES, Gate
from .status import Status, certificate_status

FIRST_SEED = 7_000_000
"""Certification's own seeds: nobody trains or is ranked on them."""
_SAMPLE = 60


async def certify(
    env_id: str,
    *,
    levels: Sequence[int] | None = None,
    seeds: Sequence[int] = (FIRST_SEED,),
    backend: SandboxBackend,
    progress: Callable[[str], None] | None = None,
    options: Mapping[str, Json] | None = None,
    gates: Sequence[str] | None = None,
    before: Certificate | None = None,
    keep: Callable[[Certificate], None] | None = None,
) -> Certificate:
    """Run the gates and give the certificate, which is not written.

    Args:
        env_id: the environment.
        levels: all of them by default; only with all of them, and all gates, can the certificate be valid.
        seeds: at every level.
        backend: where the sandboxes come from.
        progress: takes a line at a time.
        options: the family's options.
        gates: names of gates; all by default.
        before: an earlier certificate: gates that are green in it are kept, where it is of exactly this environment,
            these levels, seeds, options and backend.
        keep: takes the certificate so far after each gate, so that nothing is lost when the run is cut short.

    Raises:
        ConfigError: unknown id, level, option or gate.
        SandboxError: no sandbox could be had.
    """
    entry = get(env_id)
    chosen = sorted({entry.check_level(level) for level in levels} if levels is not None else range(entry.levels))
    running = _chosen_gates(gates)
    if not chosen or not seeds:
        raise ConfigError(f"{env_id}: certification needs at least one level and one seed")
    bench = Bench(
        entry=entry,
        backend=backend,
        preparer=Preparer(backend),
        options=dict(options or {}),
        progress=progress,
    )
    cells = [Cell(level=level, seed=seed) for level in chosen for seed in seeds]
    whole = len(running) == len(GATES) and len(chosen) == entry.levels and not options
    empty = Certificate(
        env_id=env_id,
        valid=False,
        environment_digest=environment_digest(entry),
        image=entry.image,
        image_digest=image_digest(entry.image),
        backend=backend.name,
        levels=tuple(chosen),
        seeds=tuple(seeds),
        secret_fingerprint=secret_fingerprint(),
        made_at=_now(),
        envelope_s={},
        gates=(),
    )
    known = _kept(before, empty) if whole else {}
    reports: list[GateReport] = []
    certificate = empty
    for number, gate in enumerate(running, start=1):
        report = known.get(gate.name)
        if report is not None and report.version >= gate.version:
            bench.say(f"[{number}/{len(running)}] {gate.name}: green before, kept")
        else:
            report = await _report(bench, gate, cells, f"[{number}/{len(running)}]")
        reports.append(report)
        certificate = _so_far(empty, bench, reports, before if known else None, whole=whole)
        if keep is not None:
            keep(certificate)
    return certificate


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _so_far(
    empty: Certificate, bench: Bench, reports: Sequence[GateReport], before: Certificate | None, *, whole: bool
) -> Certificate:
    seconds = {part: round(statistics.median(values), 3) for part, values in sorted(bench.timings_s.items())}
    envelope = {str(level): taken for level, taken in bench.envelopes.items()}
    return empty.model_copy(
        update={
            "valid": whole and len(reports) == len(GATES) and all(report.green for report in reports),
            "made_at": _now(),
            "envelope_s": {**(before.envelope_s if before else {}), **seconds},
            "envelope": envelope or (before.envelope if before else {}),
            "gates": tuple(reports),
        }
    )


def _kept(before: Certificate | None, now: Certificate) -> dict[str, GateReport]:
    """The green reports of an earlier certificate of the same circumstances."""
    same = ("env_id", "environment_digest", "image_digest", "backend", "levels", "seeds", "secret_fingerprint")
    if before is None or any(getattr(before, name) != getattr(now, name) for name in same):
        return {}
    return {report.name: report for report in before.gates if report.green}


def _chosen_gates(names: Sequence[str] | None) -> list[Gate]:
    known = {gate.name: gate for gate in GATES}
    for name in names or ():
        if name not in known:
            raise ConfigError(f"unknown gate {name!r}{suggest(name, list(known))}; there are {', '.join(known)}")
    return list(GATES) if names is None else [known[name] for name in names]


async def _report(bench: Bench, gate: Gate, cells: Sequence[Cell], number: str) -> GateReport:
    began = time.monotonic()
    findings = await gate.check(bench, ends(cells) if gate.ends_only else cells)
    reds = tuple(finding for finding in findings if not finding.ok)
    report = GateReport(
        name=gate.name,
        version=gate.version,
        claim=gate.claim,
        green=bool(findings or gate.may_be_empty) and not reds,
        tried=len(findings),
        reds=reds,
        seconds=round(time.monotonic() - began, 1),
        evidence={
            f"level {one.level} seed {one.seed} {one.what}": one.evidence[:200] for one in findings[:_SAMPLE] if one.ok
        },
    )
    bench.say(f"{number} {gate.name}: {'green' if report.green else 'RED'}, {report.tried} tried, {report.seconds} s")
    for red in reds:
        bench.say(f"  RED level {red.level} seed {red.seed} {red.what}: {red.evidence}")
    return report


async def certify_all(
    env_ids: Sequence[str],
    *,
    seeds: int = 1,
    backend: str = "auto",
    progress: Callable[[str], None] | None = None,
    force: bool = False,
    levels: Sequence[int] | None = None,
    gates: Sequence[str] | None = None,
) -> list[Certificate]:
    """Certify each and write its certificate; nothing is written of a part of the levels or gates.

    One that is valid already, by as many seeds, is left as it is unless `force`; one that is not goes on from what it
    has shown.

    Raises:
        ConfigError: an unknown id, level, gate or backend, before anything runs.
        SandboxError: no sandbox could be had.
    """
    entries = [get(env_id) for env_id in env_ids]
    _chosen_gates(gates)
    for entry in entries:
        for level in levels or ():
            entry.check_level(level)
    chosen = range(FIRST_SEED, FIRST_SEED + seeds)
    certificates: list[Certificate] = []
    async with open_backend(backend) as opened:
        for entry in entries:
            if levels or gates:
                certificate = await certify(
                    entry.id,
                    seeds=chosen,
                    backend=opened,
                    progress=progress,
                    levels=levels or None,
                    gates=gates or None,
                )
            else:
                certificate = await _certified(entry, opened, chosen, progress, force)
            certificates.append(certificate)
    return certificates


async def _certified(
    entry: Entry,
    backend: SandboxBackend,
    seeds: Sequence[int],
    progress: Callable[[str], None] | None,
    force: bool,
) -> Certificate:
    say = progress or (lambda _: None)
    before = None if force else _readable(entry)
    if before is not None and set(before.seeds) >= set(seeds) and certificate_status(entry) is Status.VALID:
        say(f"{entry.id}: valid already, of {before.made_at}, {len(before.seeds)} seed(s); --force does it again")
        return before
    began = time.monotonic()
    certificate = await certify(
        entry.id,
        seeds=seeds,
        backend=backend,
        progress=progress,
        before=before,
        keep=lambda so_far: save(entry, _with_rates(entry, so_far)),
    )
    reds = ", ".join(gate.name for gate in certificate.gates if not gate.green)
    seconds = time.monotonic() - began
    say(f"{entry.id}: {'certified' if certificate.valid else f'RED: {reds}'}, {seconds:.0f} s")
    return _with_rates(entry, certificate)


def _with_rates(entry: Entry, certificate: Certificate) -> Certificate:
    """With the solve rates of the one that it replaces: an id stands for the same instances."""
    replaced = _readable(entry)
    return certificate.model_copy(update={"solve_rates": replaced.solve_rates}) if replaced else certificate


def _readable(entry: Entry) -> Certificate | None:
    try:
        return load(entry)
    except ConfigError:
        return None
