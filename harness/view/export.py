"""A site as files, for any web server and for none: the page reads the same from `file://`.

A browser lets a page on the disk load scripts beside it, but not read files. So data is written as scripts that hand
one JSON value to the page; from a web server the page reads them as text, and runs none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic_core import to_json

from metier.envs.core import ConfigError

from .site import Site

_SUFFIX = ".json"


def check_new(out: Path) -> None:
    """Raises ConfigError: something is there that a new folder would replace."""
    if os.path.lexists(out) and (out.is_symlink() or not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is there and holds something: name a new folder")


def export(site: Site, out: Path, *, told: Callable[[int], None] = lambda _: None) -> int:
    """Write every address of a site into a new folder, whole or not at all; gives the number of files.

    Args:
        site: made with `live=False`.
        out: does not exist, or is empty.
        told: called with the number of files so far.

    Raises:
        ConfigError: something is there, or it cannot be written.
    """
    check_new(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise ConfigError(f"{out} cannot be made: {error.strerror}") from error
    try:
        number = 0
        for number, address in enumerate(site.addresses(), 1):
            _write(making, address, site.answer(address).body)
            told(number)
        making.chmod(0o755)
        with contextlib.suppress(FileNotFoundError):
            out.rmdir()
        making.rename(out)
    except OSError as error:
        raise ConfigError(f"{out} could not be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return number


def _write(folder: Path, address: str, body: bytes) -> None:
    path = folder / address
    path.parent.mkdir(parents=True, exist_ok=True)
    if address.endswith(_SUFFIX):
        path = path.with_suffix(".js")
        body = b"metier(" + to_json(address.removesuffix(_SUFFIX)) + b"," + body.strip() + b");\n"
    elif address == "index.html":
        body = body.replace(b'data-source="served"', b'data-source="files"')
    path.write_bytes(body)
