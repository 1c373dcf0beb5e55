"""Where a family broke: the innermost frame of an error that lies in the family's own package."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from metier.envs.core import Family


def blamed(family: Family, error: BaseException) -> str:
    """The error in one line, with the author's file and line where one of them is in its traceback.

    Example: "ZeroDivisionError: division by zero (envs/law/notice_dates/family.py:41, in generate)"
    """
    said = f"{type(error).__name__}: {error}"
    module = sys.modules.get(type(family).__module__)
    if module is None or not module.__file__:
        return said
    folder = Path(module.__file__).parent
    inside = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)
    ]
    if not inside:
        return said
    path, here = Path(inside[-1].filename), Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{said} ({shown}:{inside[-1].lineno}, in {inside[-1].name})"
