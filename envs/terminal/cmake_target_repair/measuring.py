"""Build, install, move and use what the agent left, in a verifier sandbox: the facts that were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from ...core import Sandbox, VerifierError
from ...parts.probe import run_probe
from .downstream import library_file, package_consumer, variants, vendoring
from .project import Project

_MEASURE_S = 150.0
_STEP_S = 40.0
_PROBE = "package_probe.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Fact → value, and for each variant what did not work."""

    facts: Mapping[str, str]
    problems: Mapping[str, Sequence[str]]


async def measure(
    sandbox: Sandbox, project: Project, cmake: Mapping[str, str], inputs: Sequence[int], moved: str
) -> Seen:
    """`cmake` are the agent's files; everything else of the project is our own.

    Raises:
        VerifierError: something ran out of time, and the right files do so too: the machine is overloaded.
    """
    ways = variants(project)
    looked_for: dict[str, list[str]] = {}
    for variant in ways:
        if variant.vendored:
            continue
        for role in project.shape.roles:
            name = project.names[role]
            header = f"include/{project.names['P']}-{name}"
            where = [f"{header}/{project.names['P']}/{name}.hpp"]
            if role == "detail":
                where = [f"{header}/{name}.hpp", *where, f"include/{name}.hpp"]
            looked_for[f"{variant.name}/files:include:{name}"] = where
            if role not in ("base", "detail"):
                for configuration in project.shape.configurations:
                    file = library_file(project, role, variant, configuration)
                    looked_for[f"{variant.name}/files:{configuration}:{file}"] = [f"lib/{file}", f"lib64/{file}"]
    shape = project.shape
    payload: Any = {
        "variants": [asdict(variant) for variant in ways],
        "generator": "Ninja Multi-Config" if len(shape.consumers) > 1 else "Ninja",
        "configurations": list(shape.configurations),
        "consumers": list(shape.consumers),
        "project": {**project.sources, **cmake},
        "consumer": package_consumer(project),
        "vendoring": vendoring(project),
        "libraries": [project.names[role] for role in project.libraries],
        "demo": f"{project.names['P']}-demo",
        "inputs": [str(value) for value in inputs],
        "moved": moved,
        "looked_for": looked_for,
        "step_s": _STEP_S,
    }
    # the probe runs as root and takes the agent's rights on for what is the agent's: the sandbox must know of that
    await sandbox.exec(["true"], user="agent", timeout_s=10)
    answer, failure = await _probe(sandbox, payload, timeout_s=_MEASURE_S)
    if answer is None or any(one["late"] for one in answer.values()):
        await _require_time(sandbox, {**payload, "project": {**project.sources, **project.cmake}})
    if answer is None:
        return Seen(facts={}, problems={"every way": [failure]})
    facts = {name: value for one in answer.values() for name, value in one["facts"].items()}
    return Seen(facts=facts, problems={name: one["problems"] for name, one in answer.items() if one["problems"]})


async def _require_time(sandbox: Sandbox, payload: Mapping[str, Any]) -> None:
    """A control: the right files in half the time, or the machine is overloaded and nobody's files are to blame."""
    half: Any = {**payload, "step_s": payload["step_s"] / 2}
    answer, failure = await _probe(sandbox, half, timeout_s=_MEASURE_S / 2)
    late = [name for name, one in (answer or {}).items() if one["late"]]
    if answer is None or late:
        raise VerifierError(
            f"the right files {failure or f'did not end in time ({late[0]})'}: the machine is overloaded"
        )


async def _probe(sandbox: Sandbox, payload: Any, *, timeout_s: float) -> tuple[dict[str, Any] | None, str]:
    """What the probe saw, variant by variant; or nothing, and why."""
    result = await run_probe(
        sandbox, files(__package__ or "").joinpath(_PROBE).read_text(), payload, timeout_s=timeout_s
    )
    value: Any = result.value
    return (value, "") if isinstance(value, dict) else (None, result.failure)
