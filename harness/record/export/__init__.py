"""Exports: what was recorded, in the formats of those who train on it (`sft`, `preference`) or look at it (`atif`,
`inspect`). `export` writes one; each is a module that knows one format.
"""

from .run import Exported, ExportSettings, Format, export

__all__ = ["ExportSettings", "Exported", "Format", "export"]
