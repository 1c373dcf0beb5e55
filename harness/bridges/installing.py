"""Tests that install what they run with, as they start: that is done when their image is built, since no sandbox has a
network.

Most test scripts begin with the same few lines: `apt-get install curl`, a download of uv, `uv add pytest==…` or
`uvx --with …`. What they name is installed into an image of the tests' own, and while they run, commands of the same
names do nothing but run what is installed. A script that fetches anything else cannot be carried.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from metier.envs.bridges.folder import Held

from .recipes import ImageDraft

TOOLS = "/opt/metier-grader"
STAND_INS = "/opt/metier-stand-ins"
_REQUIREMENT = re.compile(r"^[A-Za-z][\w.-]*(\[[\w,-]+\])?([=<>~!]=?[\w.*]+(,[=<>~!]=?[\w.*]+)*)?$")
_DEBIAN = re.compile(r"^[a-z0-9][a-z0-9+.-]+$")
_FETCHES = re.compile(
    r"\b(?:curl|wget)\b.*https?://(?!localhost|127\.0\.0\.1|0\.0\.0\.0)|\bgit\s+clone\s+(?:https?|git@)"
)
_OTHERS = re.compile(r"\b(?:npm|pnpm|yarn|cargo|go|gem|conda)\s+(?:install|add|get|ci)\b")
_UV = re.compile(r"\b(?:curl|wget)\b.*\bastral\.sh/uv")
_WITH_VALUE = frozenset({"-w", "--with", "--from", "-p", "--python", "--index-url", "--directory", "--project"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Installs:
    """What a test script installs."""

    python: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    fetches: str = ""
    """A line that fetches what cannot be installed beforehand; empty where there is none."""
    starts: bool = False
    """Whether it installs at all."""


def installs(script: str) -> Installs:
    """What a script installs, line by line.

    Example:
        >>> installs("apt-get install -y curl jq\\nuvx -p 3.13 -w pytest==8.4.1 pytest /tests/t.py").python
        ('pytest==8.4.1',)
    """
    python: dict[str, str] = {}
    debian: list[str] = []
    starts = False
    for words, line in _commands(script):
        match words:
            case ["apt-get" | "apt", *rest] if "install" in rest:
                debian += [word for word in rest[rest.index("install") + 1 :] if _DEBIAN.match(word)]
                starts = True
            case ["apt-get" | "apt", "update", *_]:
                starts = True
            case ["uvx", *rest] | ["uv", "tool", "run", *rest]:
                _add(python, _run_with(rest, names_itself=True))
                starts = True
            case ["uv", "run", *rest]:
                _add(python, _run_with(rest, names_itself=False))
                starts = True
            case ["uv", "add", *rest] | ["uv", "pip", "install", *rest] | ["pip" | "pip3", "install", *rest]:
                _add(python, rest)
                starts = True
            case ["python" | "python3", "-m", "pip", "install", *rest]:
                _add(python, rest)
                starts = True
            case ["uv", *_]:
                starts = True
            case _:
                if _UV.search(line):
                    starts = True
                elif _FETCHES.search(line) or _OTHERS.search(line):
                    return Installs(fetches=line, starts=True)
    packages = tuple(dict.fromkeys(name for name in debian if name not in ("curl", "wget")))
    return Installs(python=tuple(python.values()), debian=packages, starts=starts)


def tests_image(agents: ImageDraft, wanted: Installs) -> ImageDraft:
    """The agent's image with what the tests install, and the commands that stand in for installing it."""
    debian = " ".join(["python3-venv", *wanted.debian])
    lines = [
        f"FROM metier/{agents.name}",
        f"RUN apt-get update && apt-get install -y --no-install-recommends {debian} && rm -rf /var/lib/apt/lists/*",
        f"RUN python3 -m venv --system-site-packages {TOOLS}",
    ]
    if wanted.python:
        packages = " ".join(map(shlex.quote, wanted.python))
        lines.append(f"RUN {TOOLS}/bin/pip install {packages}")
    lines += [f"COPY stand-ins/ {STAND_INS}/", f"RUN chmod 755 {STAND_INS}/*"]
    files = {f"stand-ins/{name}": Held(data=text.encode(), executable=True) for name, text in _STAND_INS.items()}
    said = ", ".join([*wanted.python, *wanted.debian]) or "nothing"
    note = f"tests install {said} as they start: installed in their image beforehand, under Python 3 of the image"
    return ImageDraft(dockerfile="\n".join(lines) + "\n", files=files, workdir=agents.workdir, notes=(note,))


def _commands(script: str) -> Iterable[tuple[list[str], str]]:
    """Each simple command's words, and the line that it is in."""
    joined = script.replace("\\\n", " ")
    for raw in joined.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        for part in re.split(r"&&|\|\||[;|]|\bthen\b|\bdo\b", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                continue
            while words and (words[0] in ("if", "!", "sudo", "time", "exec") or re.match(r"^\w+=", words[0])):
                words = words[1:]
            if words:
                yield words, line


def _run_with(words: list[str], *, names_itself: bool) -> list[str]:
    """The packages of `--with` and the like, and the program itself where it is a package too."""
    found: list[str] = []
    at, has_from = 0, False
    while at < len(words) and words[at].startswith("-"):
        name, _, value = words[at].partition("=")
        if name in _WITH_VALUE and not value and at + 1 < len(words):
            at += 1
            value = words[at]
        if name in ("-w", "--with", "--from"):
            found += value.split(",")
            has_from = has_from or name == "--from"
        at += 1
    if names_itself and not has_from and at < len(words):
        found.append(words[at].replace("@", "==") if "@" in words[at] else words[at])
    return found


def _add(known: dict[str, str], words: Iterable[str]) -> None:
    """Packages by name; one that states a version wins over one that does not."""
    for word in words:
        if _REQUIREMENT.match(word):
            name = re.split(r"[\[=<>~!]", word)[0].lower().replace("_", "-")
            if name not in known or len(word) > len(known[name]):
                known[name] = word


_RUNNER = """\
while [ $# -gt 0 ]; do
    case "$1" in
        -w|--with|--from|-p|--python|--index-url|--directory|--project) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
exec "$@"
"""
_STAND_INS = {
    "apt-get": "#!/bin/sh\nexit 0\n",
    "apt": "#!/bin/sh\nexit 0\n",
    "curl": '#!/bin/sh\ncase "$*" in *astral.sh*) exit 0 ;; esac\nexec /usr/bin/curl "$@"\n',
    "wget": '#!/bin/sh\ncase "$*" in *astral.sh*) exit 0 ;; esac\nexec /usr/bin/wget "$@"\n',
    "pip": '#!/bin/sh\n[ "$1" = install ] && exit 0\nexec python3 -m pip "$@"\n',
    "pip3": '#!/bin/sh\n[ "$1" = install ] && exit 0\nexec python3 -m pip "$@"\n',
    "uvx": f"#!/bin/sh\n{_RUNNER}",
    "uv": f"""\
#!/bin/sh
what=$1
shift
case "$what" in
    run) ;;
    tool) [ "$1" = run ] || exit 0; shift ;;
    venv)
        for last in "" "$@"; do :; done
        case "$last" in -*|"") last=.venv ;; esac
        mkdir -p "$last/bin" && touch "$last/bin/activate"
        exit 0 ;;
    *) exit 0 ;;
esac
{_RUNNER}""",
}
