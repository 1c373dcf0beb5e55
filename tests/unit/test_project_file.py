"""What pyproject.toml names is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_is_checked_strictly_exists() -> None:
    strict = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]["strict"]
    assert strict
    assert [name for name in strict if not (ROOT / name).exists()] == []
