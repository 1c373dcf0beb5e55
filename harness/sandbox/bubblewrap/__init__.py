"""Sandboxes without an engine: namespaces, a read-only root and sized tmpfs by bubblewrap."""

from .backend import BubblewrapBackend

__all__ = ["BubblewrapBackend"]
