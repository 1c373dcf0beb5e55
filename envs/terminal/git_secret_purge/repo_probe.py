"""Read everything that lies in a `.git` folder without trusting any of it; runs in the verifier's sandbox.

Standard library only and no import of ours: its source is sent into the sandbox. The folder's own configuration,
hooks, replacements, grafts, alternates and pack indexes are never used: its packs are indexed anew in a repository of
our own, its loose objects are unpacked here, and every object's name is checked against its bytes.
"""

import base64
import hashlib
import json
import os
import re
import stat
import subprocess
import tempfile
import zlib
from typing import Any

MOST_BYTES = 24 << 20
MOST_OBJECTS = 20000
LARGEST_ANSWER = 3 << 20
GIT_S = 60.0
_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})")
_PACK = re.compile(r"objects/pack/[^/]+\.pack")
_OID = re.compile(r"[0-9a-f]{40}")


class Bad(Exception):
    """The repository cannot be read; the message says why."""


def gather(folder: str) -> dict[str, Any]:
    """Objects, refs and other files, or an `error`."""
    try:
        with tempfile.TemporaryDirectory(dir="/tmp") as own:
            found = _gathered(folder, own)
    except (Bad, OSError, zlib.error, ValueError, subprocess.SubprocessError, MemoryError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    packed = base64.b64encode(zlib.compress(json.dumps(found).encode(), 6)).decode()
    if len(packed) > LARGEST_ANSWER:
        return {"error": "the repository is far larger than it was"}
    return {"packed": packed}


def _gathered(folder: str, own: str) -> dict[str, Any]:
    files = _files(folder)
    objects: dict[str, list[str]] = {}
    size = 0
    packs = [name for name in files if _PACK.fullmatch(name)]
    for name in files:
        if match := _LOOSE.fullmatch(name):
            kind, data = _loose(os.path.join(folder, name))
            size += _keep(objects, match[1] + match[2], kind, data)
            if size > MOST_BYTES or len(objects) > MOST_OBJECTS:
                raise Bad("the repository is far larger than it was")
    if packs:
        _read_packs([os.path.join(folder, name) for name in packs], own, objects, MOST_BYTES - size)
    refs = _refs(folder, files)
    others = {
        name: base64.b64encode(_read(os.path.join(folder, name), 4 << 20)).decode()
        for name in files
        if not _LOOSE.fullmatch(name) and not _PACK.fullmatch(name)
    }
    stash = _text(folder, "logs/refs/stash", files).splitlines()
    return {
        "objects": objects,
        "refs": refs,
        "head": _text(folder, "HEAD", files).strip().removeprefix("ref: "),
        "stash": [line.split()[1] for line in stash if len(line.split()) > 1],
        "others": others,
    }


def _files(folder: str) -> list[str]:
    """Names of the regular files, which are all there may be."""
    found: list[str] = []
    total = 0
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode):
                raise Bad(f"{name} is no regular file")
            total += status.st_size
            found.append(os.path.relpath(path, folder))
            if len(found) > MOST_OBJECTS or total > MOST_BYTES:
                raise Bad("the repository is far larger than it was")
    if "HEAD" not in found:
        raise Bad("there is no repository")
    return found


def _read(path: str, most: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(most)


def _text(folder: str, name: str, files: list[str]) -> str:
    return _read(os.path.join(folder, name), 1 << 20).decode("latin-1") if name in files else ""


def _loose(path: str) -> tuple[str, bytes]:
    reader = zlib.decompressobj()
    raw = reader.decompress(_read(path, MOST_BYTES), MOST_BYTES)
    if not reader.eof:
        raise Bad("a loose object is damaged or too large")
    head, nul, data = raw.partition(b"\0")
    kind, _, length = head.partition(b" ")
    if not nul or length != b"%d" % len(data):
        raise Bad("a loose object is damaged")
    return kind.decode("latin-1"), data


def _keep(objects: dict[str, list[str]], oid: str, kind: str, data: bytes) -> int:
    if hashlib.sha1(b"%s %d\0" % (kind.encode("latin-1"), len(data)) + data).hexdigest() != oid:
        raise Bad(f"object {oid} is not what its name says")
    if kind not in ("blob", "tree", "commit", "tag"):
        raise Bad(f"object {oid} is of an unknown kind")
    objects[oid] = [kind, base64.b64encode(data).decode()]
    return len(data)


def _read_packs(packs: list[str], own: str, objects: dict[str, list[str]], room: int) -> None:
    _git(own, ["init", "-q", "--bare", "--template=", own])
    for pack in packs:
        with open(pack, "rb") as source:
            _git(own, ["index-pack", "--stdin", f"--max-input-size={MOST_BYTES}"], source)
    names = [line.split() for line in _git(own, ["cat-file", "--batch-all-objects", "--batch-check"]).splitlines()]
    if len(names) > MOST_OBJECTS or sum(int(size) for _, _, size in names) > room:
        raise Bad("the repository is far larger than it was")
    raw = _git(own, ["cat-file", "--batch-all-objects", "--batch"])
    at = 0
    while at < len(raw):
        end = raw.index(b"\n", at)
        oid, kind, size = raw[at:end].decode("ascii").split()
        _keep(objects, oid, kind, raw[end + 1 : end + 1 + int(size)])
        at = end + 2 + int(size)


def _git(own: str, words: list[str], source: Any = subprocess.DEVNULL) -> bytes:
    environment = {"PATH": "/usr/bin:/bin", "HOME": own, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", "--no-replace-objects", "-c", "core.hooksPath=/dev/null", *words],
        cwd=own,
        env={**environment, "GIT_DIR": own},
        stdin=source,
        capture_output=True,
        timeout=GIT_S,
    )
    if done.returncode:
        raise Bad(f"git {words[0]}: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}")
    return done.stdout


def _refs(folder: str, files: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _text(folder, "packed-refs", files).splitlines():
        oid, _, name = line.partition(" ")
        if _OID.fullmatch(oid) and name:
            found[name] = oid
    for name in files:
        if name.startswith("refs/"):
            content = _text(folder, name, files).strip()
            found[name] = content if _OID.fullmatch(content) else f"no id: {content[:60]!r}"
    return found
