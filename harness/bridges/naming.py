"""From other people's names to ours: ids and images."""

from __future__ import annotations

import re

from metier.envs.bridges.foreign import ForeignTask

BRIDGED = "bridged-"
"""How the names of imported tasks' images begin."""


def is_bridged(image: str) -> bool:
    """Whether an image is that of an imported task."""
    return image.startswith(BRIDGED)


def environment_id(task: ForeignTask) -> str:
    """`harbor/OrgName-v0`: the form is the domain, and words are joined as ids here are.

    Example:
        >>> camel("acme/fix-the_build.2"), camel("3d-scan"), camel("über")
        ('AcmeFixTheBuild2', 'Task3dScan', 'Ber')
    """
    return f"{task.form}/{camel(task.name)}-v0"


def camel(name: str) -> str:
    """Words of ASCII letters and digits, each with a capital."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    joined = "".join(word[0].upper() + word[1:] for word in words)
    return joined if joined[:1].isalpha() else f"Task{joined}"


def one_line(text: str, most: int = 120) -> str:
    """The beginning of a text on one line, for a registry's summary."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
