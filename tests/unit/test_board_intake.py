"""An archive is taken in byte by byte: what is no submission is refused, with a reason, and lies nowhere else."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgery import tar
from metier.harness.leaderboard.archive import Intake
from metier.harness.leaderboard.contract import Limits
from metier.harness.leaderboard.faults import Reason, Refusal

LIMITS = Limits(upload_bytes=1 << 20, files=20, uploads_per_hour=5)
EPISODE = f"episodes/{'a' * 32}-0.json.gz"
GOOD = {"about.json": b"{}", "manifest.json": b"[1]", "results.jsonl": b"", EPISODE: b"x" * 700}


def member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def took(folder: Path, data: bytes, size: int = 1 << 16) -> dict[str, bytes]:
    intake = Intake(folder, LIMITS)
    try:
        for start in range(0, len(data), size):
            intake.feed(data[start : start + size])
        intake.close()
    finally:
        intake.abandon()
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.json", b"0" * 10**6)
    return out.getvalue()


def damaged() -> bytes:
    made = bytearray(tar(GOOD))
    made[100] ^= 1
    return bytes(made)


def sparse() -> bytes:
    info = member("results.jsonl", tarfile.GNUTYPE_SPARSE)
    info.size = 0
    return tar({}, info, form=tarfile.GNU_FORMAT)


def huge() -> bytes:
    """A file of eight exabytes, by a header of GNU's."""
    info = tarfile.TarInfo("results.jsonl")
    info.size = 1 << 62
    return info.tobuf(tarfile.GNU_FORMAT)


def attacks() -> Iterator[tuple[str, bytes, Reason]]:
    yield "a zip bomb", zipped(), Reason.ARCHIVE_FORMAT
    yield "a compressed tar", gzip.compress(tar(GOOD)) + bytes(512), Reason.ARCHIVE_FORMAT
    yield "a GNU tar", tar(GOOD, form=tarfile.GNU_FORMAT), Reason.ARCHIVE_FORMAT
    yield "an extended header", tar({"about.json": b"", "ä" * 60: b""}, form=tarfile.PAX_FORMAT), Reason.ARCHIVE_MEMBER
    yield "a damaged header", damaged(), Reason.ARCHIVE_FORMAT
    yield "a sparse file", sparse(), Reason.ARCHIVE_FORMAT
    yield "an endless file", huge(), Reason.ARCHIVE_FORMAT
    yield "bytes after its end", tar(GOOD) + tar(GOOD), Reason.ARCHIVE_FORMAT
    yield "a path upwards", tar({"../about.json": b"{}"}), Reason.ARCHIVE_PATH
    yield "a path inside", tar({"episodes/../../about.json": b"{}"}), Reason.ARCHIVE_PATH
    yield "an absolute path", tar({"/etc/passwd": b"{}"}), Reason.ARCHIVE_PATH
    yield "another file", tar({"results.jsonl.py": b""}), Reason.ARCHIVE_PATH
    yield "a name with a line feed", tar({"about.json\n": b"{}"}), Reason.ARCHIVE_PATH
    yield "a name that is no text", tar({"\udcff.json": b"{}"}), Reason.ARCHIVE_PATH
    yield "a link", tar(GOOD, member(EPISODE.replace("a", "b"), tarfile.SYMTYPE, "/etc/passwd")), Reason.ARCHIVE_MEMBER
    yield "a hard link", tar({}, member("about.json", tarfile.LNKTYPE, "/etc/passwd")), Reason.ARCHIVE_MEMBER
    yield "a device", tar({}, member("about.json", tarfile.CHRTYPE)), Reason.ARCHIVE_MEMBER
    yield "a pipe", tar({}, member("about.json", tarfile.FIFOTYPE)), Reason.ARCHIVE_MEMBER
    yield "a folder", tar({}, member("episodes", tarfile.DIRTYPE)), Reason.ARCHIVE_MEMBER
    twice = io.BytesIO()
    with tarfile.open(fileobj=twice, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("about.json"))
    yield "a name twice", twice.getvalue(), Reason.ARCHIVE_DUPLICATE
    yield "many tiny files", tar({f"episodes/{n:032x}-0.json.gz": b"" for n in range(30)}), Reason.TOO_MANY_FILES
    yield "a large file", tar({"about.json": bytes(1 << 17)}), Reason.TOO_LARGE
    yield "a large body", tar({EPISODE: bytes(1 << 21)}), Reason.TOO_LARGE
    yield "half of it", tar(GOOD)[:1024], Reason.CUT_OFF
    yield "nothing", b"", Reason.CUT_OFF
    yield "no about", tar({name: data for name, data in GOOD.items() if name != "about.json"}), Reason.ABOUT
    yield "no rows", tar({name: data for name, data in GOOD.items() if name != "results.jsonl"}), Reason.RESULTS


@pytest.mark.parametrize(("data", "reason"), [pytest.param(*rest, id=name) for name, *rest in attacks()])
def test_what_is_no_submission_is_refused_and_leaves_nothing_elsewhere(
    tmp_path: Path, data: bytes, reason: Reason
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with pytest.raises(Refusal) as refused:
        took(folder, data)
    assert refused.value.reason is reason, refused.value
    assert os.listdir(tmp_path) == ["in"]
    assert all(path.is_dir() or (path.is_file() and not path.is_symlink()) for path in folder.rglob("*"))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3000))
def test_an_archive_is_the_same_however_it_arrives(size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert took(Path(folder), tar(GOOD), size) == GOOD


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), min_size=1, max_size=6))
def test_no_bytes_do_anything_but_fit_or_be_refused(changes: list[tuple[int, int]]) -> None:
    whole = bytearray(tar(GOOD)[:4096])
    for at, value in changes:
        whole[at] = value
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Refusal):
        took(Path(folder), bytes(whole), 1000)
