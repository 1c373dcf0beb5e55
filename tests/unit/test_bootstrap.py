"""Setting up a machine: what another checkout installed is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bootstrap.sh"


def test_another_checkouts_environment_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    copy = Path(shutil.copy(SCRIPT, tmp_path))
    environment = os.environ | {"METIER_VENV": sys.prefix, "METIER_HOME": str(tmp_path / "home")}
    done = subprocess.run([copy], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stdout
    assert f"{sys.prefix} has the metier of {SCRIPT.parent}" in done.stderr and "METIER_VENV" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [SCRIPT.name]
