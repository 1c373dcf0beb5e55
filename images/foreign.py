"""Another project's Dockerfile, as one of our dialect: what the engine would do, said so that any of our builders can.

A base that this machine's engine holds is taken as it is, by its id. Else a base that is as good as one of ours is
replaced by ours, and a note says so; any other is refused with what to do. Whatever an instruction says that an image
here does not have (a user, an entry point, a health check) is a note as well.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from metier.envs.core import ConfigError

_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")
_PLAIN = re.compile(r"^[\w@%+=:,./$-]*$")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_TOLD = {
    "CMD": "its command is not run: a sandbox starts its own steward",
    "ENTRYPOINT": "its entry point is not run: a sandbox starts its own steward",
    "HEALTHCHECK": "its health check is not run",
    "VOLUME": "it is no volume: what may be written is /workspace and /tmp",
    "STOPSIGNAL": "",
    "EXPOSE": "",
    "LABEL": "",
    "MAINTAINER": "",
}
_SUITABLE = (
    (r"(debian|buildpack-deps):(12|bookworm)([.-].*)?", "base", "Debian 12, from packages of the same release"),
    (
        r"(ubuntu(:.*)?|ghcr\.io/laude-institute/t-bench/ubuntu-\d+-\d+(:.*)?)",
        "base",
        "Debian 12 in place of Ubuntu: versions of packages differ",
    ),
    (r"python(:(3|latest|slim|3-slim|3\.11([.-].*)?))?", "terminal-python", "Debian 12's Python 3.11, with pytest"),
)


class NotTranslated(ConfigError):
    """A Dockerfile that cannot be built here; the message has the line. `base` is what is missing, if that is why."""

    def __init__(self, message: str, base: str = "") -> None:
        super().__init__(message, base)
        self.base = base

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """An image that the engine holds."""

    id: str
    """`sha256:…`"""
    environment: Mapping[str, str]
    workdir: str


@dataclass(slots=True, kw_only=True)
class Translated:
    """What came of it."""

    lines: list[str]
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Scripts that RUN needs beside the context: name → text."""
    workdir: str = "/"
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    """Where bases come from."""

    present: Callable[[str], Present | None]
    """Asks the engine."""
    substitutes: Mapping[str, str] = field(default_factory=dict[str, str])
    """A base → an image of ours that a person chose for it."""
    ours: Collection[str] = ()
    """The names of our images."""

    def start(self, base: str, into: Translated) -> None:
        """The FROM line. Raises NotTranslated."""
        name = re.sub(r"^(docker\.io/)?(library/)?", "", base)
        if base in self.substitutes:
            self._take(self.substitutes[base], base, "as you chose", into)
            return
        if name.startswith("metier/") and name.removeprefix("metier/") in self.ours:
            into.lines.append(f"FROM {name}")
            return
        found = self.present(base)
        if found is not None:
            into.lines.append(f"FROM {found.id}")
            into.lines += [_env(name, value) for name, value in found.environment.items()]
            into.workdir = found.workdir or "/"
            return
        for pattern, image, why in _SUITABLE:
            if re.fullmatch(pattern, name.partition("@")[0]):
                self._take(image, base, why, into)
                return
        raise NotTranslated(
            f"base image {base} is not available: no engine here holds it, and none of our images is as good; pull or "
            f"load it into the engine (docker pull {base}), or choose one of ours with --base {base}=NAME",
            base,
        )

    def _take(self, image: str, base: str, why: str, into: Translated) -> None:
        if image not in self.ours:
            raise NotTranslated(f"--base {base}={image}: no image of that name; there are {', '.join(self.ours)}", base)
        into.lines.append(f"FROM metier/{image}")
        into.notes.append(f"FROM {base}: metier/{image} is used ({why})")


def translate(text: str, *, context: Collection[str], folder: str, bases: Bases) -> Translated:
    """The Dockerfile `text` with its sources under `folder` of the recipe; `context` names the files there are.

    Raises:
        NotTranslated: an instruction that no builder here has, or a base that is not to be had.
    """
    made = _Translation(frozenset(context), folder, bases)
    for number, keyword, value, bodies in _instructions(text):
        try:
            made.step(keyword, value, bodies)
        except NotTranslated as error:
            raise NotTranslated(f"Dockerfile:{number}: {error}", error.base) from None
        except ValueError as error:
            raise NotTranslated(f"Dockerfile:{number}: {keyword}: {error}") from None
    if not made.out.lines:
        raise NotTranslated("Dockerfile:1: there is no FROM")
    return made.out


