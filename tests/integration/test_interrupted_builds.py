"""`metier images build` interrupted for real, on each engine and in each of its stages: nothing of it is left.

What is built is an image of this module's own on the real base, in a cache folder of its own; the base is only read.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import ConfigError
from metier.images import cache_dir, engine_answers, recipe
from metier.images.docker_builder import DockerBuilder
from metier.images.host import debian_sources
from metier.images.recipe import FOLDER
from process_table import alive, descendants
from waiting import patience, until

pytestmark = pytest.mark.slow

COMMAND = Path(__file__).parents[1] / "fixtures" / "other_images.py"
NAME = "test-interrupted"
SLOW_STEP = "FROM metier/base\nRUN echo test-interrupted && (setsid sleep 900 & sleep 900)\n"
QUICK = "FROM metier/base\nENV TEST_INTERRUPTED=1\n"
SLOW_SMOKE = "import subprocess\nsubprocess.run(['sleep', '900'])\n"
UP_S = 120.0
ENDS_S = {"docker": 5.0, "bubblewrap": 30.0}
"""Removing a copied root file system is most of it."""

STAGES = {
    "step": (SLOW_STEP, "true\n", "step 1/1 RUN"),
    "smoke test": (QUICK, SLOW_SMOKE, "smoke test"),
    "copying": (QUICK, "true\n", f"[{NAME}] copying base"),
}
"""What is built, its proof, and what is said just before the signal."""
ENGINES = [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"]
CASES = [
    pytest.param("docker", "step", marks=pytest.mark.docker),
    pytest.param("docker", "smoke test", marks=pytest.mark.docker),
    *(("bubblewrap", stage) for stage in STAGES),
]
SIGNALS = {"Ctrl-C": [signal.SIGINT], "Ctrl-C twice": [signal.SIGINT, signal.SIGINT], "SIGTERM": [signal.SIGTERM]}


@dataclass(frozen=True, slots=True)
class Place:
    """Recipes, a cache and a temporary folder that only one build has."""

    images: Path
    home: Path
    temporary: Path

    def start(self, name: str, engine: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(COMMAND), str(self.images), "images", "build", name, "--engine", engine]
        settings = {"METIER_HOME": str(self.home), "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            command, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def left(self) -> list[str]:
        """All but finished bases, their records, and locks."""
        base = recipe("base").digest
        kept = {f"{base}.tar", f"base-{base[:12]}"}
        made = [*self.home.glob("*/*"), *self.temporary.iterdir()]
        return [
            str(path)
            for path in made
            if path.parent.name != "locks" and path.name not in kept and not path.name.startswith("base-")
        ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for all of the module, since an unpacked base is large."""
    folder = tmp_path_factory.mktemp("home")
    yield folder
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Place:
    made = Place(tmp_path / "images", home, tmp_path / "tmp")
    shutil.copytree(FOLDER / "base", made.images / "base")
    (made.images / NAME).mkdir()
    made.temporary.mkdir()
    return made


@pytest.fixture
def engine(request: pytest.FixtureRequest, home: Path) -> str:
    """One that can build here, and the base for it."""
    if request.param == "docker":
        if not engine_answers() or DockerBuilder().is_podman() or not DockerBuilder().has(recipe("base")):
            pytest.skip("takes a Docker engine, and: metier images build base")
    else:
        base = cache_dir() / "base" / f"{recipe('base').digest}.tar"
        if os.geteuid() != 0 or shutil.which("bwrap") is None or not base.is_file():
            pytest.skip("takes root, bubblewrap, and: metier images build base")
        (home / "base").mkdir(exist_ok=True)
        if not (home / "base" / base.name).exists():
            (home / "base" / base.name).symlink_to(base)
    return str(request.param)


def lines_until(build: subprocess.Popen[str], words: str) -> list[str]:
    """What it says until it says this."""
    assert build.stderr is not None
    told: list[str] = []
    for line in build.stderr:
        told.append(line)
        if words in line:
            return told
    raise AssertionError("".join(told))


