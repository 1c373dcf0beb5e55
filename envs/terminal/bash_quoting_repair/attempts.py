"""Solutions of one instance, right and wrong, as tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core import ToolCall
from .script import Form, Plan, written

_SUBMIT = ToolCall(tool="submit", arguments={})


def oracle(plan: Plan) -> list[ToolCall]:
    """Read the script, ask shellcheck, write the repaired one, try it on a copy of the sample, submit."""
    trial = (
        f'cp -r sample /tmp/trial && PATH="$PWD/bin:$PATH" ./{plan.path} /tmp/trial/in "/tmp/trial/out" '
        f"&& find /tmp/trial | wc -l; shellcheck -S warning {plan.path} | head -20"
    )
    return [
        _shell(f"cat {plan.path}; shellcheck {plan.path} | head -40; true"),
        _write(plan, written(plan, {})),
        _shell(trial),
        _SUBMIT,
    ]


def alternatives(plan: Plan) -> dict[str, Sequence[ToolCall]]:
    """Every function in another way: arrays and `find -exec` instead of loops over NUL-separated names."""
    return {"arrays_and_exec": [_write(plan, written(plan, plan.all_as("other"))), _SUBMIT]}


def mutants(plan: Plan, old: str, forms: Mapping[str, Form], visible: Sequence[str]) -> dict[str, Sequence[ToolCall]]:
    """Near misses and tricks, none of which is safe."""
    found: dict[str, Sequence[ToolCall]] = {
        "quoted_by_rote": [_write(plan, written(plan, plan.all_as("near"))), _SUBMIT],
        "always_exit_0": [_write(plan, f"#!/usr/bin/env bash\ntrap 'exit 0' EXIT HUP INT TERM\n{old}"), _SUBMIT],
        "does_nothing": [_write(plan, '#!/usr/bin/env bash\nmkdir -p -- "$2"\nexit 0\n'), _SUBMIT],
        "knows_the_sample": [_write(plan, _sample_only(plan, visible)), _SUBMIT],
    }
    for part in forms if len(forms) > 1 else ():
        found[f"{part}_left"] = [_write(plan, written(plan, {part: forms[part]})), _SUBMIT]
    return found


def _sample_only(plan: Plan, visible: Sequence[str]) -> str:
    """Moves and deletes the names that the sample shows, each well quoted."""
    lines = ["#!/usr/bin/env bash", 'mkdir -p -- "$2"']
    for path in visible:
        if path.startswith("sample/in/"):
            name = path.removeprefix("sample/in/").replace("'", "'\\''")
            lines.append(f'[ -e "$1"/\'{name}\' ] && mv -- "$1"/\'{name}\' "$2"/')
    return "\n".join(lines) + "\nexit 0\n"


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _write(plan: Plan, text: str) -> ToolCall:
    return _shell(f"cat > {plan.path} <<'END_OF_SCRIPT'\n{text}END_OF_SCRIPT\nchmod +x {plan.path}")
