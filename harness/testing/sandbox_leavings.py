"""What an agent may leave where its artefacts should be: on the real backends, each is answered and none is a loss."""

from __future__ import annotations

from metier.envs.core import Artefact, Sandbox

from .places import SandboxSuite
from .sandbox_files import members

LEAVINGS = SandboxSuite("leavings")
"""Collecting what was made to be hard to collect."""
_LONG_NAME = "y" * 250
HOSTILE_TREES = {
    "no right to the workspace": ("chmod 0 /workspace", "f", "readable"),
    "no right to enter the workspace": ("chmod 600 /workspace", "f", "readable"),
    "no right to a folder on the way": ("mkdir -p d/e; echo x > d/e/g; chmod 0 d", "d/e/g", "readable"),
    "no right to the tree": ("mkdir t; chmod 0 t", "t", "readable"),
    "no right to a folder in the middle": ("mkdir -p t/a/b; echo x > t/a/b/c; chmod 0 t/a", "t", "readable"),
    "no right to list": ("mkdir -p t/a; echo x > t/a/b; chmod 300 t/a", "t", "readable"),
    "no right to enter": ("mkdir -p t/a; echo x > t/a/b; chmod 600 t/a", "t", "readable"),
    "no right to a file in it": ("mkdir t; echo x > t/a; chmod 0 t/a", "t", "readable"),
    "the tree is a file": ("echo x > t", "t", "a folder was declared"),
    "the tree leads elsewhere": ("ln -s /usr t", "t", "a link"),
    "65 folders, one in the other": ("mkdir -p t/$(printf 'x/%.0s' $(seq 64))", "t", "deep"),
    "a long path": (f"mkdir t; cd t; for i in 1 2 3 4 5; do mkdir {_LONG_NAME}; cd y*; done", "t", "path"),
    "too many paths": (
        f"cd /tmp; mkdir -p t/{'/'.join([_LONG_NAME] * 3)}; cd t/y*/y*/y*; touch {{1..6000}}; mv /tmp/t /workspace/t",
        "t",
        "too many",
    ),
    "no text, and a line's end": ("mkdir t; mkfifo t/$'\\xff\\n\\x01'", "t", "a pipe"),
}
LONG_CHAIN = """
import os
os.mkdir("t"); os.chdir("t")
for _ in range({depth}):
    os.mkdir({name!r}); os.chdir({name!r})
os.symlink("x" * 255, "l")
"""


@LEAVINGS.of_sandbox(cases=HOSTILE_TREES)
async def collect_answers_whatever_the_agent_left(box: Sandbox, command: str, path: str, reason: str) -> None:
    made = await box.exec(f"echo y > f; echo z > /tmp/f; {command}", timeout_s=30)
    assert made.exit_code == 0, made
    collected = await box.collect([Artefact(path=path, tree=path == "t")])
    assert reason in collected.refused[path], collected.refused
    assert collected.refused[path].isprintable()
    assert members(collected.tar) == {}
    assert await box.read("/tmp/f", max_bytes=9) == b"z\n"


@LEAVINGS.of_sandbox()
async def collect_takes_the_rest(box: Sandbox) -> None:
    await box.exec("mkdir a b; echo 1 > a/f; echo 2 > b/f; echo 3 > c; chmod 0 b", timeout_s=5)
    collected = await box.collect([Artefact(path="a", tree=True), Artefact(path="b", tree=True), Artefact(path="c")])
    assert list(collected.refused) == ["b"]
    assert members(collected.tar) == {"a": None, "a/f": b"1\n", "c": b"3\n"}


@LEAVINGS.of_sandbox(cases={"short names": (7000, "d"), "long names": (760, "\x01" * 255)})
async def folders_without_end_are_refused_at_once(box: Sandbox, depth: int, name: str) -> None:
    made = await box.exec(["python3", "-c", LONG_CHAIN.format(depth=depth, name=name)], timeout_s=60)
    assert made.exit_code == 0, made.stderr
    collected = await box.collect([Artefact(path="t", tree=True, links=True)])
    assert len(collected.refused["t"]) <= 300
    assert members(collected.tar) == {}


@LEAVINGS.of_sandbox()
async def as_much_as_may_be_collected_unpacks_elsewhere(box: Sandbox) -> None:
    """The deepest path and the longest one, a name that is no text, and times that no clock has."""
    name = _LONG_NAME
    await box.exec(
        f"mkdir -p t/$(printf 'x/%.0s' $(seq 62)); echo z > t/$(printf 'x/%.0s' $(seq 62))f; mkdir -p t/{name}/{name}; "
        f"echo n > t/{name}/{name}/$'\\xff'; touch -d @-99999999999 t/x; "
        'python3 -c \'import os; open("t/late", "w"); os.utime("t/late", ns=(0, (2**63 - 1) * 10**9))\' || true',
        timeout_s=30,
    )
    collected = await box.collect([Artefact(path="t", tree=True)])
    assert not collected.refused
    await box.unpack(collected.tar, "/workspace/copy")
    deepest = "/workspace/copy/t/" + "x/" * 62 + "f"
    assert await box.read(deepest, max_bytes=9) == b"z\n"
    assert await box.read(f"/workspace/copy/t/{name}/{name}/\udcff", max_bytes=9) == b"n\n"
