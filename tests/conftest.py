"""What all tests share: a small registry of test environments, and a word on what a machine must have."""

from __future__ import annotations

import pytest

pytest_plugins: list[str] = []


@pytest.fixture(autouse=True)
def _public_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests grade with the public development secret, whatever the machine's environment says."""
    monkeypatch.delenv("METIER_HUB_SECRET", raising=False)
