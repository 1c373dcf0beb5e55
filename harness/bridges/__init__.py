"""Bridges: other people's tasks come in as environments, and instances go out as other people's tasks."""

from .dataset import looks_like_tasks
from .importing import Imported, ImportSettings, add_tasks, import_tasks

__all__ = ["ImportSettings", "Imported", "add_tasks", "import_tasks", "looks_like_tasks"]
