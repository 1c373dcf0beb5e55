"""Files, artefacts, trees and snapshots: on every backend, the fake included, the rest on the real ones."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Awaitable, Callable

from metier.envs.core import (
    Artefact,
    Capability,
    ConfigError,
    Sandbox,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
)

from ..sandbox import RequestRefused
from .claims import raises
from .places import Place, SandboxSuite

FILES = SandboxSuite("files")
"""What needs no program to run: the scripted fake keeps it too."""
LINKS = SandboxSuite("links")
"""What needs real users, links and devices."""


def members(tar: bytes) -> dict[str, bytes | None]:
    """Names in an archive, with the content of regular files."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        found: dict[str, bytes | None] = {}
        for member in archive:
            source = archive.extractfile(member) if member.isreg() else None
            found[member.name] = source.read() if source else None
        return found


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar of these entries."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, content in entries:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    """One entry for `archive`."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info, content


@FILES.of_sandbox()
async def what_is_written_is_read(box: Sandbox) -> None:
    data = bytes(range(256)) * 4000
    await box.write("/workspace/a/b/c.bin", data)
    assert await box.read("/workspace/a/b/c.bin", max_bytes=len(data)) == data
    await box.write("/workspace/a/b/c.bin", b"")
    assert await box.read("/workspace/a/b/c.bin", max_bytes=0) == b""


@FILES.of_sandbox()
async def reading_tells_what_is_wrong(box: Sandbox) -> None:
    await box.write("/workspace/d/f", b"12345")
    with raises(FileNotFoundError):
        await box.read("/workspace/none", max_bytes=9)
    with raises(IsADirectoryError):
        await box.read("/workspace/d", max_bytes=9)
    with raises(ValueError, match="max_bytes=4"):
        await box.read("/workspace/d/f", max_bytes=4)


@FILES.of_sandbox(cases=["relative", "/workspace/../etc/x", "/workspace/a\0b", "\\" * 500_000])
async def strange_paths_are_refused(box: Sandbox, path: str) -> None:
    with raises(ValueError):
        await box.write(path, b"")
    with raises(ValueError):
        await box.read(path, max_bytes=9)
    await box.write("/workspace/after", b"1")


LONG = "x" * (1 << 20)
WIDE = "é" * 200_000
"""400 kB of UTF-8, and over 1 MiB as JSON."""
HALF = "\ud800"
_ASKED: dict[str, Callable[[Sandbox, str], Awaitable[object]]] = {
    "read": lambda box, text: box.read(f"/workspace/{text}", max_bytes=9),
    "write": lambda box, text: box.write(f"/workspace/{text}", b""),
    "unpack": lambda box, text: box.unpack(archive(entry("f")), f"/workspace/{text}"),
    "collect": lambda box, text: box.collect([Artefact(path=text)]),
    "command": lambda box, text: box.exec(f"true {text}", timeout_s=5),
    "arguments": lambda box, text: box.exec(["true", text], timeout_s=5),
    "folder": lambda box, text: box.exec("true", timeout_s=5, cwd=text),
    "variable": lambda box, text: box.exec("true", timeout_s=5, env={"NAME": text}),
    "session's folder": lambda box, text: box.exec("true", timeout_s=5, session="shell", cwd=text),
    "session's variable": lambda box, text: box.exec("1", timeout_s=5, session="python", env={"NAME": text}),
}


@FILES.of_sandbox(
    cases={f"{name}, {kind}": (name, text) for name in _ASKED for kind, text in [("long", LONG), ("wide", WIDE)]}
)
async def a_request_too_long_is_refused_before_it_is_sent(box: Sandbox, name: str, text: str) -> None:
    with raises(RequestRefused, match="longer"):
        await _ASKED[name](box, text)
    await box.write("/workspace/after", b"1")


