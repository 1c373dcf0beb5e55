# pyright: reportMissingImports=false, reportMissingModuleSource=false
"""Recalculate a workbook with LibreOffice until nothing moves: `recalculate model.xlsx` saves it with its results.

LibreOffice stops a circular calculation after a sweep or two, far from the fixed point when many periods hang on one
another. So the whole workbook is calculated again and again from where it stands, as one presses F9, until every
watched cell is at rest. A workbook without a circle rests at once.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

SWEEPS = 80
RESTING = 1e-7
_START_S = 90.0
_OPTIONS = (
    ("Calc/Formula/Load", "OOXMLRecalcMode", 0),  # always
    ("Calc/Content/Update", "Link", 1),  # never
    ("Common/Security/Scripting", "MacroSecurityLevel", 3),  # no macros
)
_ITEM = '<item oor:path="/org.openoffice.Office.%s"><prop oor:name="%s" oor:op="fuse"><value>%d</value></prop></item>'
_SETTINGS = '<oor:items xmlns:oor="http://openoffice.org/2001/registry">%s</oor:items>'


class Office:
    """A running LibreOffice with a profile of its own; `close` ends it and everything it started."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="office-")
        os.makedirs(os.path.join(self.folder, "user"))
        with open(os.path.join(self.folder, "user", "registrymodifications.xcu"), "w") as file:
            file.write(_SETTINGS % "".join(_ITEM % option for option in _OPTIONS))
        pipe = os.path.basename(self.folder)
        command = ["soffice", f"-env:UserInstallation=file://{self.folder}", "--headless", "--norestore", "--nologo"]
        self.process = subprocess.Popen(
            [*command, "--nolockcheck", f"--accept=pipe,name={pipe};urp;"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.folder, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            self.desktop = self._desktop(pipe)
        except BaseException:
            self.close()
            raise

    def _desktop(self, pipe: str) -> Any:
        import uno

        local = uno.getComponentContext()
        resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
                return context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
            except Exception:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError("LibreOffice did not start") from None
                time.sleep(0.1)

    def close(self) -> None:
        """Idempotent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def workbook(self, path: str) -> Iterator[Any]:
        """The loaded workbook: hidden, no macros, no links."""
        load = _properties(Hidden=True, MacroExecutionMode=0, UpdateDocMode=0)
        book = self.desktop.loadComponentFromURL("file://" + os.path.abspath(path), "_blank", 0, load)
        if book is None or not book.supportsService("com.sun.star.sheet.SpreadsheetDocument"):
            raise ValueError("LibreOffice does not open it as a workbook")
        try:
            yield book
        finally:
            book.close(True)


def _properties(**values: Any) -> tuple[Any, ...]:
    from com.sun.star.beans import PropertyValue

    made = []
    for name, value in values.items():
        one = PropertyValue()
        one.Name, one.Value = name, value
        made.append(one)
    return tuple(made)


def named_cells(book: Any, name: str) -> list[Any]:
    """The cells of a defined name, of the workbook or of one of its sheets, in order.

    Raises:
        ValueError: there is none, or it is not one row or one column of cells.
    """
    scopes = [book.NamedRanges, *(sheet.NamedRanges for sheet in book.Sheets)]
    for scope in scopes:
        for known in scope.ElementNames:
            if known.lower() == name.lower():
                area = scope.getByName(known).getReferredCells()
                if area is None:
                    raise ValueError("does not refer to cells")
                return _line(area)
    raise ValueError("is no defined name of the workbook")


def _line(area: Any) -> list[Any]:
    place = area.getRangeAddress()
    across, down = place.EndColumn - place.StartColumn + 1, place.EndRow - place.StartRow + 1
    if across > 1 and down > 1:
        raise ValueError("refers to a block, not to one row or column")
    if across * down > 2000:
        raise ValueError(f"refers to {across * down} cells")
    return [area.getCellByPosition(at if across > 1 else 0, 0 if across > 1 else at) for at in range(across * down)]


def shown(cell: Any) -> float | str | None:
    """A number; the text or error of the cell; nothing where it is empty."""
    if cell.getError():
        return f"Err:{cell.getError()}"
    kind = cell.Type.value
    if kind == "EMPTY":
        return None
    if kind == "TEXT" or (kind == "FORMULA" and cell.FormulaResultType2 == 4):
        return cell.String[:40]
    return float(cell.Value)


def settle(book: Any, watched: Sequence[Any]) -> int:
    """Calculate until the watched cells rest; the number of sweeps it took, at most SWEEPS."""
    before: list[Any] = []
    for sweep in range(1, SWEEPS + 1):
        book.calculateAll()
        now = [cell.Value for cell in watched]
        if before and all(abs(a - b) <= RESTING for a, b in zip(now, before, strict=True)):
            return sweep
        before = now
    return SWEEPS


def formulas(book: Any) -> list[Any]:
    """Every cell with a formula."""
    found: list[Any] = []
    for sheet in book.Sheets:
        for area in sheet.queryContentCells(16):  # com.sun.star.sheet.CellFlags.FORMULA
            place = area.getRangeAddress()
            for row in range(place.EndRow - place.StartRow + 1):
                for column in range(place.EndColumn - place.StartColumn + 1):
                    found.append(area.getCellByPosition(column, row))
    return found


def main(paths: Sequence[str]) -> int:
    """Recalculate and save each file in place."""
    if not paths or any(path.startswith("-") for path in paths):
        print(f"usage: recalculate WORKBOOK.xlsx…\n\n{__doc__}")
        return 2
    office = Office()
    try:
        for path in paths:
            with office.workbook(path) as book:
                cells = formulas(book)
                sweeps = settle(book, cells)
                wrong = [f"{cell.AbsoluteName.replace('$', '')} {shown(cell)}" for cell in cells if cell.getError()]
                store = _properties(FilterName="Calc MS Excel 2007 XML", Overwrite=True)
                book.storeToURL("file://" + os.path.abspath(path), store)
            rest = "at rest" if sweeps < SWEEPS else "STILL MOVING"
            words = f"{path}: {len(cells)} formulas, {rest} after {sweeps} sweeps, {len(wrong)} errors"
            print(words, *wrong[:10], sep="\n  ")
    finally:
        office.close()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # past the interpreter's own end: there the bridge to an office that is gone crashes now and then
    os._exit(code)
