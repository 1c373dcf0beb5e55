"""The smallest whole environment, for tests: it works on the scripted sandbox too. `REGISTRY` is its registry file."""

from pathlib import Path

REGISTRY = Path(__file__).with_name("registry.yaml")

__all__ = ["REGISTRY"]
