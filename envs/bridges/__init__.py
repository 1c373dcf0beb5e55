"""Bridges: tasks that others wrote, read as what they are, and played as environments of this hub.

A format module (`harbor_task`, `terminal_bench_task`) reads one task folder into a `ForeignTask`, which says what is
carried and what is not; `FolderTask` is the family that plays it. What makes an environment of it (its image, its
package) is in `metier.harness.bridges`, for that needs images.
"""

from .folder_task import FolderTask
from .foreign import ForeignTask, Solution, Testing
from .harbor_task import read_harbor
from .refusal import Reason, TaskRefused
from .terminal_bench_task import read_terminal_bench

__all__ = [
    "FolderTask",
    "ForeignTask",
    "Reason",
    "Solution",
    "TaskRefused",
    "Testing",
    "read_harbor",
    "read_terminal_bench",
]
