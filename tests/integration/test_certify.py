"""Each planted defect turns exactly its gate red, and the family without one is certified."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from metier.envs import registry
from metier.envs.core import ConfigError, SandboxBackend
from metier.harness.certify import certify, certify_all
from metier.harness.certify.certificate import Status, certificate_status, load, save
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers

FIXTURES = Path(__file__).parents[1] / "fixtures"
ENV = "test/Planted-v0"
pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]


@pytest.fixture(scope="module", autouse=True)
def planted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FIXTURES))
        registry.add_registry(FIXTURES / "planted" / "registry.yaml")
        yield
    registry._all.cache_clear()  # the test family is no part of later tests


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[SandboxBackend]:
    async with open_backend("docker") as opened:
        yield opened


DEFECTS = {
    "clock in the instance": {"determinism"},
    "one seed fits all": {"determinism"},
    "levels are the same": {"levels", "determinism"},
    "unfinished brief": {"brief"},
    "brief tells": {"brief"},
    "plain leak": {"leakage"},
    "gzip leak": {"leakage"},
    "base64 leak": {"leakage"},
    "UTF-16 leak": {"leakage"},
    "hex leak": {"leakage"},
    "oracle is wrong": {"oracle"},
    "oracle never submits": {"oracle"},
    "no-op is paid": {"noop", "baselines"},
    "a mutant passes": {"mutants"},
    "too few mutants": {"mutants"},
    "an alternative fails": {"alternatives"},
    "markers are believed": {"baselines"},
    "rubbish breaks the verifier": {"fuzzed artefacts"},
    "rubbish hangs the verifier": {"fuzzed artefacts"},
    "the verdict wavers": {"verifier repeats"},
}
"""Defect → the gates that must be red. A paid no-op also pays the bots that do nothing, and where all levels are the
same so are all seeds: those gates see the same defect."""


@pytest.mark.parametrize("defect", DEFECTS)
async def test_a_defect_turns_exactly_its_gate_red(backend: SandboxBackend, defect: str) -> None:
    said: list[str] = []
    certificate = await certify(ENV, backend=backend, options={"defect": defect}, progress=said.append)
    assert {report.name for report in certificate.gates if not report.green} == DEFECTS[defect], "\n".join(said)
    assert not certificate.valid
    reds = [red for report in certificate.gates for red in report.reds]
    assert all(red.what and red.seed >= 0 and red.level in (0, 1) for red in reds)
    assert any("RED" in line and "level" in line and "seed" in line for line in said)


async def test_a_family_without_a_defect_is_certified_until_it_changes(
    backend: SandboxBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "planted_copy"
    shutil.copytree(FIXTURES / "planted", folder, ignore=shutil.ignore_patterns("__pycache__", "certificate.json"))
    listing = (folder / "registry.yaml").read_text()
    listing = listing.replace("test/Planted", "test/PlantedCopy").replace("planted.family", "planted_copy.family")
    (folder / "registry.yaml").write_text(listing)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.add_registry(folder / "registry.yaml")
    entry = registry.get("test/PlantedCopy-v0")
    assert certificate_status(entry) is Status.NONE

    certificate = await certify(entry.id, backend=backend, seeds=(5, 6))
    assert certificate.valid, [report for report in certificate.gates if not report.green]
    assert (certificate.levels, certificate.seeds, certificate.backend) == ((0, 1), (5, 6), "docker")
    assert certificate.envelope_s["oracle reset"] > 0
    save(entry, certificate)
    assert load(entry) == certificate
    assert certificate_status(entry) is Status.VALID

    (folder / "instruction.md").write_text("Double the number in {{ file }} and submit it as the answer, please.")
    assert certificate_status(entry) is Status.STALE
    (folder / "certificate.json").write_text("{}")
    assert certificate_status(entry) is Status.NONE


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
