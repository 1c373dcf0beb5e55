"""A failing test is found, the code is repaired, and the test passes."""

import subprocess
import sys
from pathlib import Path

root = Path("/workspace")
root.joinpath("adder.py").write_text("def add(a, b):\n    return a - b\n")
root.joinpath("test_adder.py").write_text("from adder import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n")


def pytest() -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=root).returncode


assert pytest() == 1, "the fault must be found"
subprocess.run(["sed", "-i", "s/a - b/a + b/", "adder.py"], cwd=root, check=True)
assert pytest() == 0, "the repair must pass"
print("pytest found the fault and passed the repair")
