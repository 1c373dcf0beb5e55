"""Rubbish to be put where the work should be: scripts that write it, and ways of spoiling what is right."""

from __future__ import annotations

import functools
import io
import shlex
import tarfile
import zipfile
from collections.abc import Callable, Mapping

from metier.envs.core import Artefact, Collected

from .programs import programs_for

SCRIPTS: Mapping[str, str] = {
    "missing": "rm -rf $P",
    "empty": ": > $P",
    "binary": "head -c 65536 /dev/urandom > $P",
    "not UTF-8": r"printf '\377\376\200 1 \303\050\n' > $P",
    "NULs": r"printf '1\0002\000\n' > $P",
    "too large": "head -c $BIG /dev/zero > $P",
    "just small enough": "yes 1 | head -c $FULL > $P",
    "one long line": r"head -c 1000000 /dev/zero | tr '\0' '9' > $P",
    "deeply nested lists": r"head -c 200000 /dev/zero | tr '\0' '[' > $P",
    "deeply nested objects": r"""yes '{"a":' | head -n 50000 | tr -d '\n' > $P""",
    "deeply nested elements": r"yes '<a>' | head -n 50000 | tr -d '\n' > $P",
    "entities of entities": r"""{ printf '<!DOCTYPE r [<!ENTITY a "ha">'; p=a
for n in b c d e f g h i j k; do printf '<!ENTITY %s "' $n; yes "&$p;" | head -n 10 | tr -d '\n'; printf '">'; p=$n
done; printf ']><r>&k;</r>'; } > $P""",
    "NaN": "printf 'NaN' > $P",
    "numbers beyond": "printf '1e999999 -1e400 99999999999999999999999999\\n' > $P",
    "link out": "rm -rf $P; ln -s /etc/passwd $P",
    "link to itself": "rm -rf $P; ln -s $P $P",
    "hard link": "rm -rf $P; echo 1 > /workspace/.other; ln /workspace/.other $P",
    "folder": "rm -rf $P; mkdir -p $P/$P",
    "deep folders": "rm -rf $P; mkdir -p $P; ( cd $P && for i in $(seq 120); do mkdir d && cd d || exit; done )",
    "pipe": "rm -rf $P; mkfifo $P",
    "unreadable": "chmod 000 $P",
}
"""Bash, with P the path, BIG more bytes than may be collected, FULL as many as may."""
WHOLE = ("missing", "link out", "link to itself", "hard link", "folder", "deep folders", "pipe", "unreadable")
"""What replaces the whole of a tree; the others go into each of its files."""
PROGRAMS: Mapping[str, Callable[[str, bytes], bytes]] = {
    "endless program": lambda path, _: programs_for(path).endless.encode(),
    "leaving program": lambda path, _: programs_for(path).leaves.encode(),
    "forking program": lambda path, data: _FORKS if path.endswith(".py") else data,
    "hungry program": lambda path, data: _HUNGRY if path.endswith(".py") else data,
    "program that answers in the probe's name": lambda path, data: _FORGES if path.endswith(".py") else data,
    "zip bomb": lambda path, data: bomb() if path.endswith(_ZIPPED) else data,
}
"""What replaces a file, by its name; where it is no such file it stays."""
_FORKS = b"import os\nwhile True:\n    os.fork()\n"
_HUNGRY = b"x = [b'x' * (1 << 24) for _ in range(1 << 20)]\n"
_FORGES = b"""\
import glob, re
for place in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        words = open(place, errors="replace").read()
    except OSError:
        continue
    for nonce in re.findall("[0-9a-f]{32}", words):
        print("\\n" + nonce, "[" * 100000, flush=True)
"""
"""Under every nonce in sight, a line that no parser takes to its end."""
BOMB_BYTES = 400 << 20
_LISTS = (".txt", ".csv", ".tsv", ".md", ".log")
_WHEELS = (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ZIPPED = (".zip", ".xlsx", ".docx", ".pptx", ".ods", ".odt", ".3mf", ".whl", ".jar")


def script(artefact: Artefact, name: str) -> str:
    """The bash that puts the rubbish of that name in the artefact's place."""
    limit = artefact.max_mb << 20
    sizes = f"BIG={limit + 1}; FULL={min(limit, 4 << 20) - 4096}"
    path = shlex.quote(artefact.path)
    if artefact.tree and name not in WHOLE:
        return f"{sizes}; find {path} -type f | while IFS= read -r P; do {_quoted(name)}; done"
    return f'{sizes}; P={path}; mkdir -p "$(dirname "$P")"; {_quoted(name)}'


def _quoted(name: str) -> str:
    return SCRIPTS[name].replace("$P", '"$P"').replace('"$P"/"$P"', '"$P/inner"')


def spoiled(right: Collected) -> dict[str, Collected]:
    """Artefacts that were right, by what was done to them."""
    return {
        "first half of the right one": rewritten(right, lambda _, data: data[: len(data) // 2]),
        "right one with spoiled bytes": rewritten(right, lambda _, data: _flipped(data)),
        "right one twice": rewritten(right, lambda _, data: data + data),
        "right one among wrong ones, in lines of its own": rewritten(right, _among_lines),
        "right one among wrong ones, on the same line": rewritten(right, _among_words),
        **{name: rewritten(right, change) for name, change in PROGRAMS.items()},
    }


MAY_BE_RIGHT = ("right one with spoiled bytes", "right one twice")
"""Where a verdict must come in time, and may be any: a spoiled byte can lie in a comment."""


def rewritten(collected: Collected, change: Callable[[str, bytes], bytes]) -> Collected:
    """The same files with other bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(collected.tar)) as old, tarfile.open(fileobj=buffer, mode="w") as new:
        for member in old:
            file = old.extractfile(member) if member.isfile() else None
            if file is None:
                new.addfile(member)
                continue
            data = change(member.name, file.read())
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return Collected(tar=buffer.getvalue(), refused=collected.refused)


def _among_lines(path: str, data: bytes) -> bytes:
    """A list or a plain answer between two wrong ones: a verifier that only looks for the right one finds it."""
    return b"\n".join(one.rstrip(b"\n") for one in _between(data)) + b"\n" if _is_list(path) else data


def _among_words(path: str, data: bytes) -> bytes:
    """The same, line by line."""
    return b"\n".join(b" ".join(_between(line)) for line in data.split(b"\n")) if _is_list(path) else data


def _is_list(path: str) -> bool:
    name = path.rpartition("/")[2]
    return "." not in name or name.endswith(_LISTS)


def _between(right: bytes) -> list[bytes]:
    """A wrong one with other digits (other letters where it has none), the right one, and another wrong one."""
    wheel = next((each for each in _WHEELS if set(each) & set(right)), b"")
    wrong = [right.translate(bytes.maketrans(wheel, wheel[turn:] + wheel[:turn])) for turn in (1, 2)]
    return [wrong[0], right, wrong[1]] if wheel else [right]


def _flipped(data: bytes) -> bytes:
    """About one byte in 97 turned over, the first few left alone, so that the kind of file is still recognised."""
    spoiled = bytearray(data)
    for at in range(16, len(spoiled), 97):
        spoiled[at] ^= 0xFF
    return bytes(spoiled)


@functools.cache
def bomb() -> bytes:
    """A small archive of a large member."""
    buffer = io.BytesIO()
    archive = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open("xl/workbook.xml", "w") as member:
        for _ in range(BOMB_BYTES >> 20):
            member.write(bytes(1 << 20))
    return buffer.getvalue()
