"""Bridges: other people's tasks come in as environments, and instances go out as other people's tasks."""

from .dataset import looks_like_tasks
from .exporting import CannotExport, Exported, ExportSettings, Unfit, export_task
from .importing import Imported, ImportSettings, add_tasks, import_tasks
from .naming import is_bridged

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
    "is_bridged",
    "looks_like_tasks",
]
