"""Every environment of the registry through the real stack, and what its certificate is worth.

Levels and the sample of gates that is tried anew move on by the day, so that in time everything is tried again; what
failed is named with level and seed, and `metier certify ID --level N` repeats it.
"""

from __future__ import annotations

import datetime
import errno
import io
import socket
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

from metier.envs import registry
from metier.envs.core import Outcome
from metier.harness.certify import Status, certificate_status, certify
from metier.harness.prepare import Task, generate
from metier.harness.sandbox import open_backend

IDS = registry.sources()[registry.registry_path()]
DAY = datetime.date.today().toordinal()
SEED = 6_000_000
SAMPLED = 3
GATES = ("oracle", "noop", "mutants")

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sandboxes have none anyway; here our own side, verifiers included, reaches nothing but this machine's sockets."""
    for name in ("connect", "connect_ex"):
        real = getattr(socket.socket, name)

        def local(self: socket.socket, address: Any, real: Any = real) -> Any:
            if self.family != socket.AF_UNIX:
                raise OSError(errno.ENETUNREACH, f"a test without network wants {address}")
            return real(self, address)

        monkeypatch.setattr(socket.socket, name, local)

    def nobody(host: Any, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_FAIL, f"a test without network asks for {host}")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)


def level_of_the_day(env_id: str) -> int:
    return (DAY + IDS.index(env_id)) % registry.get(env_id).levels


@pytest.fixture(params=IDS)
def made(request: pytest.FixtureRequest) -> Iterator[tuple[str, gymnasium.Env[Any, Any]]]:
    level = level_of_the_day(request.param)
    env = gymnasium.make(request.param, level=level, backend="docker", render_mode="rgb_array")
    yield request.param, env
    env.close()


def test_the_oracle_is_paid_and_the_checker_is_content(made: tuple[str, gymnasium.Env[Any, Any]]) -> None:
    env_id, env = made
    level = level_of_the_day(env_id)
    with warnings.catch_warnings():
        # the checker has advice about spaces that are not its own; what it rejects raises
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=False)
    prepared = generate(Task(env_id=env_id, seed=SEED + DAY, level=level))
    env.reset(seed=SEED + DAY)
    reward, ended, info, looks = 0.0, False, {}, 0
    for call in prepared.family.oracle(prepared.instance):
        assert not ended, f"level {level}, seed {SEED + DAY}: a limit ended the oracle's episode"
        observation, reward, terminated, truncated, info = env.step(
            {"tool": call.tool, "arguments": dict(call.arguments)}
        )
        ended = terminated or truncated
        if call.tool == "view":
            looks += 1
            check_picture(observation, info, env.render())
    assert (reward, info["outcome"]) == (1.0, Outcome.COMPLETED), f"level {level}, seed {SEED + DAY}: {info}"
    assert bool(looks) == (prepared.entry.observation == "text+image")


def check_picture(observation: dict[str, Any], info: dict[str, Any], rendered: Any) -> None:
    """A look shows something: a picture that opens, is not of one colour, and is what the agent and a viewer get."""
    assert info["ok"], observation["text"]
    (png,) = info["images"]
    picture = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    assert np.ptp(picture.reshape(-1, 3), axis=0).max() > 32, "blank"
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 4, "next to blank"
    assert np.ptp(observation["image"]) > 32 and np.array_equal(observation["image"], rendered)


@pytest.mark.parametrize("env_id", IDS)
def test_the_certificate_vouches_for_these_files(env_id: str) -> None:
    status = certificate_status(registry.get(env_id))
    assert status is Status.VALID, f"its certificate is {status}: metier certify {env_id}"


@pytest.mark.parametrize("turn", range(SAMPLED))
async def test_a_sample_of_the_gates_is_still_green(turn: int) -> None:
    env_id = IDS[(DAY * SAMPLED + turn) % len(IDS)]
    level = level_of_the_day(env_id)
    async with open_backend("docker") as backend:
        found = await certify(env_id, levels=[level], seeds=[SEED + DAY], backend=backend, gates=GATES)
    red = [f"{gate.name}: {gate.reds}" for gate in found.gates if not gate.green]
    assert not red, f"{env_id}, level {level}, seed {SEED + DAY}: {red}"
