"""What all tests share: a small registry of test environments, and a word on what a machine must have."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

pytest_plugins: list[str] = []

# a shell's background ignores Ctrl-C, and so would every command that a test starts and interrupts
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for _module in (
    "families",
    "policies",
    "sandbox_exec",
    "sandbox_files",
    "sandbox_isolation",
    "sandbox_sessions",
    "sandbox_tunnels",
    "spaces",
):
    pytest.register_assert_rewrite(f"metier.harness.testing.{_module}")


@pytest.fixture(autouse=True)
def _public_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests grade with the public development secret, whatever the machine's environment says."""
    monkeypatch.delenv("METIER_HUB_SECRET", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _no_bare_names() -> Iterator[None]:
    """After all tests: nobody imported a room of ours by its folder's name, which in a user's program is not there."""
    yield
    bare = {"envs", "images", "harness", "trainer", "scheduler"} & {name.partition(".")[0] for name in sys.modules}
    assert not bare, f"imported without `metier.`: {bare}"
