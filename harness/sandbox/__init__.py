"""Sandboxes: where the agent acts and where the verifier measures. `open_backend` is the way in.

async with open_backend("auto") as backend, await backend.acquire(spec, deadline=deadline) as sandbox:
    result = await sandbox.exec("make test", timeout_s=60)
"""

from .registry import backend_names, open_backend
from .requests import RequestRefused

__all__ = ["RequestRefused", "backend_names", "open_backend"]
