"""The base image's tar: Debian 12 made from packages by `base/bootstrap.sh`, once for each version of that script."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from metier.envs.core import SandboxUnavailable

from .host import debian_sources
from .recipe import Recipe
from .reporter import Reporter
from .store import cache_dir, remove_tree

_SCRATCH = "bootstrap-"


def base_tar(base: Recipe, reporter: Reporter) -> Path:
    """The tar of the base's root file system, made if it is not in the cache. The caller holds the base's lock.

    Raises:
        ConfigError: no Debian 12 apt sources on this machine.
        SandboxUnavailable: `mmdebstrap` is missing or failed; the message ends with its last words.
        Stopped: as `Reporter.run`.
    """
    target = cache_dir() / "base" / f"{base.digest}.tar"
    if target.exists():
        return target
    if shutil.which("mmdebstrap") is None:
        raise SandboxUnavailable("mmdebstrap makes the base image and is not installed: apt-get install mmdebstrap")
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f"{_SCRATCH}*"):  # of a build that was killed, since this one holds the lock
        remove_tree(left)
    reporter.say("bootstrapping Debian 12 from packages, about a minute")
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=_SCRATCH))
    try:
        sources = scratch / "debian.sources"
        sources.write_text(debian_sources())
        draft = scratch / "base.tar"
        command = ["sh", str(base.folder / "bootstrap.sh"), str(sources), str(draft)]
        reporter.run([*_apart(), *command], what="mmdebstrap", environment=_places(scratch))
        draft.replace(target)
    finally:
        remove_tree(scratch)
    return target


def _apart() -> list[str]:
    """As root, mmdebstrap mounts in what it makes, and leaves that to whoever kills it: a namespace takes it along."""
    command = ["unshare", "--mount"]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return []
    # where this is not allowed, mmdebstrap cannot mount anything either
    tried = subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return command if tried.returncode == 0 else []


def _places(scratch: Path) -> dict[str, str]:
    """Where mmdebstrap works; a plain user's is in /tmp, for its subordinate uids must reach it."""
    return {"TMPDIR": str(scratch)} if os.geteuid() == 0 else {}
