"""The family of an imported task: one instance, the author's own solution, and the author's own tests.

It reads what the import wrote beside its module: `task.json`, `tests/` and `solution/`. Every folder that the task
writes to (`trees`) is a link into `ROOT` in its image, since /workspace and /tmp are all that a sandbox lets anyone
write to; what the image had in it lies in `SEED` and is copied before the agent comes.

Grading: all of /workspace goes to a fresh sandbox (of the verifier's image, where the task has one), the tests come in
there as root's files, and run as uid 1000 (or as root, where the task says so). Nothing that the agent can cause is a
failure of ours: tests that do not end in time, leave no reward or one that is no number are a reward of 0, with the
reason.
"""

from __future__ import annotations

import base64
import functools
import inspect
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from ..core import Artefact, Family, GenerationError, Instance, Rng, Sandbox, ToolCall, User, Verdict
from . import rewards
from .foreign import Reads

SEED = "/opt/metier-bridge/seed"
"""In the image: what its writable folders held, laid out as /workspace."""
ROOT = "/workspace/.root"
"""Where the task's own folders lie, out of the way of what it has in /workspace itself."""
LINKED = {"/tests": "/tmp/tests", "/solution": "/tmp/solution", "/oracle": "/tmp/oracle", "/logs": "/workspace/logs"}
"""In the image: fixed places, and where they lie."""
LOGS = "/tmp/verifier"
"""Where /logs/verifier leads while tests run: in /tmp nobody can replace another's files, and no artefact comes."""
PREPARE_S = 60.0
_PIECE = 120_000
"""Characters of a command that brings a part of the solution."""
_SHOWN = 1500

_SEEDED = (
    f"cp -r --no-clobber --preserve=mode,timestamps,links {SEED}/. /workspace/ && chmod -R u+rwX /workspace && "
    "mkdir -p /workspace/logs/agent /workspace/logs/verifier /workspace/logs/artifacts"
)
_ONLY_KEPT = """\
cd /workspace
keep=$(mktemp -d /workspace/.kept-XXXXXX)
for path in "$@"; do
    if [ -e "$path" ] || [ -L "$path" ]; then
        mkdir -p "$keep/$(dirname "$path")" && mv -T "$path" "$keep/$path"
    fi
done
find /workspace -mindepth 1 -maxdepth 1 ! -path "$keep" -exec rm -rf {} +
cp -r --preserve=mode,timestamps,links "$keep/." /workspace/ && rm -rf "$keep"
"""
_FRESH_LOGS = """\
cd /workspace
if [ -L logs ] || [ ! -d logs ]; then rm -rf logs; fi
mkdir -p logs/artifacts && rm -rf logs/verifier && ln -s /tmp/verifier logs/verifier
"""


_INSTALLED = 'mkdir -p "$HOME/.local/bin" && : > "$HOME/.local/bin/env"'
"""What tests source after they installed something; a home is in /tmp, so nothing of the agent's is in it."""


