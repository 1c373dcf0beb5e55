"""Performs the author's solution: tool calls in order, as the tools of Metier would.

One bash and one Python live from the first call to the last, so directory, variables and imports survive. Run as
`python3 play.py calls.json`.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

WORKSPACE = Path("/workspace")


class Shell:
    """A bash that is given one command after another."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=WORKSPACE,
        )

    def run(self, command: str) -> None:
        """To its end; what it prints is printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        mark = f"--{secrets.token_hex(16)}--"
        script = f"eval {_quoted(command)} </dev/null\nprintf '\\n%s\\n' {mark}\n"
        self._process.stdin.write(script.encode())
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.strip() == mark.encode():
                return
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _edit(arguments: dict[str, Any]) -> None:
    path = WORKSPACE / str(arguments["path"])
    old, new = str(arguments["old"]), str(arguments["new"])
    if not old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        print(f"edit {path}: the old text occurs {text.count(old)} times", file=sys.stderr)
        return
    path.write_text(text.replace(old, new), encoding="utf-8")


def main() -> None:
    """Perform the calls of the file that is named."""
    os.chdir(WORKSPACE)
    sys.path.insert(0, str(WORKSPACE))
    calls: list[dict[str, Any]] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    shell = Shell()
    names: dict[str, Any] = {"__name__": "__main__"}
    for call in calls:
        arguments = call["arguments"]
        if call["tool"] == "shell":
            shell.run(str(arguments["command"]))
        elif call["tool"] == "python":
            try:
                exec(compile(str(arguments["code"]), "<python>", "exec"), names)
            except Exception:
                traceback.print_exc()
        elif call["tool"] == "edit":
            _edit(arguments)
        elif call["tool"] == "submit" and arguments.get("answer"):
            (WORKSPACE / "answer").write_text(str(arguments["answer"]), encoding="utf-8")


if __name__ == "__main__":
    main()
