"""Each planted defect turns exactly its gate red, and the family without one is certified."""

from __future__ import annotations

import asyncio
import datetime
import json
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs import registry
from metier.envs.core import ConfigError, SandboxBackend
from metier.harness.certify import Certificate, Status, certificate_status, certify, certify_all, load, save
from metier.harness.certify.gates import GATES, repeat
from metier.harness.certify.status import missing_gates
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers

FIXTURES = Path(__file__).parents[1] / "fixtures"
ENV = "test/Planted-v0"
AT_ONCE = 3
pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]

DEFECTS = {
    "clock in the instance": {"determinism"},
    "day in the instance": {"determinism"},
    "hash order in the instance": {"determinism"},
    "one seed fits all": {"determinism"},
    "levels are the same": {"levels"},
    "unfinished brief": {"brief"},
    "brief tells": {"brief"},
    "brief hides the path": {"brief"},
    "brief without units": {"brief"},
    "brief without rounding": {"brief"},
    "brief without order": {"brief"},
    "brief without encoding": {"brief"},
    "oracle is wrong": {"oracle"},
    "oracle never submits": {"oracle"},
    "no-op is paid": {"noop", "baselines"},
    "a mutant passes": {"mutants"},
    "too few mutants": {"mutants"},
    "an alternative fails": {"alternatives"},
    "plain leak": {"leakage"},
    "hex leak": {"leakage"},
    "base64 leak": {"leakage"},
    "UTF-16 leak": {"leakage"},
    "URL leak": {"leakage"},
    "gzip leak": {"leakage"},
    "zlib leak": {"leakage"},
    "bz2 leak": {"leakage"},
    "xz leak": {"leakage"},
    "zip leak": {"leakage"},
    "git leak": {"leakage"},
    "leak in a process": {"leakage"},
    "the verifier tells its programs": {"leakage"},
    "the verifier sends the truth": {"leakage"},
    "markers are believed": {"baselines"},
    "constants are paid": {"baselines"},
    "flagging everything is paid": {"baselines"},
    "a reward file is believed": {"baselines"},
    "the verdict wavers": {"verifier repeats"},
    "the verdict follows the day": {"verifier repeats"},
    "the verdict follows the zone": {"verifier repeats"},
    "a probe follows the day": {"verifier repeats"},
    "a probe follows the zone": {"verifier repeats"},
    "a probe follows the cores": {"verifier repeats"},
    "bytes break the verifier": {"fuzzed artefacts"},
    "nesting breaks the verifier": {"fuzzed artefacts"},
    "programs hang the verifier": {"fuzzed artefacts"},
    "a half is enough": {"fuzzed artefacts"},
    "any answer among many is taken": {"fuzzed artefacts"},
    "generation is hungry": {"envelope"},
    "verifying fills the disk": {"envelope"},
}
"""Defect → the gates that must be red. A paid no-op also pays the bots that do nothing: two gates see that defect."""
QUICK = {"determinism", "brief", "oracle", "noop", "mutants", "alternatives"}
"""Gates of a few episodes: they are tried on every defect."""


def tried(defect: str) -> dict[str, Any]:
    """Levels and gates: all gates for the first defect of its gate, its own and the quick ones for the others."""
    red = DEFECTS[defect]
    levels = [0, 1] if "levels" in red else [0]
    if defect == next(first for first, others in DEFECTS.items() if others == red):
        return {"levels": levels}
    return {"levels": levels, "gates": [gate.name for gate in GATES if gate.name in red | QUICK]}


@pytest.fixture(scope="module", autouse=True)
def planted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FIXTURES))
        (added,) = registry.add_registry(FIXTURES / "planted" / "registry.yaml")
        yield
    del registry._known().entries[added]  # the test family is no part of later tests


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[SandboxBackend]:
    async with open_backend("docker") as opened:
        yield opened


