"""Certification: run the gates on an environment, and write what they found into its folder.

An environment's word is not taken for it. A red gate says which level, which seed and what; a sandbox that cannot be
had or is lost is no finding, and raises.
"""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from metier.envs.core import ConfigError, Json, SandboxBackend
from metier.envs.registry import get, suggest
from metier.images import digest as image_digest

from ..grading import secret_fingerprint
from ..prepare import Preparer
from ..sandbox import open_backend
from .bench import Bench, Cell
from .certificate import Certificate, GateReport, save
from .digest import environment_digest
from .gates import GATES, Gate

FIRST_SEED = 7_000_000
"""Certification's own seeds: nobody trains or is ranked on them."""
_SAMPLE = 40


async def certify(
    env_id: str,
    *,
    levels: Sequence[int] | None = None,
    seeds: Sequence[int] = (FIRST_SEED,),
    backend: SandboxBackend,
    progress: Callable[[str], None] | None = None,
    options: Mapping[str, Json] | None = None,
    gates: Sequence[str] | None = None,
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

    Raises:
        ConfigError: unknown id, level, option or gate.
        SandboxError: no sandbox could be had.
    """
    entry = get(env_id)
    chosen = [entry.check_level(level) for level in levels] if levels is not None else list(range(entry.levels))
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
    cells = [Cell(level=level, seed=seed) for level in sorted(set(chosen)) for seed in seeds]
    digest = environment_digest(entry)
    reports = [await _report(bench, gate, cells) for gate in running]
    whole = len(running) == len(GATES) and len(set(chosen)) == entry.levels and not options
    return Certificate(
        env_id=env_id,
        valid=whole and all(report.green for report in reports),
        environment_digest=digest,
        image=entry.image,
        image_digest=image_digest(entry.image),
        backend=backend.name,
        levels=tuple(sorted(set(chosen))),
        seeds=tuple(seeds),
        secret_fingerprint=secret_fingerprint(),
        made_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        envelope_s={part: round(statistics.median(values), 3) for part, values in sorted(bench.timings_s.items())},
        gates=tuple(reports),
    )


def _chosen_gates(names: Sequence[str] | None) -> list[Gate]:
    known = {gate.name: gate for gate in GATES}
    for name in names or ():
        if name not in known:
            raise ConfigError(f"unknown gate {name!r}{suggest(name, list(known))}; there are {', '.join(known)}")
    return list(GATES) if names is None else [known[name] for name in names]


async def _report(bench: Bench, gate: Gate, cells: Sequence[Cell]) -> GateReport:
    began = time.monotonic()
    ends = [cells[0], *([cells[-1]] if cells[-1].level != cells[0].level else [])]
    findings = await gate.check(bench, ends if gate.ends_only else cells)
    reds = tuple(finding for finding in findings if not finding.ok)
    report = GateReport(
        name=gate.name,
        claim=gate.claim,
        green=bool(findings or gate.may_be_empty) and not reds,
        tried=len(findings),
        reds=reds,
        seconds=round(time.monotonic() - began, 1),
        evidence={
            f"level {one.level} seed {one.seed} {one.what}": one.evidence[:200] for one in findings[:_SAMPLE] if one.ok
        },
    )
    bench.say(f"{gate.name}: {'green' if report.green else 'RED'}, {report.tried} tried, {report.seconds} s")
    for red in reds:
        bench.say(f"  RED level {red.level} seed {red.seed} {red.what}: {red.evidence}")
    return report


async def certify_all(
    env_ids: Sequence[str],
    *,
    seeds: int = 1,
    backend: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Json]]:
    """Certify each and write its certificate; the certificates as JSON.

    Raises:
        ConfigError: an unknown id or backend, before anything runs.
        SandboxError: no sandbox could be had.
    """
    entries = [get(env_id) for env_id in env_ids]
    report: list[dict[str, Json]] = []
    async with open_backend(backend) as opened:
        for entry in entries:
            certificate = await certify(
                entry.id, seeds=range(FIRST_SEED, FIRST_SEED + seeds), backend=opened, progress=progress
            )
            save(entry, certificate)
            report.append(certificate.model_dump(mode="json"))
    return report
