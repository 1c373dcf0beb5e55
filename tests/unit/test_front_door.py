"""`import metier` registers with Gymnasium whichever of the two comes first, and does not pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALL_THERE = """
from metier.envs import registry
assert set(registry.ids()) <= set(gymnasium.registry)
assert not [finder for finder in sys.meta_path if type(finder).__module__ == "metier"], sys.meta_path
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "imports",
    [
        "import metier, gymnasium",
        "import gymnasium, metier",
        "import metier; from gymnasium.envs import registration; import gymnasium",
        "import gymnasium.spaces, metier",
        "import metier.envs.core, gymnasium",
    ],
)
def test_the_order_does_not_matter(imports: str) -> None:
    run(f"import sys\n{imports}{ALL_THERE}")


def test_gymnasium_is_not_imported_before_somebody_wants_it() -> None:
    run("import sys, metier\nassert not {'gymnasium', 'numpy'} & set(sys.modules)")


def test_a_module_prefix_is_enough() -> None:
    run("import gymnasium\ngymnasium.make('metier:finance/CovenantTest-v0')")


def test_registering_early_is_allowed() -> None:
    run(f"import sys, metier\nmetier.register_environments()\nimport gymnasium{ALL_THERE}")


def test_the_import_brings_no_stranger_along() -> None:
    known = "metier yaml _yaml typing_extensions"
    run(f"""
import sys
before = set(sys.modules)
import metier
new = {{name.partition(".")[0] for name in set(sys.modules) - before}} - set(sys.stdlib_module_names)
strange = [name for name in new - set("{known}".split()) if "cython" not in name]
assert not strange, strange
""")


def test_no_room_is_imported_by_its_bare_name() -> None:
    """The folders are packages of ours by mapping only; `import envs` would take a name that may be another's."""
    run("""
import sys
import metier.cli, metier.harness.gym.env, metier.harness.gym.vector, metier.harness.runner, metier.harness.testing
import metier.images, metier.scheduler.local_executor
from metier.envs import registry
for env_id in registry.ids():
    registry.make_family(registry.get(env_id))
bare = {"envs", "images", "harness", "trainer", "scheduler"} & {name.partition(".")[0] for name in sys.modules}
assert not bare, bare
""")