Certified = tuple[Certificate, list[str]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def certified(
    backend: SandboxBackend, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[[str], Awaitable[Certified]]]:
    """A defect's certificate and what was said; those that will be asked for are made a few at a time, beforehand."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(defect: str) -> Certified:
        said: list[str] = []
        async with slots:
            options = {"defect": defect}
            return await certify(ENV, backend=backend, options=options, progress=said.append, **tried(defect)), said

    asked = {_parameters(item).get("defect") for item in request.session.items}
    running = {defect: asyncio.create_task(one(defect)) for defect in DEFECTS if defect in asked}
    yield lambda defect: running[defect]
    for task in running.values():
        task.cancel()
    await asyncio.gather(*running.values(), return_exceptions=True)


def _parameters(item: pytest.Item) -> dict[str, object]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None and item.path == Path(__file__) else {}


@pytest.mark.parametrize("defect", DEFECTS)
async def test_a_defect_turns_exactly_its_gate_red(
    certified: Callable[[str], Awaitable[Certified]], defect: str
) -> None:
    certificate, said = await certified(defect)
    assert {report.name for report in certificate.gates if not report.green} == DEFECTS[defect], "\n".join(said)
    assert not certificate.valid and not certificate.green
    reds = [red for report in certificate.gates for red in report.reds]
    assert all(red.what and red.seed >= 0 and red.level in (0, 1) for red in reds)
    assert any("RED" in line and "level" in line and "seed" in line for line in said)


async def test_every_gate_has_a_planted_defect() -> None:
    assert set.union(*DEFECTS.values()) == {gate.name for gate in GATES}


ODD_HOURS = tuple(
    repeat.Condition(name=name, zone=zone, moment=datetime.datetime.fromisoformat(moment), oracle_only=True)
    for name, zone, moment in (
        ("past what 32 bits count", "Asia/Kolkata", "2038-01-19T03:14:08+00:00"),
        ("in the hour that comes twice", "America/New_York", "2028-11-05T06:30:00+00:00"),
        ("a second before the hour that is left out", "Europe/Berlin", "2028-03-26T00:59:59+00:00"),
    )
)


@pytest.mark.parametrize("env_id", ["finance/CovenantTest-v0", "terminal/GitSecretPurge-v0"])
async def test_verdicts_repeat_at_odd_hours(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch, env_id: str
) -> None:
    monkeypatch.setattr(repeat, "CONDITIONS", ODD_HOURS)
    certificate = await certify(env_id, backend=backend, levels=[0], gates=["verifier repeats"])
    (report,) = certificate.gates
    assert report.green, report.reds
    said = json.dumps(report.model_dump(mode="json"))
    assert all(condition.name in said for condition in ODD_HOURS)


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The fixture family as test/PlantedCopy-v0, in a folder that may be changed."""
    folder = tmp_path / "planted_copy"
    shutil.copytree(FIXTURES / "planted", folder, ignore=shutil.ignore_patterns("__pycache__", "certificate.json"))
    listing = (folder / "registry.yaml").read_text()
    listing = listing.replace("test/Planted", "test/PlantedCopy").replace("planted.family", "planted_copy.family")
    (folder / "registry.yaml").write_text(listing)
    monkeypatch.syspath_prepend(str(tmp_path))
    added = registry.add_registry(folder / "registry.yaml")
    yield folder
    for env_id in added:
        del registry._known().entries[env_id]
    for module in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[module]  # the next copy lies elsewhere


async def test_a_family_without_a_defect_is_certified_until_it_changes(backend: SandboxBackend, copied: Path) -> None:
    entry = registry.get("test/PlantedCopy-v0")
    assert certificate_status(entry) is Status.NONE

    certificate = await certify(entry.id, backend=backend, seeds=(5, 6))
    assert certificate.valid, [report for report in certificate.gates if not report.green]
    assert (certificate.levels, certificate.seeds, certificate.backend) == ((0, 1), (5, 6), "docker")
    assert certificate.envelope_s["oracle reset"] > 0
    assert set(certificate.envelope) == {"0", "1"}
    assert all(
        taken["verify_memory_mb"] > 1 and taken["agent_memory_mb"] > 1 for taken in certificate.envelope.values()
    )
    save(entry, certificate)
    assert load(entry) == certificate
    assert certificate_status(entry) is Status.VALID

    without = tuple(report for report in certificate.gates if report.name != "envelope")
    save(entry, certificate.model_copy(update={"gates": without}))
    assert certificate_status(entry) is Status.PARTIAL
    older = tuple(report.model_copy(update={"version": 1}) for report in certificate.gates)
    save(entry, certificate.model_copy(update={"gates": older}))
    assert certificate_status(entry) is Status.PARTIAL
    assert "leakage" in missing_gates(certificate.model_copy(update={"gates": older}))

    (copied / "instruction.md").write_text("Double the number in {{ file }} and submit it as the answer, please.")
    assert certificate_status(entry) is Status.STALE
    (copied / "certificate.json").write_text("{}")
    assert certificate_status(entry) is Status.NONE


async def test_a_run_goes_on_where_it_stopped(backend: SandboxBackend, copied: Path) -> None:
    entry = registry.get("test/PlantedCopy-v0")
    said: list[str] = []
    with pytest.raises(RuntimeError, match="cut short"):
        await certify(entry.id, backend=backend, keep=lambda so_far: _stop_after(so_far, "brief", save_to=copied))
    stopped = load(entry)
    assert stopped is not None and [report.name for report in stopped.gates] == ["determinism", "levels", "brief"]
    assert certificate_status(entry) is Status.PARTIAL
    certificate = await certify(entry.id, backend=backend, before=stopped, progress=said.append)
    assert certificate.valid
    assert sum("kept" in line for line in said) == 3
    assert certificate.gates[:3] == stopped.gates

    again = await certify(
        entry.id, backend=backend, before=certificate, seeds=(1,), gates=["levels"], progress=said.append
    )
    assert again.gates[0].seconds >= 0 and not again.valid
    assert sum("kept" in line for line in said) == 3


def _stop_after(so_far: Certificate, gate: str, *, save_to: Path) -> None:
    (save_to / "certificate.json").write_text(so_far.model_dump_json())
    if so_far.gates[-1].name == gate:
        raise RuntimeError("cut short")


async def test_a_valid_certificate_is_left_alone(
    backend: SandboxBackend, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = registry.get("test/PlantedCopy-v0")
    certificate = await certify(entry.id, backend=backend, seeds=(7_000_000, 7_000_001), gates=["levels"])
    reports = [
        certificate.gates[0].model_copy(update={"name": gate.name, "version": gate.version, "green": True})
        for gate in GATES
    ]
    save(entry, certificate.model_copy(update={"valid": True, "gates": tuple(reports)}))
    written = (copied / "certificate.json").read_bytes()
    said: list[str] = []
    assert (await certify_all([entry.id], backend="docker", progress=said.append))[0].valid
    assert "valid already" in said[0]
    assert (copied / "certificate.json").read_bytes() == written
    part = await certify_all([entry.id], backend="docker", force=True, gates=["levels"])
    assert part[0].green and not part[0].valid
    assert json.loads(written)["seeds"] == [7_000_000, 7_000_001]
    assert (copied / "certificate.json").read_bytes() == written


async def test_a_part_of_the_gates_or_levels_is_no_certificate(backend: SandboxBackend) -> None:
    certificate = await certify(ENV, backend=backend, levels=[0], gates=["brief", "determinism"])
    assert all(report.green for report in certificate.gates)
    assert not certificate.valid


async def test_wrong_requests_are_refused(backend: SandboxBackend) -> None:
    with pytest.raises(ConfigError, match="levels 0 to 1"):
        await certify(ENV, backend=backend, levels=[2])
    with pytest.raises(ConfigError, match="did you mean oracle"):
        await certify(ENV, backend=backend, gates=["orakle"])
    with pytest.raises(ConfigError, match="at least one"):
        await certify(ENV, backend=backend, seeds=[])
    with pytest.raises(ConfigError, match="unknown environment"):
        await certify_all(["test/Nothing-v0"])
