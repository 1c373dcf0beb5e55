"""Removes containers of ours that nobody owns any more: at the start of a backend, and again while it runs.

Sandboxes end with their host by themselves; this is for what was created and never started, and for a host whose engine
was restarted meanwhile. It never touches a container without our labels, nor one whose owner cannot be judged from here
before its deadline has passed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metier.envs.core import SandboxError

from .. import owner
from .engine import Engine

EVERY_S = 30.0
GRACE_S = 60.0
REMOVE_S = 30.0


async def remove(engine: Engine, name: str, *, timeout_s: float = REMOVE_S) -> None:
    """Kills and removes a container, and waits until it is gone. Gone already is fine.

    Raises:
        SandboxError: the engine kept refusing, or it is still there after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = 0.02
    while True:
        response = await engine.request("DELETE", f"/containers/{name}", query={"force": "1", "v": "1"})
        if response.status == 404:
            return
        # 204: removed; 409: on its way out by itself; 500: the engine lost a race with that. All end as 404.
        if response.status == 204:
            return
        if time.monotonic() > deadline:
            raise SandboxError(f"container {name} could not be removed: {response.message}; remove it by hand")
        await asyncio.sleep(pause_s)
        pause_s = min(1.0, pause_s * 2)


async def reap(engine: Engine) -> list[str]:
    """Removes what has no living owner or is past its deadline; returns the names.

    Raises:
        SandboxError: the engine does not answer, or some of them resisted; the others are removed all the same.
    """
    filters = json.dumps({"label": [owner.OWNER]})
    containers = await engine.checked("GET", "/containers/json", query={"all": "1", "filters": filters})
    removed: list[str] = []
    resisted: list[SandboxError] = []
    for container in _listed(containers):
        if not _orphaned(container):
            continue
        try:
            await remove(engine, container["Id"])
        except SandboxError as error:
            resisted.append(error)
        else:
            removed.append(container["Names"][0].lstrip("/") if container.get("Names") else container["Id"])
    if resisted:
        raise resisted[0]
    return removed


def _listed(containers: Any) -> list[dict[str, Any]]:
    """The containers of an answer. Raises SandboxError for an answer that is no list of them."""
    if isinstance(containers, list) and all(isinstance(each, dict) and "Id" in each for each in containers):
        return containers
    raise SandboxError(f"the Docker engine answered with no list of containers: {str(containers)[:200]}")


def _orphaned(container: dict[str, Any]) -> bool:
    labels = container.get("Labels") or {}
    holder = owner.Owner.parse(labels.get(owner.OWNER, ""))
    # by the clock since boot where it is the same one: the time of day may be set, and would take from the living
    up = labels.get(owner.DEADLINE_UP, "") if holder is not None and holder.of_this_boot() else ""
    deadline, now = (up, owner.up_s()) if up.isdigit() else (labels.get(owner.DEADLINE, ""), time.time())
    past = deadline.isdigit() and now > int(deadline) + GRACE_S
    return past or (holder is not None and holder.dead())


async def reap_for_ever(engine: Engine, lock: Path) -> None:
    """Reaps every `EVERY_S`, in one process of this machine at a time; an engine that is away is tried again."""
    while True:
        with contextlib.suppress(SandboxError, OSError), _alone(lock) as alone:
            if alone:
                await reap(engine)
        await asyncio.sleep(EVERY_S)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)
