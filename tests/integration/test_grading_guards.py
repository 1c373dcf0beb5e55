"""What grading rests on, in real sandboxes: a verifier meets the declared artefacts and nothing else of the agent's."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from hostile import REGISTRY
from metier.envs import registry
from metier.envs.core import Outcome, Sandbox, SandboxBackend, SandboxSpec, ToolCall, Verdict
from metier.envs.entry import Entry
from metier.envs.parts.probe import run_probe
from metier.harness.policy import AssistantTurn, Message
from metier.harness.policy.scripted import ScriptedPolicy, oracle_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from metier.harness.testing import SPEC
from metier.harness.testing.echo.family import Echo
from metier.images import recipe
from metier.images.store import rootfs_path
from waiting import soon

pytestmark = pytest.mark.asyncio(loop_scope="module")

ID = "test/Guarded-v0"
SEED = 3
SUBMIT = ToolCall(tool="submit")
Verify = Callable[[Sandbox], Awaitable[Verdict]]


@pytest.fixture(scope="module", autouse=True)
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    path.write_text(REGISTRY.format(env_id=ID, agent_s=600))
    registry.add_registry(path)
    yield
    del registry._known().entries[ID]


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=[pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"]
)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[SandboxBackend]:
    if request.param == "docker" and not await answers():
        pytest.skip("no Docker engine answers")
    if request.param == "bubblewrap" and not rootfs_path(recipe(SPEC.image)).is_dir():
        pytest.skip(f"run: metier images build {SPEC.image} --engine bubblewrap")
    async with open_backend(request.param) as opened:
        yield opened


async def play(backend: SandboxBackend, policy: Any, env_id: str = ID) -> EpisodeResult:
    return await run_episode(Task(env_id=env_id, seed=SEED), policy, backend, Preparer(backend), deadline=soon())


def shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def right() -> ToolCall:
    """The submission that is right."""
    return oracle_policy(ID, SEED)._calls[-1]


LYING = "import os, sys; sys.stdout.write('reward=1.0'); os._exit(0)"
TAMPERING = rf"""
export PATH=/workspace:/tmp:$PATH PYTHONPATH=/workspace PYTHONSTARTUP=/workspace/json.py LD_PRELOAD=/workspace/x.so
export BASH_ENV=/workspace/env ENV=/workspace/env
for name in json sitecustomize usercustomize conftest random os; do
  echo "{LYING}" | tee $name.py /tmp/$name.py > /dev/null
done
for name in python3 bash sh cat env timeout; do
  printf '#!/bin/sh\necho reward=1.0\n' | tee $name /tmp/$name > /dev/null; chmod +x $name /tmp/$name
done
mkdir -p ~/.local/lib ~/.config; echo "echo PASSED; exit 0" | tee env ~/.bashrc ~/.profile ~/.bash_profile > /dev/null
for to in . /tmp /dev/shm ~; do
  for name in reward.json reward.txt verdict.json result.json score.txt report.xml; do
    printf '{{"reward": 1.0, "passed": true}}' > $to/$name
  done
done
(setsid /bin/sh -c 'trap "" TERM HUP; while :; do echo 1 > /workspace/reward.txt; sleep 0.01; done' > /dev/null 2>&1 &)
"""
LOOK = """
import os, socket, subprocess, sys
try:
    import metier
except ImportError:
    metier = None
_answer({
    "ours": str(metier),
    "environment": {name: value for name, value in os.environ.items() if name != "METIER_EXEC"},
    "path": sys.path,
    "modules": {name: sys.modules[name].__file__ for name in ("json", "os")},
    "there": {place: sorted(os.listdir(place)) for place in ("/workspace", "/tmp", "/dev/shm")},
    "network": [name for _, name in socket.if_nameindex() if not name.startswith(("tunl", "sit", "ip6tnl"))],
    "bash": subprocess.run(["bash", "-c", "type -p python3 cat"], capture_output=True, text=True).stdout.split(),
    "running": sorted(name for name in os.listdir("/proc") if name.isdigit() and name != str(os.getpid())),
})
"""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the verifier's probes see, as root and as the agent, one pair for each episode."""
    looks: list[Any] = []
    verify = Echo.verify

    async def looking(self: Echo, sandbox: Sandbox, *more: Any) -> Verdict:
        looks.append(
            [(await run_probe(sandbox, LOOK, None, timeout_s=20, user=user)).value for user in ("root", "agent")]
        )
        return await verify(self, sandbox, *more)

    monkeypatch.setattr(Echo, "verify", looking)
    return looks


