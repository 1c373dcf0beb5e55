"""Building images: parents first, each once a recipe, proven by its smoke test, its contents listed."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable
from typing import Literal

from metier.envs.core import ConfigError, SandboxUnavailable

from .builder import SMOKE_PATH, Builder
from .docker_builder import DockerBuilder, engine_answers
from .recipe import Recipe, names, recipe
from .reporter import Reporter
from .rootfs_builder import RootfsBuilder
from .stopping import Stop
from .store import Progress, Record, cache_dir, load_record, locked, making_room, previous_record, save_record

Engine = Literal["auto", "docker", "bubblewrap"]

_LIST_PACKAGES = """
import importlib.metadata, subprocess
listed = subprocess.run(["dpkg-query", "-W", "-f", "deb ${Package} ${Version}\\n"], capture_output=True, text=True)
print(listed.stdout, end="")
for line in sorted({f"py {each.metadata['Name']} {each.version}" for each in importlib.metadata.distributions()}):
    print(line)
"""


def to_stderr(line: str) -> None:
    """Progress for a person at a terminal."""
    print(line, file=sys.stderr, flush=True)


def builder_for(engine: Engine, stop: Stop | None = None) -> Builder:
    """The builder of that name; `auto` is Docker where an engine answers, else bubblewrap.

    Raises:
        ConfigError: an engine that does not exist.
        SandboxUnavailable: it is not there, or cannot build on this machine.
    """
    if engine == "docker" or (engine == "auto" and engine_answers()):
        builder = DockerBuilder(stop)
        if builder.is_podman():
            raise SandboxUnavailable(
                "the engine is Podman, which runs our images but cannot build them; build them on Docker and hand them "
                "over by `docker save TAG | podman load`, or use --engine bubblewrap"
            )
        return builder
    if engine in ("auto", "bubblewrap"):
        return RootfsBuilder(stop)
    raise ConfigError(f"no engine named {engine!r}; there are auto, docker and bubblewrap")


def build(
    images: Iterable[str] | None = None,
    *,
    engine: Engine = "auto",
    progress: Progress = to_stderr,
    stop: Stop | None = None,
) -> list[Record]:
    """Build the named images (all by default) and their parents; what is there already is not built again.

    Raises:
        ConfigError: an unknown name or engine, or a Dockerfile outside the dialect: before anything is built.
        SandboxUnavailable: a step or a smoke test failed; the message shows where, and its last output.
        Stopped: `stop` was asked for.
    """
    wanted = [recipe(name) for name in (names() if images is None else images)]
    stop = stop or Stop()
    builder = builder_for(engine, stop)
    chain = {each.name: each for last in wanted for each in last.lineage()}
    with making_room(cache_dir(), "images"):
        return [_build_one(builder, each, progress, stop) for each in chain.values()]


def _build_one(builder: Builder, target: Recipe, progress: Progress, stop: Stop) -> Record:
    smoke = hashlib.sha256(target.smoke.read_bytes()).hexdigest() if target.smoke else ""
    with locked(target.name, progress, stop):
        done = load_record(target, builder.name)
        there = builder.has(target)
        if there and done and done.smoke == smoke:
            progress(f"[{target.name}] {target.tag} is there ({done.size_mb} MiB)")
            return done
        reporter = Reporter(target.name, progress, stop)
        if not there:
            builder.make(target, reporter)
        if target.smoke:
            _prove(builder, target, reporter, fresh=not there)
        listed = builder.run(target, ["python3", "-c", _LIST_PACKAGES])
        if listed.code != 0:
            raise SandboxUnavailable(f"the packages of image {target.name} cannot be listed:\n{listed.output}")
        record = Record(
            name=target.name,
            digest=target.digest,
            engine=builder.name,
            built_at=done.built_at if there and done else time.time(),
            seconds=round(reporter.seconds, 1),
            size_mb=builder.size_mb(target),
            smoke=smoke,
            manifest=tuple(listed.output.splitlines()),
        )
        _report_drift(target, record, reporter)
        save_record(target, record)
        reporter.say(f"{target.tag} built, {record.size_mb} MiB, {len(record.manifest)} packages")
        return record


def _prove(builder: Builder, target: Recipe, reporter: Reporter, *, fresh: bool) -> None:
    """Run the smoke test; an image that was just built and is not proven by it is removed, so that nobody uses it."""
    reporter.say("smoke test")
    try:
        ran = builder.run(target, ["python3", SMOKE_PATH], smoke=target.smoke)
        if ran.code != 0:
            tail = "\n".join(ran.output.splitlines()[-40:])
            raise SandboxUnavailable(
                f"image {target.name} failed its smoke test {target.smoke} (exit code {ran.code}):\n{tail}"
            )
    except BaseException:
        if fresh:
            builder.discard(target)
        raise


def _report_drift(target: Recipe, record: Record, reporter: Reporter) -> None:
    """Say which packages changed against the last build under this name."""
    before = load_record(target, record.engine) or previous_record(target, record.engine)
    if before:
        new = sorted(set(record.manifest) - set(before.manifest))
        gone = sorted(set(before.manifest) - set(record.manifest))
        if new or gone:
            reporter.say(
                f"differs from the build before: +{len(new)} −{len(gone)} packages: {', '.join(new[:4] or gone[:4])}"
            )
