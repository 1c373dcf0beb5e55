"""The leak search finds a needle however it is hidden, and nothing where there is none."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.harness.certify.gates.search import forms, inside, main, one_line_forms

NEEDLE = "ratio=3.27 päss"
RAW = NEEDLE.encode()
AROUND = b"some words before " + RAW + b" and after\n"


def _zip(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/notes.txt", data)
    return buffer.getvalue()


def _tar(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("notes.txt")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


HIDINGS: dict[str, Callable[[], bytes]] = {
    "plain": lambda: AROUND,
    "JSON": lambda: json.dumps({"x": AROUND.decode()}).encode(),
    "UTF-16": lambda: AROUND.decode().encode("utf-16"),
    "hexadecimal": lambda: AROUND.hex().encode(),
    "HEXADECIMAL": lambda: AROUND.hex().upper().encode(),
    "base64 in lines": lambda: base64.encodebytes(AROUND * 3),
    "reversed": lambda: AROUND[::-1],
    "gzip": lambda: gzip.compress(AROUND),
    "zlib behind a header": lambda: b"\x00" * 100 + zlib.compress(AROUND) + b"tail",
    "a git object": lambda: zlib.compress(b"blob 40\0" + AROUND),
    "bzip2": lambda: bz2.compress(AROUND),
    "xz": lambda: lzma.compress(AROUND),
    "zip": lambda: _zip(AROUND),
    "tar": lambda: _tar(AROUND),
    "zip in gzip in tar": lambda: _tar(gzip.compress(_zip(AROUND))),
    "base64 in gzip": lambda: gzip.compress(base64.b64encode(AROUND)),
}


@pytest.mark.parametrize("hiding", HIDINGS)
def test_a_hidden_needle_is_found(hiding: str) -> None:
    assert inside(HIDINGS[hiding](), [forms(NEEDLE)])


@pytest.mark.parametrize("hiding", HIDINGS)
def test_another_needle_is_not(hiding: str) -> None:
    assert not inside(HIDINGS[hiding](), [forms("ratio=3.28 päss")])


@given(st.binary(max_size=20), st.text(min_size=12, max_size=40), st.binary(max_size=20))
def test_base64_is_found_at_every_offset(before: bytes, needle: str, behind: bytes) -> None:
    text = base64.b64encode(before + needle.encode() + behind).decode()
    assert any(form in text for form in one_line_forms(needle))


@given(st.binary(max_size=4000))
def test_rubbish_is_searched_without_an_error(data: bytes) -> None:
    for start in (b"", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ", b"\x1f\x8b\x08", b"\x78\x9c"):
        assert not inside(start + data, [forms("a needle that is not there at all")])


def test_folders_links_and_names_are_searched(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "secret-word").write_text("")
    (tmp_path / "link").symlink_to("/nowhere/other-secret")
    hits = main({"roots": [str(tmp_path)], "needles": ["secret-word", "other-secret", "absent-secret"]})
    folder = str(tmp_path / "deep" / "er")
    assert sorted(hits) == [(0, "plain", f"names in {folder}"), (1, "plain", str(tmp_path / "link"))]


def test_a_needle_is_found_once_in_a_file() -> None:
    assert len(inside(_zip(AROUND) + b"\n" + gzip.compress(AROUND), [forms(NEEDLE)])) == 1
