"""Continuous integration: both lint and tests run, either can fail it, and pytest has the last word."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
SUMMARY = "==== 3 passed in 0.12s ===="
MAKEFILE = f"""
lint:
\t@echo "extra: $$METIER_APT_EXTRA"; exit $(LINT)
test:
\t@cat; echo "{SUMMARY}"; exit $(TEST)
"""


@pytest.mark.parametrize(("lint", "test"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_both_run_and_either_fails_it(tmp_path: Path, lint: int, test: int) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / "Makefile").write_text(MAKEFILE)
    run = shutil.copy(SCRIPT, tmp_path / ".ci")
    done = subprocess.run(
        [run],
        env={**os.environ, "LINT": str(lint), "TEST": str(test), "MAKEFLAGS": ""},
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = done.stdout.splitlines()
    assert (said[0], said[-1]) == ("extra: podman nodejs chromium prometheus", SUMMARY)
    assert (done.returncode == 0) == (lint == test == 0)
    assert ("lint failed" in done.stderr) == bool(lint)
