"""Play scenarios with a controller in the engine, in a project of our own.

The project and its scenarios are root's; the engine runs as the agent, since a controller is the agent's program. What
comes back are tracks, or why there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...core import Json, Sandbox, VerifierError
from ...parts.probe import run_probe
from .controllers import ASSETS
from .stage import Marks, Track

SCRIPT = "player.gd"
PROJECT = ("project.godot", "playtest.tscn", "playtest.gd", "recorder.gd")
"""The files of a project that do not depend on the instance."""
_PLACE = "/tmp/stage"

_PROBE = """
import os, subprocess, tempfile
folder = tempfile.mkdtemp()
out = os.path.join(folder, "record.json")
here = {"HOME": folder, "PATH": os.environ["PATH"], "LANG": "en_US.UTF-8", "PLAYTEST_OUT": out}
here["PLAYTEST_IN"] = os.path.join(payload["project"], "scenarios.json")
command = ["godot3-server", "--path", payload["project"], "--fixed-fps", "60"]
try:
    ended = subprocess.run(command, env=here, capture_output=True, timeout=payload["seconds"])
    said = ended.stderr.decode("utf-8", "replace")
except subprocess.TimeoutExpired:
    said = "endless"
wrong = [line for line in said.splitlines() if line.startswith("SCRIPT ERROR")]
try:
    with open(out) as file:
        records = json.load(file)
except (OSError, ValueError):
    records = None
_answer({"records": records, "said": "the engine did not end" if said == "endless" else " | ".join(wrong)[:300]})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one scenario gave."""

    track: Track
    marks: Marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One record for each scenario, or None and why; `said` are the engine's complaints."""

    records: tuple[Record, ...] | None
    said: str = ""


async def lay_out(sandbox: Sandbox, name: str, script: str | None, scene: str, scenarios: Sequence[Json]) -> str:
    """Write a project with this controller, or with the one that was handed in; where it lies.

    Raises:
        VerifierError: what was handed in could be read, but not be copied.
    """
    import json

    place = f"{_PLACE}/{name}"
    files: Mapping[str, str] = {
        **{path: (ASSETS / path).read_text() for path in PROJECT},
        "player.tscn": scene,
        **({} if script is None else {SCRIPT: script}),
        "scenarios.json": json.dumps(list(scenarios)),
    }
    for path, text in files.items():
        await sandbox.write(f"{place}/{path}", text.encode(), user="root")
    if script is None:
        # copied there, not sent: a right script has the lines that the verifier must not tell
        done = await sandbox.exec(["cp", f"/workspace/{SCRIPT}", f"{place}/{SCRIPT}"], timeout_s=20, user="root")
        if not done.ok:
            raise VerifierError(f"{SCRIPT} was not copied: {done.stderr.decode('utf-8', 'replace')[-200:]}")
    return place


async def play(sandbox: Sandbox, place: str, scenarios: Sequence[Mapping[str, Json]], *, timeout_s: float) -> Played:
    """The records of all scenarios."""
    payload: Json = {"project": place, "seconds": timeout_s}
    answer = await run_probe(sandbox, "import json\n" + _PROBE, payload, timeout_s=timeout_s + 10, user="agent")
    if not isinstance(answer.value, dict):
        return Played(records=None, said=answer.failure)
    said = str(answer.value.get("said", ""))
    records = _records(answer.value.get("records"), scenarios)
    return Played(records=records, said=said or ("" if records else "the engine left no record"))


def _records(value: Json, scenarios: Sequence[Mapping[str, Json]]) -> tuple[Record, ...] | None:
    """None where the record is not what the driver writes."""
    try:
        rows = cast("list[dict[str, Json]]", value)
        records = [
            Record(
                track=[(float(x), float(y)) for x, y in cast("list[tuple[float, float]]", row["track"])],
                marks={name: int(tick) for name, tick in cast("dict[str, float]", row["marks"]).items()},
            )
            for row in rows
        ]
    except (TypeError, ValueError, KeyError, AttributeError):
        return None
    lengths = [len(record.track) for record in records]
    return tuple(records) if lengths == [scenario["ticks"] for scenario in scenarios] else None