@FILES.of_sandbox(cases=[*_ASKED, "session's source"])
async def half_a_character_is_refused_before_it_is_sent(box: Sandbox, name: str) -> None:
    ask = _ASKED.get(name, lambda box, text: box.exec(text, timeout_s=5, session="shell"))
    with raises(RequestRefused, match="half of a character"):
        await ask(box, HALF)
    await box.write("/workspace/after", b"1")


@FILES.of_sandbox()
async def writing_outside_the_trees_is_refused(box: Sandbox) -> None:
    with raises(OSError):
        await box.write("/etc/metier", b"")


@FILES.of_sandbox()
async def collect_takes_files_and_trees(box: Sandbox) -> None:
    await box.write("/workspace/one.txt", b"1")
    await box.write("/workspace/t/x/two.txt", b"2", mode=0o755)
    collected = await box.collect([Artefact(path="one.txt"), Artefact(path="t", tree=True)])
    assert not collected.refused
    found = members(collected.tar)
    assert found["one.txt"] == b"1"
    assert found["t/x/two.txt"] == b"2"


@FILES.of_sandbox()
async def collect_refuses_with_the_reason(box: Sandbox) -> None:
    await box.write("/workspace/big", b"x" * (1 << 20) + b"x")
    await box.write("/workspace/folder/f", b"")
    declared = [
        Artefact(path="none"),
        Artefact(path="big", max_mb=1),
        Artefact(path="folder"),
        Artefact(path="big", tree=True, max_mb=2),
        Artefact(path="../etc/passwd"),
    ]
    reasons = {}
    for artefact in declared:
        collected = await box.collect([artefact])
        assert members(collected.tar) == {}
        reasons[artefact.path, artefact.tree] = collected.refused[artefact.path]
    assert reasons["none", False] == "missing"
    assert reasons["big", False].startswith("too large")
    assert "a folder" in reasons["folder", False]
    assert "a folder was declared" in reasons["big", True]
    assert ".." in reasons["../etc/passwd", False]


@FILES.of_sandbox()
async def what_was_collected_unpacks_elsewhere(box: Sandbox) -> None:
    await box.write("/workspace/t/x/two.txt", b"2")
    collected = await box.collect([Artefact(path="t", tree=True)])
    await box.unpack(collected.tar, "/workspace/copy")
    assert await box.read("/workspace/copy/t/x/two.txt", max_bytes=9) == b"2"


ESCAPES = {
    "absolute": [entry("/workspace/evil")],
    "parent": [entry("../evil")],
    "device": [entry("null", kind=tarfile.CHRTYPE)],
    "hard link": [entry("h", kind=tarfile.LNKTYPE, link="/etc/passwd")],
    "absolute link": [entry("l", kind=tarfile.SYMTYPE, link="/etc/passwd")],
    "parent link": [entry("a/l", kind=tarfile.SYMTYPE, link="../../etc/passwd")],
    "pipe": [entry("p", kind=tarfile.FIFOTYPE)],
}


