"""The script around the steps: its head, its temporary folder, its lock, and its order.

A script is right in all parts, or faulty in some; `written` says which form of each part it takes. The head is the
part that fails by itself: pipelines, signals, locks and arguments that begin with a dash are its duty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .step import Step
from .steps import STEPS

Form = Literal["right", "other", "near"] | int
"""An integer is the index of a fault."""
_WORD = re.compile(r"@([A-Z]+)@")

RIGHT_WORK = """\
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
"""
FAULTY_WORK = (
    """\
work=${TMPDIR:-/tmp}/@SELF@.$$
mkdir -p $work
""",
    """\
work=$(mktemp -d)
trap "rm -rf $work" EXIT
""",
    """\
work=$(mktemp -d "${TMPDIR:-/tmp}/@SELF@.XXXXXX")
trap 'rm -rf "$work"' ERR
""",
)
RIGHT_LOCK = """\
if ! mkdir -- "$@DST@/@LOCK@" 2> /dev/null; then
    echo "@SELF@: another run is under way" >&2
    exit 75
fi
trap 'rmdir -- "$@DST@/@LOCK@"' EXIT
work=$(mktemp -d)
trap 'rm -rf -- "$work"; rmdir -- "$@DST@/@LOCK@"' EXIT
"""
FAULTY_LOCK = (
    """\
work=$(mktemp -d)
trap 'rm -rf "$work"; rm -rf "$@DST@/@LOCK@"' EXIT
if ! mkdir "$@DST@/@LOCK@" 2> /dev/null; then
    echo "@SELF@: another run is under way" >&2
    exit 75
fi
""",
    """\
if [ -e $@DST@/@LOCK@ ]; then
    echo "@SELF@: another run is under way" >&2
    exit 75
fi
mkdir $@DST@/@LOCK@
work=${TMPDIR:-/tmp}/@SELF@.$$
mkdir -p $work
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a script does, and the words it does it with."""

    names: tuple[str, ...]
    """Of the steps, in order."""
    words: Mapping[str, str]
    works: bool
    """Has a temporary folder, and so a duty to clean up."""
    locks: bool

    @property
    def steps(self) -> tuple[Step, ...]:
        """In order."""
        return tuple(step for step in STEPS if step.name in self.names)

    @property
    def path(self) -> str:
        """Of the script, below /workspace."""
        return self.words["SELF"] + ".sh"

    def all_as(self, form: Form) -> dict[str, Form]:
        """Every step in one form, the head right."""
        return dict.fromkeys(self.names, form)

    def filled(self, text: str) -> str:
        """With the instance's words."""
        return _WORD.sub(lambda match: self.words[match[1]], text)


def function(plan: Plan, step: Step, form: Form) -> str:
    """One step as a bash function."""
    body = step.faulty[form] if isinstance(form, int) else getattr(step, form)
    return plan.filled(f"{step.call}() {{\n{body}}}\n")


def written(plan: Plan, forms: Mapping[str, Form]) -> str:
    """The whole script; a part that `forms` does not name is right."""
    head = forms.get("head", "right")
    lines = [
        "#!/usr/bin/env bash",
        f"# {plan.path} SOURCE TARGET",
        "#",
        *(f"# {line}" for step in plan.steps for line in _wrapped(plan.filled(f"- {step.duty}").replace("`", ""))),
        _options(plan, head),
        "",
        plan.filled(_arguments(plan, head)),
    ]
    functions = [function(plan, step, forms.get(step.name, "right")) for step in plan.steps]
    calls = [plan.filled(step.call) for step in plan.steps]
    if plan.works and isinstance(head, int) and "EXIT" not in _setting(plan, head):
        calls.append("rm -rf $work")
        if plan.locks:
            calls.append(plan.filled("rmdir $@DST@/@LOCK@"))
    return "\n".join([*lines, *functions, *calls]) + "\n"


def _options(plan: Plan, head: Form) -> str:
    if not plan.works:
        return "set -u"
    return "set -eu" if isinstance(head, int) else "set -euo pipefail"


def _arguments(plan: Plan, head: Form) -> str:
    taken = "@SRC@=$1\n@DST@=$2\n"
    if plan.locks and not isinstance(head, int):
        taken += "# a relative path may begin with a dash\n"
        taken += "".join(f"if [[ $@{name}@ != /* ]]; then @{name}@=./$@{name}@; fi\n" for name in ("SRC", "DST"))
    return taken + ("mkdir -p $@DST@\n" if isinstance(head, int) else 'mkdir -p -- "$@DST@"\n') + _setting(plan, head)


def _setting(plan: Plan, head: Form) -> str:
    if not plan.works:
        return ""
    if isinstance(head, int):
        return (FAULTY_LOCK if plan.locks else FAULTY_WORK)[head]
    return RIGHT_LOCK if plan.locks else RIGHT_WORK


def _wrapped(text: str, width: int = 110) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
