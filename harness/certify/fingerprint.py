"""What an instance is, as hashes: of its bytes, its brief and its author's solutions.

Run as a module it answers the same question in a process of its own, as JSON over the standard streams.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from metier.envs.core import Instance, Json, ToolCall, instance_rng
from metier.envs.entry import Entry
from metier.envs.registry import make_family, render_brief

from . import clock


def fingerprints(
    entry: Entry, options: Mapping[str, Json], wanted: Sequence[tuple[int, int]]
) -> list[Mapping[str, str]]:
    """For each (seed, level): part → SHA-256."""
    family = make_family(entry, options)
    answers: list[Mapping[str, str]] = []
    for seed, level in wanted:
        instance = family.generate(instance_rng(entry.id, options, seed, level), level)
        answers.append(
            {
                "instance": _sha(_instance(instance)),
                "brief": _sha(render_brief(family, instance, level)),
                "oracle": _sha(_calls(family.oracle(instance))),
                "mutants": _sha({name: _calls(calls) for name, calls in family.mutants(instance).items()}),
                "alternatives": _sha({name: _calls(calls) for name, calls in family.alternatives(instance).items()}),
            }
        )
    return answers


def _instance(instance: Instance) -> Any:
    return {
        "variables": dict(instance.variables),
        "files": {path: hashlib.sha256(data).hexdigest() for path, data in instance.files.items()},
        "executable": sorted(instance.executable),
        "setup": instance.setup,
        "services": instance.services,
        "context": instance.context,
        "artefacts": [repr(artefact) for artefact in instance.artefacts],
        "truth": dict(instance.truth),
        "secrets": instance.secrets,
    }


def _calls(calls: Sequence[ToolCall]) -> Any:
    return [[call.tool, dict(call.arguments)] for call in calls]


def _sha(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def main() -> None:
    """Answer the question on standard input, on the day that it names."""
    question = json.load(sys.stdin)
    if question.get("moment"):
        clock.move_for_good(question["moment"])
    wanted = [(seed, level) for seed, level in question["wanted"]]
    json.dump(fingerprints(Entry.model_validate(question["entry"]), question["options"], wanted), sys.stdout)


if __name__ == "__main__":
    main()
