"""The scheduler: which work runs where and when. It moves work items and knows nothing of environments or models."""

from .contract import Executor, FailedAttempt, Needs, WorkFailed, WorkItem, WorkResult
from .opening import EXECUTORS, open_executor
from .worker import on_close

__all__ = [
    "EXECUTORS",
    "Executor",
    "FailedAttempt",
    "Needs",
    "WorkFailed",
    "WorkItem",
    "WorkResult",
    "on_close",
    "open_executor",
]