class _Translation:
    def __init__(self, context: frozenset[str], folder: str, bases: Bases) -> None:
        self.out = Translated(lines=[])
        self._context = context
        self._folder = folder
        self._bases = bases
        self._shell = ["/bin/sh", "-c"]
        self._before: dict[str, str] = {}
        self._num_scripts = 0

    def step(self, keyword: str, value: str, bodies: list[str]) -> None:
        """One instruction. Raises NotTranslated; ValueError for bad quotes."""
        if not self.out.lines and keyword not in ("FROM", "ARG"):
            raise NotTranslated(f"{keyword} before FROM")
        if keyword in _TOLD:
            if _TOLD[keyword]:
                self._note(f"{keyword}: {_TOLD[keyword]}")
            return
        known: dict[str, Callable[[str, list[str]], None]] = {
            "FROM": self._from,
            "ARG": self._arg,
            "ENV": self._environment,
            "RUN": self._run,
            "COPY": self._copy,
            "ADD": self._add,
            "WORKDIR": self._workdir,
            "USER": self._user,
            "SHELL": self._set_shell,
        }
        if keyword not in known:
            raise NotTranslated(f"{keyword} is not carried")
        known[keyword](value, bodies)

    def _note(self, text: str) -> None:
        if text not in self.out.notes:
            self.out.notes.append(text)

    def _from(self, value: str, bodies: list[str]) -> None:
        words = [word for word in value.split() if not word.startswith("--platform")]
        if self.out.lines:
            raise NotTranslated("a second FROM: images of several stages are not carried; build it and load the result")
        base = re.sub(r"\$\{?(\w+)\}?", lambda match: self._before.get(match[1], ""), words[0])
        self._bases.start(base, self.out)

    def _arg(self, value: str, bodies: list[str]) -> None:
        for word in shlex.split(value):
            name, _, default = word.partition("=")
            if self.out.lines:
                self.out.lines.append(f"ARG {name}={_quoted(default)}" if "=" in word else f"ARG {name}")
            else:
                self._before[name] = default

    def _environment(self, value: str, bodies: list[str]) -> None:
        words = shlex.split(value)
        if words and "=" not in words[0]:
            name, _, rest = value.partition(" ")
            words = [f"{name}={rest.strip()}"]
        for word in words:
            name, _, said = word.partition("=")
            self.out.lines.append(_env(name, said))

    def _run(self, value: str, bodies: list[str]) -> None:
        value, flags = _flags(value)
        if any(flag.startswith("--mount") and "type=cache" not in flag for flag in flags):
            raise NotTranslated("RUN --mount of another type than cache is not carried")
        if flags:
            self._note(f"RUN {' '.join(sorted({flag.split('=')[0] for flag in flags}))}: built without it")
        if value.startswith("["):
            value = shlex.join(str(word) for word in json.loads(value))
        plain = self._shell == ["/bin/sh", "-c"]
        if bodies and _HEREDOC.fullmatch(value.strip()):
            value, bodies = bodies[0], []
        if bodies or "\n" in value or "<<" in value:
            text = "\n".join([value, *(body for body in bodies)])
            self.out.lines.append(f"RUN {self._at()}{self._by_script(text)}")
            return
        line = value if plain else shlex.join([*self._shell, value])
        self.out.lines.append(f"RUN {self._at()}{line}")

    def _by_script(self, text: str) -> str:
        self._num_scripts += 1
        name = f"step-{self._num_scripts}.sh"
        self.out.files[name] = text + "\n"
        self.out.lines.append(f"COPY {name} /opt/metier-bridge/{name}")
        runner = self._shell[:-1] if self._shell[-1] == "-c" else self._shell
        return shlex.join([*runner, f"/opt/metier-bridge/{name}"])

    def _at(self) -> str:
        return "" if self.out.workdir == "/" else f"cd {shlex.quote(self.out.workdir)} && "

    def _copy(self, value: str, bodies: list[str]) -> None:
        value, flags = _flags(value)
        if any(flag.startswith("--from") for flag in flags):
            raise NotTranslated("COPY --from takes files of another image, which is not carried")
        words = [str(word) for word in json.loads(value)] if value.startswith("[") else shlex.split(value)
        if len(words) < 2 or bodies:
            raise NotTranslated("COPY source… target, without here-documents")
        *sources, target = words
        found = [source for source in sources if self._is_there(source)]
        missing = [source for source in sources if source not in found]
        if missing:
            self._note(f"COPY {' '.join(missing)}: not in the image (tests and solutions never are)")
        if not found:
            return
        if len(found) > 1 and not target.endswith("/"):
            target += "/"
        full = self._absolute(target)
        wanted = [*map(self._source, found), full]
        if any(re.search(r"[\s'\"\\]", one) for one in wanted):
            raise NotTranslated("COPY of a name with a space or a quote in it is not carried")
        self.out.lines.append(f"COPY {' '.join(wanted)}")
        modes = [flag.partition("=")[2] for flag in flags if flag.startswith("--chmod")]
        if modes:
            self.out.lines.append(f"RUN chmod -R {shlex.quote(modes[0])} {shlex.quote(full)}")
        if any(flag.startswith("--chown") for flag in flags):
            self._note("COPY --chown: what an agent may write is its own, all else is root's")

    def _is_there(self, source: str) -> bool:
        name = source.strip("/").removeprefix("./")
        if ".." in PurePosixPath(name).parts:
            raise NotTranslated(f"COPY {source} leads out of the context")
        if name in ("", "."):
            return True
        pattern = PurePosixPath(name)
        each = [PurePosixPath(path) for path in self._context]
        return any(path == pattern or pattern in path.parents for path in each) or (
            bool(re.search(r"[*?\[]", name)) and any(_matches(path, pattern) for path in each)
        )

    def _source(self, source: str) -> str:
        name = source.strip("/").removeprefix("./")
        return f"{self._folder}/" if name in ("", ".") else f"{self._folder}/{name}"

    def _absolute(self, target: str) -> str:
        if target.startswith("/"):
            return target
        inside = target.removeprefix("./")
        inside = "" if inside == "." else inside
        return f"{self.out.workdir.rstrip('/')}/{inside}"

    def _add(self, value: str, bodies: list[str]) -> None:
        words = shlex.split(_flags(value)[0])
        if any("://" in word or word.endswith((".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip")) for word in words[:-1]):
            raise NotTranslated(
                "ADD of an address or an archive is not carried; write a RUN that fetches or unpacks it"
            )
        self._copy(value, bodies)

    def _workdir(self, value: str, bodies: list[str]) -> None:
        (path,) = shlex.split(value)
        self.out.workdir = self._absolute(path).rstrip("/") or "/"
        self.out.lines.append(f"RUN mkdir -p {shlex.quote(self.out.workdir)}")

    def _user(self, value: str, bodies: list[str]) -> None:
        if value.partition(":")[0] not in ("root", "0"):
            self._note(f"USER {value}: the steps after it run as root, and agents as uid 1000")

    def _set_shell(self, value: str, bodies: list[str]) -> None:
        self._shell = [str(word) for word in json.loads(value)]


