"""Where each row of a workbook stands, and what its cells hold; periods run across or, transposed, down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...parts.workbook_file import Sheet, Style, Value, column, xlsx
from .conventions import Conventions
from .expressions import Places, as_cells
from .figures import Company
from .lines import Line, Part, assumptions, lines

INPUTS = "Inputs"
_FIRST_ROW = 3
"""Below the heading and the periods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: cells of the past, then either one figure, a series, or a formula for each period.

    In `formula` {c} is the number or letters of this period's column, {p} of the one before.
    """

    sheet: str
    at: int
    name: str
    label: str
    past: tuple[float, ...] = ()
    values: tuple[float | str, ...] = ()
    formula: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Rows by name. `single`: one sheet for all, with periods down; else a sheet for each statement.

    The first cell of a row is its label; then come the past and the forecast. A figure that is the same in every
    period stands in the first cell of the forecast.
    """

    on: Conventions
    places: Mapping[str, tuple[str, int]]
    """Name → sheet, row (column where periods run down)."""
    down: bool = False

    @classmethod
    def of(cls, on: Conventions, *, single: bool = False, down: bool = False) -> Layout:
        """The usual order: assumptions, then the statements."""
        places: dict[str, tuple[str, int]] = {}
        used: dict[str, int] = {}
        listed = [("period", INPUTS), *((one.name, INPUTS) for one in assumptions(on))]
        for name, sheet in [*listed, *((line.name, str(line.part)) for line in lines(on))]:
            sheet = "Model" if single else sheet
            used[sheet] = used.get(sheet, _FIRST_ROW - 1) + 1
            places[name] = (sheet, used[sheet])
        return cls(on=on, places=places, down=down)

    def along(self, period: int) -> int:
        """The column (row) of a period; 0 is the first of the forecast, negative ones are past."""
        return 2 + self.on.history + period

    def range(self, name: str, first: int, count: int) -> str:
        """As a defined name refers to it."""
        ends = [self.cell(name, self._mark(self.along(first + step)), absolute=True) for step in (0, count - 1)]
        sheet = f"'{self.places[name][0]}'!"
        return sheet + (ends[0] if count == 1 else ":".join(ends))

    def _mark(self, along: int) -> str:
        return str(along) if self.down else column(along)

    def cell(self, name: str, mark: str, *, absolute: bool = False) -> str:
        """Its cell in the column (row) called `mark`, without the sheet."""
        across = column(self.places[name][1]) if self.down else str(self.places[name][1])
        fixed = "$" if absolute else ""
        return f"{fixed}{across}{fixed}{mark}" if self.down else f"{fixed}{mark}{fixed}{across}"

    def formula(self, line: str, formula: str) -> str:
        """The spreadsheet formula of a line with {c} and {p} in the place of the periods."""
        home = self.places[line][0]
        series = {one.name for one in assumptions(self.on) if one.series} | {"period"}
        series |= {one.name for one in lines(self.on)}
        first, last_past, first_past = (self._mark(self.along(step)) for step in (0, -1, -self.on.history))

        def on_sheet(name: str, text: str) -> str:
            sheet = self.places[name][0]
            return text if sheet == home else f"'{sheet}'!{text}"

        def this(name: str) -> str:
            if name in series:
                return on_sheet(name, self.cell(name, "{c}"))
            return on_sheet(name, self.cell(name, first, absolute=True))

        def until_now(name: str) -> str:
            return on_sheet(name, f"{self.cell(name, first, absolute=True)}:{self.cell(name, '{c}')}")

        def history(name: str) -> str:
            ends = (self.cell(name, mark, absolute=True) for mark in (first_past, last_past))
            return on_sheet(name, ":".join(ends))

        places = Places(
            this=this,
            before=lambda name: on_sheet(name, self.cell(name, "{p}")),
            opening=lambda name: on_sheet(name, self.cell(name, last_past, absolute=True)),
            history=history,
            until_now=until_now,
        )
        return "=" + as_cells(formula, places)

    def rows(self, company: Company, formulas: Mapping[str, str]) -> list[Row]:
        """Every row with its content; a line without a formula has empty cells."""
        made = [self._row("period", "Period", values=tuple(float(at + 1) for at in range(self.on.periods)))]
        for one in assumptions(self.on):
            made.append(self._row(one.name, f"{one.label} ({one.unit})", values=company.assumptions[one.name]))
        for line in lines(self.on):
            past = company.accounts[line.name] if line.past else ()
            formula = self.formula(line.name, formulas[line.name]) if formulas.get(line.name) else ""
            made.append(self._row(line.name, line.label, past=past, formula=formula))
        return made

    def _row(
        self, name: str, label: str, *, past: tuple[float, ...] = (), values: tuple[float, ...] = (), formula: str = ""
    ) -> Row:
        sheet, at = self.places[name]
        return Row(sheet=sheet, at=at, name=name, label=label, past=past, values=values, formula=formula)

    def names(self) -> dict[str, str]:
        """Every defined name of the brief → what it refers to."""
        found: dict[str, str] = {}
        for one in assumptions(self.on):
            found[one.name] = self.range(one.name, 0, self.on.periods if one.series else 1)
        for line in lines(self.on):
            if line.past:
                found[f"hist_{line.name}"] = self.range(line.name, -self.on.history, self.on.history)
            if line.graded:
                found[line.name] = self.range(line.name, 0, self.on.periods)
        return found

    def filled(self, row: Row) -> list[tuple[int, float | str]]:
        """(column, value or formula) of a row's cells."""
        cells: list[tuple[int, float | str]] = [
            (self.along(at - self.on.history), value) for at, value in enumerate(row.past)
        ]
        cells += [(self.along(at), value) for at, value in enumerate(row.values)]
        if row.formula:
            for at in range(self.on.periods):
                marks = {"c": self._mark(self.along(at)), "p": self._mark(self.along(at - 1))}
                cells.append((self.along(at), row.formula.format(**marks)))
        return cells


def workbook(layout: Layout, rows: Sequence[Row], labels: Sequence[str], title: str) -> bytes:
    """The .xlsx file of rows that run across; `labels` head the columns."""
    sheets: dict[str, tuple[dict[tuple[int, int], Value], dict[tuple[int, int], Style]]] = {}
    for row in rows:
        cells, styles = sheets.setdefault(row.sheet, ({}, {}))
        if not cells:
            cells[1, 1] = title if row.sheet == INPUTS else f"{title}: {row.sheet}"
            styles[1, 1] = Style.HEAD
            for at, label in enumerate(labels):
                cells[2, 2 + at], styles[2, 2 + at] = label, Style.HEAD
        cells[row.at, 1] = row.label
        for along, value in layout.filled(row):
            cells[row.at, along] = int(value) if isinstance(value, float) and value.is_integer() else value
            styles[row.at, along] = Style.INPUT if row.values and row.name != "period" else Style.MONEY
    made = [Sheet(name=name, cells=cells, styles=styles, wide=34) for name, (cells, styles) in sheets.items()]
    return xlsx(made, layout.names())


def statement_parts(on: Conventions) -> list[tuple[str, list[Line]]]:
    """The graded lines by statement."""
    return [(str(part), [line for line in lines(on) if line.part is part and line.graded]) for part in Part]
