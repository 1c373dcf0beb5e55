"""Recipes: names, digests that follow every byte that matters, environments, and what the host lends to a build."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import metier.images as images
from metier.envs.core import ConfigError
from metier.images import host, rootfs_builder
from metier.images.docker_builder import dockerfile_text

SOURCES = """\
Types: deb
# a comment
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://vendor.example/linux/debian
Suites: bookworm
Components: stable

Types: deb
URIs: http://other.example/apt
Suites: bookworm-other
Components: main
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `images/` of its own: base, `tool` FROM base, `trade` FROM tool."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base/bootstrap.sh").write_text("exec true\n")
    for name, parent, body in [
        ("tool", "base", "ARG V=3\nENV PATH=/opt/tool/bin:$PATH LEVEL=$V\n"),
        ("trade", "tool", "COPY data /opt/data\n"),
    ]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(f"FROM metier/{parent}\n{body}")
    (tmp_path / "trade/data").mkdir()
    (tmp_path / "trade/data/a.txt").write_text("a")
    # by its full name: the function `recipe` hides the module of that name
    monkeypatch.setattr(importlib.import_module("metier.images.recipe"), "FOLDER", tmp_path)
    return tmp_path


def test_every_shipped_recipe_is_in_the_dialect() -> None:
    for name in images.names():
        assert images.docker_tag(name) == f"metier/{name}:{images.digest(name)[:12]}"
    assert "base" in images.names()


def test_an_unknown_image_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean terminal-python"):
        images.recipe("terminal-pyhton")


def test_the_digest_follows_recipe_context_and_parents_but_not_the_proof(folder: Path) -> None:
    before = images.digest("trade")
    (folder / "trade/smoke.py").write_text("print(1)")
    (folder / "trade/data/__pycache__").mkdir()
    (folder / "trade/data/__pycache__/a.pyc").write_text("x")
    assert images.digest("trade") == before
    (folder / "trade/data/a.txt").write_text("b")
    second = images.digest("trade")
    (folder / "base/bootstrap.sh").write_text("exec false\n")
    third = images.digest("trade")
    (folder / "trade/data/a.txt").chmod(0o755)
    assert len({before, second, third, images.digest("trade")}) == 4


def test_the_environment_grows_along_the_parents(folder: Path) -> None:
    assert images.environment("trade") == {
        "PATH": "/opt/tool/bin:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LEVEL": "3",
    }


def test_a_circle_of_images_is_refused(folder: Path) -> None:
    (folder / "tool/Dockerfile").write_text("FROM metier/trade\n")
    with pytest.raises(ConfigError, match="circle"):
        images.recipe("trade")


def test_the_engine_gets_the_host_settings_as_arguments_only(folder: Path) -> None:
    text, ours = dockerfile_text(images.recipe("trade"))
    lines = text.splitlines()
    assert lines[0] == f"FROM {images.docker_tag('tool')}"
    assert lines[1 + ours] == "COPY data /opt/data"
    assert lines[-1] == "RUN rm -rf /run/metier-build"
    assert not [line for line in lines if line.startswith("ENV")]


def test_only_debians_own_sources_bootstrap_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "all.sources"
    path.write_text(SOURCES)
    (stanza,) = host._stanzas(path)
    assert "archive.example" in stanza
    assert "#" not in stanza
    listed = tmp_path / "all.list"
    listed.write_text(
        "deb [arch=amd64 signed-by=/k.gpg] http://archive.example/debian bookworm main contrib # ours\n"
        "deb-src http://archive.example/debian bookworm main\n"
        "deb http://vendor.example/x bookworm stable\n"
    )
    (entry,) = host._one_line_entries(listed)
    assert entry.splitlines() == [
        "Types: deb",
        "URIs: http://archive.example/debian",
        "Suites: bookworm",
        "Components: main contrib",
        "Signed-By: /k.gpg",
    ]
    monkeypatch.setenv("METIER_APT_SOURCES", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="METIER_APT_SOURCES"):
        host.debian_sources()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("data /opt/data", {"opt/data/a.txt", "opt/data/sub/run.sh"}),
        ("data/a.txt /opt/", {"opt/a.txt"}),
        ("data/a.txt /opt/b.txt", {"opt/b.txt"}),
        ("data/a.txt /etc", {"etc/a.txt"}),
        ("data/*.txt data/sub /opt/", {"opt/a.txt", "opt/run.sh"}),
    ],
)
def test_copy_without_an_engine_means_what_docker_means(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, words: str, expected: set[str]
) -> None:
    (folder / "trade/data/sub").mkdir()
    (folder / "trade/data/sub/run.sh").write_text("#!/bin/sh\n")
    (folder / "trade/data/sub/run.sh").chmod(0o700)
    (folder / "trade/Dockerfile").write_text(f"FROM metier/base\nCOPY {words}\n")
    root = tmp_path_factory.mktemp("root")
    (root / "etc").mkdir()
    trade = images.recipe("trade")
    rootfs_builder._copy(trade, root, trade.steps[1], {})
    found = {str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_file()}
    assert set(found) == expected
    assert all(mode == (0o755 if path.endswith(".sh") else 0o644) for path, mode in found.items())


def test_copy_follows_no_link_out_of_the_image(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "opt").symlink_to(tmp_path_factory.mktemp("outside"))
    trade = images.recipe("trade")
    with pytest.raises(ConfigError, match="leads out"):
        rootfs_builder._copy(trade, root, trade.steps[1], {})
