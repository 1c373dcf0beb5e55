"""Claims about a family that need no sandbox: what its generator, its brief and its scripted solutions must be.

`metier certify` proves the rest, in real sandboxes. A specimen is one registered environment:

    outcomes = await run_suite(FAMILY, Specimen.of("mine/MyFamily-v0"))
"""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from metier.envs.core import Deadline, Family, Instance, Json, ToolCall, instance_rng
from metier.envs.entry import Entry
from metier.envs.registry import get, make_family, render_brief

from ..tools import Toolbox
from .claims import Suite
from .fakes import FakeBackend


@dataclass(frozen=True, slots=True)
class Specimen:
    """An environment, and the seeds it is tried with at every level."""

    entry: Entry
    options: Mapping[str, Json]
    seeds: Sequence[int] = (0, 1)
    kept: dict[tuple[int, int], Instance] = dataclasses.field(default_factory=dict[tuple[int, int], Instance])

    @classmethod
    def of(cls, env_id: str, options: Mapping[str, Json] | None = None) -> Specimen:
        """The specimen of a registered id. Raises ConfigError."""
        return cls(get(env_id), options or {})

    @property
    def family(self) -> Family:
        """A new object each time."""
        return make_family(self.entry, self.options)

    def generated(self, level: int, seed: int) -> Instance:
        """Made anew each time."""
        return self.family.generate(instance_rng(self.entry.id, self.options, seed, level), level)

    def instance(self, level: int, seed: int) -> Instance:
        """Made once, for claims that only look at it."""
        if (level, seed) not in self.kept:
            self.kept[level, seed] = self.generated(level, seed)
        return self.kept[level, seed]

    def cells(self) -> Iterator[tuple[int, int]]:
        """Level and seed."""
        return ((level, seed) for level in range(self.entry.levels) for seed in self.seeds)


FAMILY: Suite[Specimen] = Suite("family")


@FAMILY.claim
async def it_is_a_frozen_dataclass_whose_options_have_defaults(specimen: Specimen) -> None:
    kind = type(specimen.family)
    parameters = getattr(kind, "__dataclass_params__", None)
    assert parameters is not None and parameters.frozen, (
        f"{kind.__name__} must be decorated with dataclass(frozen=True)"
    )
    for field in dataclasses.fields(kind):
        given = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        assert given, f"option {field.name} has no default"


@FAMILY.claim
async def it_travels_to_worker_processes(specimen: Specimen) -> None:
    family = specimen.family
    assert pickle.loads(pickle.dumps(family)) == family
    instance = specimen.instance(0, specimen.seeds[0])
    assert pickle.loads(pickle.dumps(instance)) == instance


@FAMILY.claim
async def the_same_seed_gives_the_same_instance(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        random.seed(seed)
        with ThreadPoolExecutor(1) as pool:
            again = pool.submit(specimen.generated, level, seed).result()
        assert again == specimen.instance(level, seed), f"level {level} seed {seed}: two runs made different instances"


@FAMILY.claim
async def other_seeds_and_levels_give_other_instances(specimen: Specimen) -> None:
    seen: dict[bytes, tuple[int, int]] = {}
    for level, seed in specimen.cells():
        instance = specimen.instance(level, seed)
        made = pickle.dumps((instance.files, instance.variables, instance.truth, instance.setup, instance.context))
        assert made not in seen, f"level {level} seed {seed} is level and seed {seen[made]} again"
        seen[made] = (level, seed)


@FAMILY.claim
async def paths_stay_in_the_workspace(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        instance = specimen.instance(level, seed)
        for path in [*instance.files, *(artefact.path for artefact in instance.artefacts)]:
            parts = path.split("/")
            assert path and not path.startswith("/") and ".." not in parts and "" not in parts, f"path {path!r}"
        assert instance.executable <= set(instance.files), f"{instance.executable} names files that are not there"
        assert instance.artefacts, "nothing is graded"
        names = [artefact.path for artefact in instance.artefacts]
        assert len(set(names)) == len(names), f"declared twice: {names}"


@FAMILY.claim
async def variables_and_truth_are_json(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        instance = specimen.instance(level, seed)
        for part in (dict(instance.variables), dict(instance.truth)):
            text = json.dumps(part, allow_nan=False)
            assert json.dumps(json.loads(text)) == text, f"level {level} seed {seed}: JSON gives other values back"


@FAMILY.claim
async def the_brief_is_whole(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        brief = render_brief(specimen.family, specimen.instance(level, seed), level)
        assert brief.strip(), "the brief is empty"
        assert "{{" not in brief and "{%" not in brief, "the brief has template marks left in it"


@FAMILY.claim
async def secrets_stay_out_of_brief_and_files(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        instance = specimen.instance(level, seed)
        brief = render_brief(specimen.family, instance, level)
        for secret in instance.secrets:
            assert secret not in brief, f"the secret {secret!r} is in the brief"
            if instance.setup:
                continue  # what set-up leaves of the files is searched in a sandbox, by certification
            for path, data in instance.files.items():
                assert secret.encode() not in data, f"the secret {secret!r} is in {path}"


@FAMILY.claim
async def scripted_solutions_make_valid_calls_and_submit(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        instance = specimen.instance(level, seed)
        toolbox = await _toolbox(specimen, instance)
        for name, calls in _solutions(specimen.family, instance).items():
            for call in calls:
                assert (wrong := toolbox.problem(call)) is None, f"level {level} seed {seed} {name}: {wrong}"
            assert calls and calls[-1].tool == "submit", f"{name} does not end with submit"


@FAMILY.claim
async def an_oracle_looks_at_its_work_where_the_trade_is_visual(specimen: Specimen) -> None:
    if specimen.entry.observation != "text+image":
        return
    for level, seed in specimen.cells():
        tools = [call.tool for call in specimen.family.oracle(specimen.instance(level, seed))]
        assert "view" in tools, f"level {level} seed {seed}: the oracle calls {', '.join(tools)}, and never `view`"


@FAMILY.claim
async def scripted_solutions_are_the_same_each_time(specimen: Specimen) -> None:
    level, seed = specimen.entry.levels - 1, specimen.seeds[0]
    instance = specimen.instance(level, seed)
    assert _solutions(specimen.family, instance) == _solutions(specimen.family, specimen.generated(level, seed))


@FAMILY.claim
async def there_are_three_mutants_and_none_is_the_oracle(specimen: Specimen) -> None:
    for level, seed in specimen.cells():
        instance = specimen.instance(level, seed)
        mutants = specimen.family.mutants(instance)
        assert len(mutants) >= 3, f"level {level} seed {seed} has {len(mutants)} mutants"
        oracle = list(specimen.family.oracle(instance))
        for name, calls in mutants.items():
            assert list(calls) != oracle, f"level {level} seed {seed}: mutant {name!r} is the oracle"


async def _toolbox(specimen: Specimen, instance: Instance) -> Toolbox:
    async with FakeBackend() as backend:
        spec = dataclasses.replace(specimen.entry.sandbox(), requires=frozenset())
        box = await backend.acquire(spec, deadline=Deadline.after(10, limit="claim_s", set_by="conformance suite"))
        return Toolbox(specimen.entry.tools, box, specimen.family.trade_tools(box, instance))


def _solutions(family: Family, instance: Instance) -> dict[str, list[ToolCall]]:
    named: dict[str, Sequence[ToolCall]] = {"oracle": family.oracle(instance)}
    named |= {f"mutant {name}": calls for name, calls in family.mutants(instance).items()}
    named |= {f"alternative {name}": calls for name, calls in family.alternatives(instance).items()}
    return {name: list(calls) for name, calls in named.items()}