def _instructions(text: str) -> list[tuple[int, str, str, list[str]]]:
    """Line number, keyword, value on one line, and the here-documents that belong to it."""
    found: list[tuple[int, str, str, list[str]]] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start, parts = at, list[str]()
        while at < len(lines):
            line = lines[at].strip()
            at += 1
            if line.startswith("#") or (not line and parts):
                continue
            parts.append(line.removesuffix("\\").rstrip())
            if not line.endswith("\\"):
                break
        whole = " ".join(parts).strip()
        if not whole:
            continue
        keyword, _, value = whole.partition(" ")
        bodies: list[str] = []
        if keyword.upper() in ("RUN", "COPY", "ADD"):
            for match in _HEREDOC.finditer(value):
                ends = [index for index in range(at, len(lines)) if lines[index].strip() == match[2]]
                if not ends:
                    break  # a here-string, or a shift: no document
                body = lines[at : ends[0]]
                whole_document = _HEREDOC.fullmatch(value.strip()) is not None
                bodies.append("\n".join(body if whole_document else [*body, match[2]]))
                at = ends[0] + 1
        found.append((start + 1, keyword.upper(), value.strip(), bodies))
    return found


def _flags(value: str) -> tuple[str, list[str]]:
    flags: list[str] = []
    while value.startswith("--"):
        flag, _, value = value.partition(" ")
        flags.append(flag)
        value = value.lstrip()
    return value, flags


def _matches(path: PurePosixPath, pattern: PurePosixPath) -> bool:
    return len(path.parts) >= len(pattern.parts) and PurePosixPath(*path.parts[: len(pattern.parts)]).match(
        str(pattern)
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return value if value and _PLAIN.match(value) else f'"{escaped}"'


def _env(name: str, value: str) -> str:
    if "\n" in value:
        raise NotTranslated(f"ENV {name}: a value of several lines")
    return f"ENV {name}={_quoted(value)}"