@FILES.of_sandbox(cases=ESCAPES)
async def unpack_refuses_what_leads_out(box: Sandbox, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with raises(ValueError):
        await box.unpack(archive(*entries), "/workspace/into")
    with raises(FileNotFoundError):
        await box.read("/workspace/evil", max_bytes=1)


@FILES.of_sandbox()
async def unpack_refuses_what_is_no_archive(box: Sandbox) -> None:
    with raises(ValueError, match="tar"):
        await box.unpack(b"rubbish" * 200, "/workspace")


@FILES.of_backend()
async def a_snapshot_is_forked_many_times(place: Place) -> None:
    async with place.box() as origin:
        await origin.write("/workspace/deep/er/file", b"data", mode=0o755)
        await origin.write("/tmp/aside", b"tmp")
        snapshot = await origin.snapshot()
    for _ in range(2):
        async with place.box(snapshot=snapshot) as fork:
            assert await fork.read("/workspace/deep/er/file", max_bytes=9) == b"data"
            assert await fork.read("/tmp/aside", max_bytes=9) == b"tmp"
            await fork.write("/workspace/deep/er/file", b"changed")


@FILES.of_backend()
async def an_unknown_snapshot_is_refused(place: Place) -> None:
    with raises(ConfigError, match="snapshot"):
        await place.backend.acquire(
            place.spec, deadline=place.soon(), snapshot=Snapshot(digest="0" * 64, spec=place.spec, size_bytes=1)
        )


@FILES.of_backend()
async def a_returned_sandbox_is_as_new(place: Place) -> None:
    async with place.box() as first:
        await first.write("/workspace/left", b"behind")
    async with place.box() as second:
        with raises(FileNotFoundError):
            await second.read("/workspace/left", max_bytes=9)


@LINKS.of_sandbox(needs=Capability.SEPARATE_UIDS)
async def rights_are_the_named_users(box: Sandbox) -> None:
    await box.write("/tmp/secret", b"root's", mode=0o600, user="root")
    assert await box.read("/tmp/secret", max_bytes=9, user="root") == b"root's"
    with raises(PermissionError):
        await box.read("/tmp/secret", max_bytes=9)
    with raises(PermissionError):
        await box.write("/tmp/secret", b"mine")
    await box.write("/workspace/own", b"x", mode=0o750)
    assert (await box.exec("stat -c '%a %u' own", timeout_s=5)).stdout == b"750 1000\n"


@LINKS.of_backend()
async def a_tree_whose_name_begins_with_anothers_is_its_own(place: Place) -> None:
    spec = SandboxSpec(image=place.spec.image, memory_mb=128, writable_mb={"/workspace": 16, "/workspacespace": 16})
    if place.backend.name == "bubblewrap":  # which makes no folder in an image
        with raises(SandboxUnavailable, match="/workspacespace"):
            await place.backend.acquire(spec, deadline=place.soon())
        return
    async with place.box(spec) as origin:
        await origin.write("/workspacespace/a/b", b"data")
        seen = await origin.exec(
            "cat /workspacespace/a/b; stat -c ' %u' /workspacespace/a/b; ls /workspace", timeout_s=5
        )
        assert seen.stdout == b"data 1000\n", seen
        snapshot = await origin.snapshot()
    async with place.box(spec, snapshot) as fork:
        assert await fork.read("/workspacespace/a/b", max_bytes=9) == b"data"
        assert (await fork.exec("ls -A /workspace", timeout_s=5)).stdout == b""


@LINKS.of_sandbox(needs=Capability.SEPARATE_UIDS)
async def root_follows_no_link_of_the_agents(box: Sandbox) -> None:
    await box.write("/tmp/secret", b"root's", mode=0o600, user="root")
    await box.exec("ln -s /tmp/secret /workspace/l; ln -s /tmp /workspace/d; ln -s /etc/passwd p", timeout_s=5)
    for path in ("/workspace/l", "/workspace/d/secret", "/workspace/p"):
        with raises(OSError):
            await box.read(path, max_bytes=9999, user="root")
    with raises(PermissionError):
        await box.read("/workspace/l", max_bytes=9)


@LINKS.of_sandbox(cases=["/workspace/pipe", "/dev/zero"])
async def what_is_no_file_is_not_read(box: Sandbox, path: str) -> None:
    await box.exec("mkfifo pipe", timeout_s=5)
    with raises(OSError, match="no regular file"):
        await box.read(path, max_bytes=10)


@LINKS.of_sandbox()
async def files_of_unknown_size_are_read_to_their_limit(box: Sandbox) -> None:
    assert b"Tasks" not in await box.read("/proc/version", max_bytes=1000)
    with raises(ValueError, match="max_bytes"):
        await box.read("/proc/version", max_bytes=3)


@LINKS.of_sandbox()
async def a_full_tree_is_an_error_that_leaves_nothing_half(box: Sandbox) -> None:
    with raises(OSError, match="space"):
        await box.write("/tmp/large", b"x" * (40 << 20))
    await box.write("/tmp/small", b"fits")


@LINKS.of_sandbox()
async def collect_refuses_links_devices_and_pipes(box: Sandbox) -> None:
    await box.exec(
        "ln -s /etc/passwd l; mkdir t u v; ln -s ../x t/up; mkfifo t2; mkdir w; mkfifo w/p; ln -s u way; "
        "echo x > u/f; ln -s ../../etc v/out; mkdir ok; echo y > ok/f; ln -s f ok/link; truncate -s 10G sparse",
        timeout_s=5,
    )
    declared = [
        Artefact(path="l"),
        Artefact(path="l", links=True),
        Artefact(path="t", tree=True),
        Artefact(path="t2"),
        Artefact(path="w", tree=True),
        Artefact(path="way/f"),
        Artefact(path="v", tree=True, links=True),
        Artefact(path="sparse"),
    ]
    for artefact in declared:
        collected = await box.collect([artefact])
        assert list(collected.refused) == [artefact.path], artefact
        assert members(collected.tar) == {}
    collected = await box.collect([Artefact(path="ok", tree=True, links=True)])
    assert not collected.refused
    assert members(collected.tar) == {"ok": None, "ok/f": b"y\n", "ok/link": None}


@LINKS.of_sandbox()
async def collect_kills_the_agent_first(box: Sandbox) -> None:
    await box.exec("setsid sh -c 'while true; do date +%N > /workspace/f; done' >/dev/null 2>&1 &", timeout_s=5)
    await box.exec("sleep 0.2", timeout_s=5)
    first = await box.collect([Artefact(path="f")])
    second = await box.collect([Artefact(path="f")])
    assert first.tar == second.tar


@LINKS.of_sandbox()
async def unpack_follows_no_link_on_the_way(box: Sandbox) -> None:
    await box.exec("mkdir -p into; ln -s /tmp into/way", timeout_s=5)
    with raises(OSError):
        await box.unpack(archive(entry("way/evil", b"x")), "/workspace/into")
    with raises(FileNotFoundError):
        await box.read("/tmp/evil", max_bytes=1)


@LINKS.of_sandbox()
async def unpack_drops_setuid_and_replaces_files(box: Sandbox) -> None:
    await box.exec("echo old > f", timeout_s=5)
    await box.unpack(archive(entry("f", b"new", mode=0o4755)), "/workspace")
    assert (await box.exec("stat -c %a f; cat f", timeout_s=5)).stdout == b"755\nnew"


@LINKS.of_backend()
async def a_snapshot_keeps_modes_links_and_times(place: Place) -> None:
    async with place.box() as origin:
        await origin.exec(
            "mkdir -p d/e; echo x > d/e/f; chmod 640 d/e/f; ln -s /usr/bin/python3 d/py; touch -d 2001-02-03 d/e/f; "
            "echo locked > locked; chmod 000 locked; chmod 555 d/e",
            timeout_s=5,
        )
        snapshot = await origin.snapshot()
    async with place.box(snapshot=snapshot) as fork:
        result = await fork.exec("stat -c '%a %Y %U' d/e/f d/e locked; readlink d/py", timeout_s=5)
        lines = result.stdout.decode().splitlines()
        assert lines[0].startswith("640 981")
        assert [lines[1].split()[0], lines[2].split()[0], lines[3]] == ["555", "0", "/usr/bin/python3"]


@LINKS.of_backend()
async def many_files_fork_quickly_and_whole(place: Place) -> None:
    async with place.box() as origin:
        await origin.exec(
            "for d in $(seq 40); do mkdir d$d; for f in $(seq 50); do echo $d$f > d$d/f$f; done; done", timeout_s=30
        )
        snapshot = await origin.snapshot()
    async with place.box(snapshot=snapshot) as fork:
        assert (await fork.exec("find . -type f | wc -l; cat d40/f50", timeout_s=5)).stdout == b"2000\n4050\n"
