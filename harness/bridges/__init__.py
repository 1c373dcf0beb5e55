"""Bridges: other people's tasks come in as environments, and instances go out as other people's tasks."""

from .dataset import looks_like_tasks
from .exporting import CannotExport, Exported, ExportSettings, Unfit, export_task
from .importing import Imported, ImportSettings, add_tasks, import_tasks

__all__ = [
    "CannotExport",
    "ExportSettings",
    "Exported",
    "ImportSettings",
    "Imported",
    "Unfit",
    "add_tasks",
    "export_task",
    "import_tasks",
    "looks_like_tasks",
]
