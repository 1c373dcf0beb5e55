"""Which folders a task writes to, found in what it says: instruction, Dockerfile, tests and solution.

A sandbox lets an agent write to /workspace and /tmp only. So each folder outside of the system that a task's texts
name becomes a link into /workspace, as does a file of the root itself. One that no task meant costs a link; one of the
system's cannot be carried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PATH = re.compile(r"(?<![\w./:~$}\\-])/([A-Za-z][\w.-]*)(?:/([A-Za-z][\w.-]*))?")
_SYSTEM = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "media", "metier", "proc", "run", "sbin", "sys"}
    | {"tmp", "usr", "workspace"}
)
_DEEP = frozenset({"opt", "var", "mnt", "srv"})
"""Of these only what lies in them; a base may have things of its own there."""
_FIXED = frozenset({"tests", "solution", "oracle", "logs"})
_OWN = frozenset({("opt", "metier-bridge"), ("var", "lib"), ("var", "run"), ("var", "cache")})
_WRITTEN = re.compile(
    r"(?:>>?|\btee|\bmv\s+\S+|\bcp\s+\S+|\btouch|\bmkdir(?:\s+-p)?)\s+(/(?:etc|usr|var/lib|run)/[\w./-]+)"
)


def writable_trees(texts: Iterable[str], workdir: str) -> tuple[str, ...]:
    """The folders, sorted; none lies in another.

    Example:
        >>> writable_trees(["Write /app/out.txt and /opt/site/x; see /etc/hosts, http://a/b, and/or."], "/srv/w/deep")
        ('/app', '/opt/site', '/srv/w')
    """
    found: set[str] = set()
    for text in [*texts, f" {workdir}"]:
        for match in _PATH.finditer(text):
            top, inner = match.groups()
            if top in _SYSTEM or top in _FIXED:
                continue
            if top not in _DEEP:
                found.add(f"/{top}")
            elif inner and (top, inner) not in _OWN:
                found.add(f"/{top}/{inner}")
    return tuple(sorted(found))


def is_file(tree: str) -> bool:
    """Whether it is named as files are; what the image has there decides first.

    Example:
        >>> is_file("/result.txt"), is_file("/app")
        (True, False)
    """
    return "." in tree.rsplit("/", 1)[-1].strip(".")


def written_to_the_system(texts: Iterable[str]) -> list[str]:
    """Paths of the system that a text seems to write to, which no agent here can."""
    return sorted({match[1] for text in texts for match in _WRITTEN.finditer(text)})
