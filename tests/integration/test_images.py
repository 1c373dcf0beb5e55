"""One recipe, two ways to build it: Docker's and the one without an engine give the same image, and fail alike."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import metier.images as images
from metier.envs.core import SandboxUnavailable
from metier.images import docker_builder, rootfs_builder, store
from metier.images.builder import Builder
from metier.images.recipe import FOLDER

ENGINES = [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"]
DOCKERFILE = """\
FROM metier/base
ARG LEVEL=7
ENV PATH=/opt/tool/bin:$PATH TOOL="a tool"
COPY data /opt/tool/bin
COPY data/run /opt/single
RUN echo "$LEVEL $TOOL" > /opt/told \\
    && chown agent /opt/told && test -n "$PIP_NO_CACHE_DIR" && head -c 1 "${PIP_CERT:-/dev/zero}" > /dev/null
"""
TREE = """
import hashlib, os
for folder, _, files in sorted(os.walk("/opt")):
    for path in [folder] + [os.path.join(folder, name) for name in sorted(files)]:
        status = os.lstat(path)
        content = hashlib.sha256(open(path, "rb").read()).hexdigest()[:12] if os.path.isfile(path) else ""
        print(path, oct(status.st_mode), content)
print(os.environ["PATH"], os.environ["TOOL"], os.environ.get("PIP_CERT"), os.path.exists("/run/metier-build"))
"""


@pytest.fixture(params=ENGINES)
def builder(request: pytest.FixtureRequest) -> Builder:
    """Each way to build."""
    if request.param == "docker":
        return docker_builder.DockerBuilder()
    if os.geteuid() != 0:
        pytest.skip("building without an engine takes root")
    return rootfs_builder.RootfsBuilder()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An `images/` with the real base and one small image; everything built from it goes again."""
    shutil.copytree(FOLDER / "base", tmp_path / "base")
    tool = tmp_path / "test-tool"
    (tool / "data").mkdir(parents=True)
    (tool / "data/run").write_text("#!/bin/sh\necho ran\n")
    (tool / "data/run").chmod(0o755)
    (tool / "data/read").write_text("data")
    (tool / "Dockerfile").write_text(DOCKERFILE)
    monkeypatch.setattr(importlib.import_module("metier.images.recipe"), "FOLDER", tmp_path)
    yield tmp_path
    for path in store.cache_dir().glob("*/test-tool-*"):
        rootfs_builder.remove_tree(path)
    (store.cache_dir() / "locks/test-tool").unlink(missing_ok=True)
    if images.engine_answers():
        docker = docker_builder.DockerBuilder()
        for tag in docker.stale(set()):
            if tag.startswith("metier/test-tool:"):
                docker.remove_tag(tag)


def _build(builder: Builder, lines: list[str]) -> store.Record:
    engine = "docker" if builder.name == "docker" else "bubblewrap"
    return images.build(["test-tool"], engine=engine, progress=lines.append)[-1]


@pytest.mark.docker
def test_both_ways_give_the_same_image(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("building without an engine takes root")
    seen, manifests = [], []
    for builder in (docker_builder.DockerBuilder(), rootfs_builder.RootfsBuilder()):
        manifests.append(_build(builder, []).manifest)
        seen.append(builder.run(images.recipe("test-tool"), ["python3", "-c", TREE]))
    assert seen[0] == seen[1]
    assert seen[0].code == 0, seen[0].output
    assert "/opt/tool/bin/run 0o100755" in seen[0].output
    assert seen[0].output.endswith("/opt/tool/bin:/usr/local/bin:/usr/bin:/bin a tool None False\n")
    assert manifests[0] == manifests[1]
    assert any(line.startswith("deb python3 ") for line in manifests[0])


def test_an_image_is_built_once_and_proven_again_when_its_proof_changes(builder: Builder, folder: Path) -> None:
    smoke = folder / "test-tool/smoke.py"
    smoke.write_text("import subprocess\nassert subprocess.check_output(['run']) == b'ran\\n'\n")
    lines: list[str] = []
    first = _build(builder, lines)
    assert [line for line in lines if "step 5/5 RUN" in line]
    lines.clear()
    assert _build(builder, lines) == first
    assert [line for line in lines if "is there" in line] == lines
    smoke.write_text("raise SystemExit('the tool is broken')\n")
    with pytest.raises(SandboxUnavailable, match=r"failed its smoke test[\s\S]*the tool is broken"):
        _build(builder, lines)
    assert builder.has(images.recipe("test-tool"))


def test_a_new_image_that_fails_its_proof_is_not_kept(builder: Builder, folder: Path) -> None:
    (folder / "test-tool/smoke.py").write_text("import os\nassert os.getuid() == 1000\nopen('/etc/x', 'w')\n")
    with pytest.raises(SandboxUnavailable, match="Read-only file system"):
        _build(builder, [])
    assert not builder.has(images.recipe("test-tool"))


def test_a_failing_step_names_its_line_and_shows_its_words(builder: Builder, folder: Path) -> None:
    (folder / "test-tool/Dockerfile").write_text("FROM metier/base\n\nRUN true\nRUN echo no such thing >&2; exit 3\n")
    with pytest.raises(SandboxUnavailable, match=r"test-tool/Dockerfile:4: .*3[\s\S]*no such thing"):
        _build(builder, [])
    assert not builder.has(images.recipe("test-tool"))
    assert not list(store.cache_dir().glob("rootfs/test-tool-*"))


@pytest.mark.docker
def test_a_docker_image_unpacks_to_a_root_file_system(folder: Path) -> None:
    _build(docker_builder.DockerBuilder(), [])
    root = images.rootfs("test-tool", build=False)
    assert (root / "opt/tool/bin/run").read_text() == "#!/bin/sh\necho ran\n"
    assert all((root / name).is_dir() for name in rootfs_builder.MOUNT_POINTS)


def test_a_root_file_system_that_is_nowhere_says_how_to_get_it(folder: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="metier images build test-tool"):
        images.rootfs("test-tool", build=False)


def test_prune_removes_only_what_no_recipe_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("metier.images.listing"), "engine_answers", lambda: False)
    monkeypatch.setenv("METIER_HOME", str(folder / "home"))
    current, old = store.rootfs_path(images.recipe("test-tool")), folder / "home/rootfs/test-tool-0123456789ab"
    for path in (current, old):
        path.mkdir(parents=True)
    assert images.prune(progress=lambda _line: None) == [str(old)]
    assert current.is_dir()
    assert not old.exists()