def interrupt(build: subprocess.Popen[str], signals: list[signal.Signals], within_s: float) -> None:
    """As a terminal does it, to all of its session; returns once it is gone."""
    family, began = descendants(build.pid), time.monotonic()
    for number, each in enumerate(signals):
        time.sleep(0.2 if number else 0)
        os.killpg(build.pid, each)
    assert build.stderr is not None
    said = build.stderr.read()
    build.wait()
    took_s = time.monotonic() - began
    print(f"ended after {took_s:.1f} s with {build.returncode}\n{said}")
    assert took_s < within_s * patience()
    assert build.returncode == 128 + signals[0]
    assert "stopped; what was being built is removed" in said
    assert "Traceback" not in said
    until(lambda: alive(family) == [], 3)


def mounted_in(folder: Path, pid: str | int = "self") -> list[str]:
    """Mount points there, as that process has them."""
    try:
        table = Path(f"/proc/{pid}/mountinfo").read_text()
    except OSError:
        return []
    return [point for line in table.splitlines() if (point := line.split()[4]).startswith(f"{folder}/")]


def containers(docker: Any) -> list[str]:
    """Of builds and smoke tests of this module's image, in any state: a step's has no label, but its command."""
    listed = docker._client.api.containers(all=True)
    return [each["Id"] for each in listed if NAME in each["Command"] + each["Labels"].get("metier.image-check", "")]


def tags(docker: DockerBuilder) -> list[str]:
    return [tag for tag in docker.stale(set()) if tag.startswith(f"metier/{NAME}:")]


@pytest.mark.parametrize("signals", SIGNALS)
@pytest.mark.parametrize(("engine", "stage"), CASES, indirect=["engine"])
def test_a_build_leaves_nothing(engine: str, place: Place, stage: str, signals: str) -> None:
    dockerfile, smoke, words = STAGES[stage]
    (place.images / NAME / "Dockerfile").write_text(dockerfile)
    (place.images / NAME / "smoke.py").write_text(smoke)
    with place.start(NAME, engine) as build:
        lines_until(build, words)
        time.sleep(0.5)
        interrupt(build, SIGNALS[signals], ENDS_S[engine])
    assert place.left() == []
    assert mounted_in(place.home) == []
    if engine == "docker":
        docker = DockerBuilder()
        until(lambda: containers(docker) == [], 5)
        assert tags(docker) == []


def test_a_bootstrap_leaves_nothing(place: Place) -> None:
    """The base itself, which mounts in what it makes."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("mmdebstrap", "bwrap", "unshare"))):
        pytest.skip("takes root, mmdebstrap, bubblewrap and util-linux")
    try:
        debian_sources()
    except ConfigError as gap:
        pytest.skip(str(gap))
    (place.images / "base" / "another").touch()  # a base that is not in the cache
    with place.start("base", "bubblewrap") as build:
        lines_until(build, "bootstrapping")
        until(lambda: any(mounted_in(place.home, pid) for pid in descendants(build.pid)) or build.poll(), UP_S)
        assert mounted_in(place.home) == [], "its mounts are nobody else's"
        assert list(place.home.glob("base/bootstrap-*/mmdebstrap.*")), "it works where it is removed"
        interrupt(build, SIGNALS["Ctrl-C twice"], ENDS_S["bubblewrap"])
    assert place.left() == []


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_the_same_command_goes_on_after_it(engine: str, place: Place) -> None:
    mark = place.images / NAME / "smoke.py"
    (place.images / NAME / "Dockerfile").write_text(QUICK)
    mark.write_text(SLOW_SMOKE)
    with place.start(NAME, engine) as build:
        lines_until(build, "smoke test")
        interrupt(build, SIGNALS["SIGTERM"], ENDS_S[engine])
    mark.write_text("print('fine')\n")
    with place.start(NAME, engine) as build:
        told = "".join(lines_until(build, f"[{NAME}] metier/{NAME}:"))
        build.wait()
    assert build.returncode == 0, told
    assert "[base] metier/base:" in told
    if engine == "docker":
        for tag in tags(DockerBuilder()):
            DockerBuilder().remove_tag(tag)
