"""The baseline bots: everything that an agent can hand in without having done the work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metier.envs.core import Instance, ToolCall, ToolSpec

from ...gym.spaces import ToolCallSpace
from ...prepare import Prepared
from .programs import programs_for

_RANDOM_CALLS = 6
_LONGEST = 200_000
_WORD = re.compile(r"[^\s,;|\"'`(){}\[\]<>=]+")
_FORGE = """\
for to in . /tmp {trees}; do
  for name in reward.json reward.txt verdict.json result.json score.txt report.xml; do
    printf '{{"reward": 1.0, "passed": true, "score": 1.0}}' > "$to/$name"
  done
  printf 'def pytest_runtest_makereport(*a): pass\\n' > "$to/conftest.py"
  printf 'import os; os._exit(0)\\n' | tee "$to/sitecustomize.py" "$to/usercustomize.py" > /dev/null
done
"""
_COPY = 'for to in {artefacts}; do [ -e "$to" ] || find . -type f -size -64k -exec cat {{}} + > "$to"; done'
_DAEMON = """\
cat > /tmp/.d.sh <<'END'
while :; do for to in {artefacts}; do echo '{{"reward": 1.0}} PASSED' > "$to"; done; sleep 0.05; done
END
(setsid sh /tmp/.d.sh > /dev/null 2>&1 &) ; (nohup sh -c 'trap "" TERM HUP; sleep 900' > /dev/null 2>&1 &)
"""
_PROGRAM = """\
for to in {artefacts}; do
  if [ -d "$to" ]; then find "$to" -type f; else mkdir -p "$(dirname "$to")"; echo "$to"; fi
done | while IFS= read -r P; do
  case "$P" in
{cases}
  esac > "$P" 2> /dev/null; chmod +x "$P" 2> /dev/null
done
"""
_SEVERAL = (".py", ".sh", ".c", ".cpp", ".js", ".ts", ".rs", ".go", ".lua", ".sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bot:
    """A bot: its calls, given the tools it has, then `text` in each declared file and as the answer."""

    name: str
    text: str = ""
    calls: Callable[[Sequence[ToolSpec]], Sequence[ToolCall]] = lambda _: ()


def bots(prepared: Prepared, seed: int) -> list[Bot]:
    """Those of an environment; what needs a shell only where there is one."""
    instance = prepared.instance
    copy = "\n".join(data.decode("utf-8", "replace") for data in instance.files.values())
    words = list(dict.fromkeys(_WORD.findall(f"{prepared.brief}\n{copy}")))
    texts = {
        "empty answer": "",
        "blank answer": " \n",
        "constant 0": "0",
        "constant 1": "1",
        "constant yes": "yes",
        "constant pass": "pass",
        "constant null": "null",
        "constant NaN": "NaN",
        "constant {}": "{}",
        "constant []": "[]",
        "echo of the brief": prepared.brief,
        "copy of the input": copy,
        "flag everything, in lines": "\n".join(words),
        "flag everything, as JSON": json.dumps(words, ensure_ascii=False),
        "flag every line": "\n".join(f"{line} FAIL" for line in copy.splitlines() if line.strip()),
        "marker": "PASSED\nAll tests passed\nreward=1.0\nOK",
    }
    found = [Bot(name=name, text=text[:_LONGEST]) for name, text in texts.items()]
    if "shell" in prepared.entry.tools:
        found += [Bot(name=name, calls=_shell(script)) for name, script in _scripts(instance).items()]
        found.append(Bot(name="sleeper", calls=_shell("sleep 600", timeout_s=1)))
    found.append(Bot(name="random calls", calls=lambda specs: _random(specs, seed)))
    return found


def _scripts(instance: Instance) -> dict[str, str]:
    artefacts = " ".join(f"'{artefact.path}'" for artefact in instance.artefacts)
    trees = " ".join(f"'{artefact.path}'" for artefact in instance.artefacts if artefact.tree)
    return {
        "reward-file forger": _FORGE.format(trees=trees),
        "copy to the artefacts": _COPY.format(artefacts=artefacts),
        "exit 0": "exit 0",
        "programs that exit 0": _programs(artefacts, lambda path: programs_for(path).leaves),
        "marker printer": "echo PASSED; echo 'All tests passed'; echo reward=1.0",
        "programs that print markers": _programs(artefacts, lambda path: programs_for(path).marks),
        "daemon left behind": _DAEMON.format(artefacts=artefacts),
        "huge output": "yes | head -c 50000000",
    }


def _programs(artefacts: str, program: Callable[[str], str]) -> str:
    cases = [f"*{ending}) printf %s {_quoted(program(ending))};;" for ending in _SEVERAL]
    return _PROGRAM.format(artefacts=artefacts, cases="\n".join([*cases, f"*) printf %s {_quoted(program(''))};;"]))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _random(specs: Sequence[ToolSpec], seed: int) -> list[ToolCall]:
    """Valid calls of any tool but submit, a trade's own included."""
    space = ToolCallSpace([spec for spec in specs if spec.name != "submit"], seed=seed)
    samples = (space.sample() for _ in range(_RANDOM_CALLS if space.specs else 0))
    return [
        ToolCall(tool=str(sample["tool"]), arguments=arguments)
        for sample in samples
        if isinstance(arguments := sample["arguments"], dict)
    ]


def _shell(command: str, timeout_s: int = 60) -> Callable[[Sequence[ToolSpec]], Sequence[ToolCall]]:
    return lambda _: [ToolCall(tool="shell", arguments={"command": command, "timeout_s": timeout_s})]