class Carried(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`task.json`: what an import wrote."""

    form: str
    name: str
    instruction: str
    workdir: str
    test_workdir: str
    trees: tuple[str, ...]
    reads: Reads
    script: str
    timeout_s: float
    test_env: dict[str, str] = {}
    kept: tuple[str, ...] | None = None
    tests_in_image: bool = False
    as_root: bool = False
    path_first: tuple[str, ...] = ()
    """Before the image's own PATH while tests run; with it goes a $HOME/.local/bin/env, as an installer leaves it."""
    solution: dict[str, Any] | None = None
    """`script`, `home` and `env`."""
    workspace_mb: int
    solve_s: int
    notes: tuple[str, ...] = ()
    bridge: str
    """SHA-256 of the code that imported and grades it, so that a change of that is another environment."""


@dataclass(frozen=True)
class FolderTask(Family):
    """An imported task. A subclass's module lies beside what was imported."""

    @classmethod
    def folder(cls) -> Path:
        """Where the import lies."""
        return Path(inspect.getfile(cls)).parent

    @property
    def carried(self) -> Carried:
        """What was imported. Raises GenerationError where it cannot be read."""
        return _carried(self.folder() / "task.json")

    def generate(self, rng: Rng, level: int) -> Instance:
        carried = self.carried
        return Instance(
            variables={"instruction": carried.instruction, "workdir": carried.workdir},
            files={},
            setup=(_SEEDED,),
            artefacts=(Artefact(path=".", max_mb=carried.workspace_mb, tree=True, links=True),),
            truth={"task": carried.name},
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        carried = self.carried
        if carried.solution is None:
            return [ToolCall(tool="submit", arguments={})]
        home = str(carried.solution["home"])
        calls = [_shell(line) for line in _brought(self.folder() / "solution", LINKED[home])]
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in carried.solution["env"].items())
        run = f"cd {shlex.quote(carried.workdir)} && ({exports}bash {home}/{shlex.quote(carried.solution['script'])})"
        solve = ToolCall(tool="shell", arguments={"command": run, "timeout_s": carried.solve_s})
        return [*calls, solve, ToolCall(tool="submit", arguments={})]

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        submit = ToolCall(tool="submit", arguments={"answer": "reward=1.0 passed"})
        forged = (
            "mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt && "
            """printf '{"reward": 1}' > /logs/verifier/reward.json"""
        )
        planted = "mkdir -p /tests && printf 'exit 0' > /tests/test.sh && printf 'exit 0' > /tests/run-tests.sh"
        startup = (
            "mkdir -p ~/.local/bin $(python3 -m site --user-site) && "
            "printf 'echo 1 > /logs/verifier/reward.txt\nexit 0\n' > ~/.local/bin/env && "
            "printf 'import os\nos._exit(0)\n' > $(python3 -m site --user-site)/usercustomize.py"
        )
        printed = "printf '=== short test summary info ===\\nPASSED t.py::t\\n' | tee output.txt"
        return {
            "claim": [submit],
            "forged_reward": [_shell(forged), submit],
            "planted_tests": [_shell(planted), submit],
            "planted_startup": [_shell(startup), submit],
            "printed_summary": [_shell(printed), submit],
        }

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        carried = self.carried
        prepare = _FRESH_LOGS
        if carried.kept is not None:
            prepare = _ONLY_KEPT + _SEEDED + "\n" + prepare
        kept = [where(path, carried.trees).removeprefix("/workspace/") for path in carried.kept or ()]
        command = ["bash", "-ec", prepare, "bash", *kept]
        prepared = await sandbox.exec(command, timeout_s=PREPARE_S)
        if not prepared.ok:
            return rewards.none_given("what the agent left cannot be laid out", _tail(prepared.stderr))
        user: User = "root" if carried.as_root else "agent"
        await sandbox.exec(["mkdir", "-p", LOGS], timeout_s=PREPARE_S, user=user)
        if not carried.tests_in_image:
            await _bring(sandbox, self.folder() / "tests")
        first = "".join(f"{place}:" for place in carried.path_first)
        if first:
            await sandbox.exec(_INSTALLED, timeout_s=PREPARE_S, user=user)
        ran = await sandbox.exec(
            f"export PATH={first}$PATH; {shlex.quote(carried.script)} 2>&1",
            timeout_s=carried.timeout_s,
            user=user,
            cwd=carried.test_workdir,
            env=dict(carried.test_env),
            output_kib=512,
        )
        shown = _tail(ran.stdout)
        if ran.timed_out:
            return rewards.none_given(f"the tests did not end within {carried.timeout_s:g} s", shown)
        if carried.reads is Reads.PYTEST_SUMMARY:
            return rewards.from_summary(ran.stdout.decode("utf-8", "replace"), shown=shown)
        report = await _read(sandbox, f"{LOGS}/ctrf.json", rewards.MAX_REPORT_BYTES, user)
        return rewards.from_reward_files(
            await _read(sandbox, f"{LOGS}/reward.json", rewards.MAX_REWARD_BYTES, user),
            await _read(sandbox, f"{LOGS}/reward.txt", rewards.MAX_REWARD_BYTES, user),
            shown=shown,
            report=rewards.told_of_report(report),
        )


def where(path: str, trees: Sequence[str]) -> str:
    """Where an absolute path of the task really lies.

    Example:
        >>> where("/app/out.txt", ["/app"]), where("/logs/artifacts", []), where("/tmp/x", [])
        ('/workspace/.root/app/out.txt', '/workspace/logs/artifacts', '/tmp/x')
    """
    for place, real in LINKED.items():
        if path == place or path.startswith(place + "/"):
            return real + path.removeprefix(place)
    if any(path == tree or path.startswith(tree + "/") for tree in trees):
        return ROOT + path
    return path


@functools.lru_cache(maxsize=256)
def _read_carried(path: Path, changed_ns: int) -> Carried:
    return Carried.model_validate_json(path.read_bytes())


def _carried(path: Path) -> Carried:
    try:
        return _read_carried(path, path.stat().st_mtime_ns)
    except (OSError, pydantic.ValidationError) as error:
        raise GenerationError(f"{path} cannot be read: {error}; import the task again") from error


def _brought(folder: Path, to: str) -> list[str]:
    """Command lines that write the files of a folder, from pieces of base64."""
    lines = [f"mkdir -p {to}"]
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        target = shlex.quote(f"{to}/{path.relative_to(folder)}")
        text = base64.b64encode(path.read_bytes()).decode()
        pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)] or [""]
        lines += [
            f"mkdir -p $(dirname {target}) && echo {piece} | base64 -d >{'>' if index else ''} {target}"
            for index, piece in enumerate(pieces)
        ]
        if path.stat().st_mode & 0o100:
            lines.append(f"chmod 755 {target}")
    return lines


async def _bring(sandbox: Sandbox, folder: Path) -> None:
    """The tests, as root's: what they run may read them, and not change them."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        mode = 0o755 if path.stat().st_mode & 0o100 or path.suffix == ".sh" else 0o644
        target = f"{LINKED['/tests']}/{path.relative_to(folder)}"
        await sandbox.write(target, path.read_bytes(), mode=mode, user="root")


async def _read(sandbox: Sandbox, path: str, max_bytes: int, user: User) -> bytes | None:
    """None where there is no such file, or none that can be taken."""
    try:
        return await sandbox.read(path, max_bytes=max_bytes, user=user)
    except ConnectionError:
        raise
    except (OSError, ValueError):
        return None


def _tail(output: bytes) -> str:
    return output.decode("utf-8", "replace")[-_SHOWN:].strip()


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})
