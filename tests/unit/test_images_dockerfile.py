"""The small Dockerfile dialect: what is read, and that every refusal names file, line and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from metier.envs.core import ConfigError
from metier.images.dockerfile import expand, parent_of, parse


def _write(folder: Path, text: str) -> Path:
    path = folder / "Dockerfile"
    path.write_text(text)
    return path


def test_steps_keep_their_lines_and_join_continuations(tmp_path: Path) -> None:
    steps = parse(
        _write(
            tmp_path, "# tools\nFROM metier/base\n\nRUN apt-get update \\\n    # why\n    && true\nENV A=1 B='x y'\n"
        )
    )
    assert [(step.line, step.keyword) for step in steps] == [(2, "FROM"), (4, "RUN"), (7, "ENV")]
    assert steps[1].value == "apt-get update && true"
    assert steps[2].assignments() == {"A": "1", "B": "x y"}
    assert parent_of(steps) == "base"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("RUN true\n", 1, "first instruction must be FROM"),
        ("", 1, "first instruction must be FROM"),
        ("FROM debian:12\n", 1, "FROM metier/<image>"),
        ("FROM metier/base:latest\n", 1, "without a tag"),
        ("FROM metier/base\nFROM metier/base\n", 2, "second FROM"),
        ("FROM metier/base\n\nCMD bash\n", 3, "CMD is not allowed"),
        ("FROM metier/base\nUSER agent\n", 2, "USER is not allowed"),
        ('FROM metier/base\nRUN ["true"]\n', 2, "shell form"),
        ("FROM metier/base\nRUN --mount=type=cache true\n", 2, "without flags"),
        ("FROM metier/base\nRUN cat <<X\n", 2, "here-documents"),
        ("FROM metier/base\nCOPY --chown=1 a /a\n", 2, "without flags"),
        ("FROM metier/base\nCOPY a\n", 2, "source… target"),
        ("FROM metier/base\nCOPY ../a /a\n", 2, "own folder"),
        ("FROM metier/base\nCOPY /etc/passwd /a\n", 2, "own folder"),
        ("FROM metier/base\nCOPY a relative\n", 2, "absolute target"),
        ("FROM metier/base\nCOPY a b /c\n", 2, "end the target with /"),
        ("FROM metier/base\nENV A 1\n", 2, "ENV NAME=value"),
        ("FROM metier/base\nENV 1A=1\n", 2, "not a variable's name"),
        ("FROM metier/base\nENV A='1\n", 2, "quot"),
        ("FROM metier/base\nENV A=${B:-c}\n", 2, "only $NAME"),
        ("FROM metier/base\nARG A B\n", 2, "one name an ARG"),
        ("FROM metier/base\nRUN\n", 2, "says nothing"),
        ("FROM metier/base\nRUN true \\\n", 2, "backslash"),
    ],
)
def test_what_is_outside_the_dialect_is_refused_with_its_place(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as refusal:
        parse(path)
    assert str(refusal.value).startswith(f"{path}:{line}: ")
    assert said in str(refusal.value)


def test_variables_expand_as_in_docker() -> None:
    assert expand("/opt/bin:$PATH:${HOME}/x$NONE", {"PATH": "/bin", "HOME": "/h"}) == "/opt/bin:/bin:/h/x"
