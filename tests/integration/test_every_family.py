"""Every environment of the registry through the real stack, and what its certificate is worth.

Levels and the sample of gates that is tried anew move on by the day, so that in time everything is tried again; what
failed is named with level and seed, and `metier certify ID --level N` repeats it.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

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
    reward, ended, info = 0.0, False, {}
    for call in prepared.family.oracle(prepared.instance):
        assert not ended, f"level {level}, seed {SEED + DAY}: a limit ended the oracle's episode"
        _, reward, terminated, truncated, info = env.step({"tool": call.tool, "arguments": dict(call.arguments)})
        ended = terminated or truncated
    assert (reward, info["outcome"]) == (1.0, Outcome.COMPLETED), f"level {level}, seed {SEED + DAY}: {info}"


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