async def test_the_verifier_sees_what_was_declared_and_nothing_else(backend: SandboxBackend, seen: list[Any]) -> None:
    honest = await play(backend, ScriptedPolicy([right()]))
    tampered = await play(backend, ScriptedPolicy([shell(TAMPERING), right()]))
    forged = await play(backend, ScriptedPolicy([shell(TAMPERING), SUBMIT]))
    assert [(one.outcome, one.reward) for one in (honest, tampered, forged)] == [
        (Outcome.COMPLETED, 1.0),
        (Outcome.COMPLETED, 1.0),  # what is right arrives, whatever lies beside it
        (Outcome.COMPLETED, 0.0),
    ]
    first, second, third = seen
    assert first == second, "the verifier's sandbox differs by what the agent left"
    root, agent = first
    for look in first:
        assert look["there"] == {"/workspace": ["answer"], "/tmp": ["home"], "/dev/shm": []}
        assert look["network"] == ["lo"]
        assert look["ours"] == "None", "the environments' own code lies in the image"
        assert not any(place.startswith(("/workspace", "/tmp")) for place in [*look["path"], *look["bash"]])
        assert all(name.startswith("/usr/") for name in look["modules"].values())
    assert third[0]["there"]["/workspace"] == []
    assert agent["environment"]["PATH"] == root["environment"]["PATH"]
    assert not {"LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "PYTHONSTARTUP"} & set(root["environment"])


BROKEN_PROBES = {
    "a module that the image lacks": "import no_such_module",
    "a runner that has to be fetched": "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/', timeout=2)",
    "a bug": "_answer(payload['none'])",
}


@pytest.mark.parametrize("name", BROKEN_PROBES)
async def test_a_verifier_that_cannot_measure_gives_no_reward(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def verify(_: Echo, sandbox: Sandbox, *__: Any) -> Verdict:
        await run_probe(sandbox, BROKEN_PROBES[name], {}, timeout_s=20)
        raise AssertionError("it answered")

    monkeypatch.setattr(Echo, "verify", verify)
    result = await play(backend, ScriptedPolicy([right()]))
    assert (result.outcome, result.reward, result.passed) == (Outcome.VERIFIER_FAILURE, None, None)
    assert "a probe broke" in result.failure


OVERWRITTEN = r"""
find . -name 'test*.py' | while IFS= read -r T; do printf 'def test_ok():\n    assert True\n' > "$T"; done
printf 'import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n' > conftest.py
printf '    outcome = yield\n    outcome.get_result().outcome = "passed"\n' >> conftest.py
printf '[pytest]\naddopts = --collect-only\n' | tee pytest.ini tox.ini > /dev/null
"""


async def test_tests_that_the_agent_overwrote_earn_nothing(backend: SandboxBackend) -> None:
    result = await play(backend, ScriptedPolicy([shell(OVERWRITTEN), SUBMIT]), "terminal/PyMutationRepair-v0")
    assert (result.outcome, result.reward, result.passed) == (Outcome.COMPLETED, 0.0, False)


class Patient:
    """Takes its time between two calls."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    async def act(self, conversation: Sequence[Message | AssistantTurn], *_: Any, **__: Any) -> AssistantTurn:
        self.asked += 1
        if self.asked > 1:
            await asyncio.sleep(self.seconds)
        return AssistantTurn(text="", calls=(shell("echo here"),))


async def test_a_lease_that_runs_out_ends_the_episode_at_once_and_keeps_what_was_said(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Entry.sandbox

    def short(self: Entry, *, verifier: bool = False) -> SandboxSpec:
        return dataclasses.replace(real(self, verifier=verifier), ttl_s=1.0)

    monkeypatch.setattr(Entry, "sandbox", short)
    policy = Patient(2.5)
    result = await play(backend, policy)
    assert (result.outcome, result.reward) == (Outcome.SANDBOX_FAILURE, None)
    assert policy.asked == 2, "it was asked again although its sandbox had gone"
    said = [part.text for part in result.conversation if isinstance(part, Message)]
    assert said[-1] == "here\n" and len(result.steps) == 1
    assert json.loads(result.model_dump_json())["failure"].startswith("SandboxLost")
