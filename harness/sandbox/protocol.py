"""What host and steward agree on, and how the steward's code gets into a sandbox.

The frames themselves are defined once, in `steward/frames.py`, which both ends import. Host and steward come from the
same checkout, so the version only guards against a stale copy.
"""

from __future__ import annotations

import compileall
import hashlib
import json
import math
import os
import py_compile
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from metier.envs.core import SandboxSpec

from .owner import Owner
from .steward.frames import (
    BYTES,
    CANCEL,
    CHUNK,
    CREDIT,
    DATA,
    DROP,
    ERRDATA,
    FRAME_COST,
    HELLO,
    MAX_PAYLOAD,
    MOST_CONNECTIONS,
    OPEN,
    PING,
    PONG,
    REPLY,
    REQUEST,
    SHUT,
    VERSION,
    WINDOW,
    Decoder,
    Frame,
    FrameError,
    chunks,
    control,
    credit,
    credit_of,
    encode,
)

AGENT_UID = 1000
STEWARD_PATH = "/run/metier-steward"
"""Where the steward's folder is bound inside a sandbox, read-only."""
STEWARD_HOME = "/run/metier-home"
"""A small tmpfs of root's, mode 0700: home and TMPDIR of the zygote."""
HEARTBEAT_S = 30.0
"""A steward that hears nothing for so long ends; a host that hears nothing for so long gives the sandbox up."""
PING_S = 5.0
HOST_GRACE_S = 10.0
"""An exec that is not answered so long after its own timeout takes the sandbox with it."""

_MAIN = "import sys\nfrom metier_steward.main import main\nmain(sys.argv[1])\n"


def life_of(spec: SandboxSpec) -> float:
    """How long a sandbox may live in all, several leases included."""
    return spec.ttl_s * 2 + 600


def steward_argv(spec: SandboxSpec, *, agent: int | None = AGENT_UID, nice: int = 0) -> list[str]:
    """The command line of a steward for `spec`; `agent` None where it shares the steward's uid.

    `nice` puts the agent's programs behind the steward, so that a fork bomb cannot starve it; only where the sandbox
    has a processor group of its own, for elsewhere it would put them behind the whole machine.
    """
    settings = {
        "writable": list(spec.writable_mb),
        "agent": agent,
        "heartbeat_s": HEARTBEAT_S,
        "life_s": life_of(spec),
        "cpus": max(1, math.floor(spec.cpus)),
        "pids": spec.pids,
        "nice": nice,
        # verifiers run plain probes, and those that ran an agent's program are used once: no import pays off there
        "preload": not spec.verifier,
    }
    return ["python3", "-I", STEWARD_PATH, json.dumps(settings, separators=(",", ":"))]


def steward_folder(cache: Path) -> Path:
    """A folder to bind at `STEWARD_PATH`: the steward's code and its bytecode, made once for each version of it.

    Raises:
        OSError: the cache is not writable.
    """
    source = Path(__file__).parent / "steward"
    modules = sorted(source.glob("*.py"))
    digest = _digest(modules)
    folder = cache / "steward" / digest
    folder.parent.mkdir(parents=True, exist_ok=True)
    for begun in folder.parent.iterdir():
        maker = Owner.parse(begun.name.partition(".")[0])
        if maker is not None and maker.dead():
            shutil.rmtree(begun, ignore_errors=True)
    if folder.is_dir():
        return folder
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{Owner.current().label()}."))
    package = made / "metier_steward"
    package.mkdir()
    (made / "__main__.py").write_text(_MAIN)
    for module in modules:
        shutil.copyfile(module, package / module.name)
    # valid whatever the file times inside; another Python than ours in the image compiles for itself
    compileall.compile_dir(made, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    for path in [made, *made.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    try:
        os.rename(made, folder)
    except OSError:
        shutil.rmtree(made)
        if not folder.is_dir():
            raise
    return folder


def _digest(modules: Sequence[Path]) -> str:
    digest = hashlib.sha256(_MAIN.encode())
    for module in modules:
        digest.update(module.name.encode() + b"\0" + module.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


__all__ = [
    "AGENT_UID",
    "BYTES",
    "CANCEL",
    "CHUNK",
    "CREDIT",
    "DATA",
    "DROP",
    "ERRDATA",
    "FRAME_COST",
    "HEARTBEAT_S",
    "HELLO",
    "HOST_GRACE_S",
    "MAX_PAYLOAD",
    "MOST_CONNECTIONS",
    "OPEN",
    "PING",
    "PING_S",
    "PONG",
    "REPLY",
    "REQUEST",
    "SHUT",
    "STEWARD_HOME",
    "STEWARD_PATH",
    "VERSION",
    "WINDOW",
    "Decoder",
    "Frame",
    "FrameError",
    "chunks",
    "control",
    "credit",
    "credit_of",
    "encode",
    "life_of",
    "steward_argv",
    "steward_folder",
]
