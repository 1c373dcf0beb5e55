"""The scripted fakes: a sandbox backend whose commands are answered from a table, and policies that follow a script."""

from ..policy.scripted import NoopPolicy, ScriptedPolicy
from ..sandbox.fake import FakeBackend, FakeSandbox, result

__all__ = ["FakeBackend", "FakeSandbox", "NoopPolicy", "ScriptedPolicy", "result"]
