"""The base image's tar: Debian 12 made from packages by `base/bootstrap.sh`, once for each version of that script."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from metier.envs.core import SandboxUnavailable

from .host import debian_sources
from .recipe import Recipe
from .reporter import Reporter
from .store import cache_dir


def base_tar(base: Recipe, reporter: Reporter) -> Path:
    """The tar of the base's root file system, made if it is not in the cache. The caller holds the base's lock.

    Raises:
        ConfigError: no Debian 12 apt sources on this machine.
        SandboxUnavailable: `mmdebstrap` is missing or failed; the message ends with its last words.
    """
    target = cache_dir() / "base" / f"{base.digest}.tar"
    if target.exists():
        return target
    if shutil.which("mmdebstrap") is None:
        raise SandboxUnavailable("mmdebstrap makes the base image and is not installed: apt-get install mmdebstrap")
    target.parent.mkdir(parents=True, exist_ok=True)
    reporter.say("bootstrapping Debian 12 from packages, about a minute")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="bootstrap-") as scratch:
        sources = Path(scratch) / "debian.sources"
        sources.write_text(debian_sources())
        draft = Path(scratch) / "base.tar"
        command = ["sh", str(base.folder / "bootstrap.sh"), str(sources), str(draft)]
        reporter.run(command, what="mmdebstrap")
        draft.replace(target)
    return target
