"""Write a workbook as .xlsx bytes with the standard library alone: pure, fast, the same bytes for the same content.

A generator may not import a spreadsheet library, and those stamp the time into what they save. Values are numbers or
text; text that begins with "=" is a formula, and no formula carries a cached value, so whatever opens the file has to
compute it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from xml.sax.saxutils import escape, quoteattr

Value = int | float | str

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_LETTERS = 26


class Style(IntEnum):
    """How a cell looks."""

    PLAIN = 0
    MONEY = 1
    """Grouped thousands, negative ones in parentheses."""
    HEAD = 2
    """Bold."""
    INPUT = 3
    """Blue, as modellers mark what may be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One sheet: (row, column), both from 1 → value.

    Example:
        >>> Sheet(name="Model", cells={(1, 1): "Revenue", (1, 2): 100, (1, 3): "=B1*1.05"}).name
        'Model'
    """

    name: str
    cells: Mapping[tuple[int, int], Value]
    styles: Mapping[tuple[int, int], Style] = field(default_factory=dict[tuple[int, int], Style])
    wide: int = 30
    """Width of the first column, in characters."""


def column(number: int) -> str:
    """The letters of a column counted from 1."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, _LETTERS)
        letters = chr(ord("A") + rest) + letters
    return letters


def xlsx(sheets: Sequence[Sheet], names: Mapping[str, str]) -> bytes:
    """The file's bytes; `names` are defined names with what they refer to, as in "Inputs!$B$2:$F$2"."""
    worksheets = [("worksheet", f"worksheets/sheet{index + 1}.xml") for index in range(len(sheets))]
    parts = {
        "[Content_Types].xml": _content_types(len(sheets)),
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": _workbook(sheets, names),
        "xl/_rels/workbook.xml.rels": _relations([*worksheets, ("styles", "styles.xml")]),
        "xl/styles.xml": _styles(),
    }
    parts |= {f"xl/worksheets/sheet{index + 1}.xml": _sheet(sheet) for index, sheet in enumerate(sheets)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in parts.items():
            archive.writestr(zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0)), text.encode())
    return buffer.getvalue()


def _content_types(num_sheets: int) -> str:
    overrides = [("/xl/workbook.xml", "sheet.main"), ("/xl/styles.xml", "styles")]
    overrides += [(f"/xl/worksheets/sheet{index + 1}.xml", "worksheet") for index in range(num_sheets)]
    listed = "".join(f'<Override PartName="{part}" ContentType="{_KIND}.{kind}+xml"/>' for part, kind in overrides)
    relations = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    plain = '<Default Extension="xml" ContentType="application/xml"/>'
    return f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">{relations}{plain}{listed}</Types>'


def _relations(targets: Sequence[tuple[str, str]]) -> str:
    listed = "".join(
        f'<Relationship Id="rId{index + 1}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for index, (kind, target) in enumerate(targets)
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def _workbook(sheets: Sequence[Sheet], names: Mapping[str, str]) -> str:
    listed = "".join(
        f'<sheet name={quoteattr(sheet.name)} sheetId="{index + 1}" r:id="rId{index + 1}"/>'
        for index, sheet in enumerate(sheets)
    )
    defined = "".join(f"<definedName name={quoteattr(name)}>{escape(to)}</definedName>" for name, to in names.items())
    defined = f"<definedNames>{defined}</definedNames>" if defined else ""
    return f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets>{defined}</workbook>'


def _styles() -> str:
    fonts = "".join(
        f'<font>{bold}<sz val="10"/>{colour}<name val="Liberation Sans"/></font>'
        for bold, colour in (("", ""), ("<b/>", ""), ("", '<color rgb="FF0000FF"/>'))
    )
    cells = "".join(
        f'<xf numFmtId="{kind}" fontId="{font}" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>'
        for kind, font in ((0, 0), (164, 0), (0, 1), (0, 2))
    )
    return (
        f'{_HEAD}<styleSheet xmlns="{_MAIN}"><numFmts count="1">'
        '<numFmt numFmtId="164" formatCode="#,##0;(#,##0)"/></numFmts>'
        f'<fonts count="3">{fonts}</fonts><fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="4">{cells}</cellXfs></styleSheet>'
    )


def _sheet(sheet: Sheet) -> str:
    rows: dict[int, list[str]] = {}
    for place in sorted(sheet.cells):
        style = sheet.styles.get(place, Style.PLAIN)
        rows.setdefault(place[0], []).append(_cell(place, sheet.cells[place], style))
    data = "".join(f'<row r="{row}">{"".join(cells)}</row>' for row, cells in rows.items())
    columns = f'<cols><col min="1" max="1" width="{sheet.wide}" customWidth="1"/></cols>'
    return f'{_HEAD}<worksheet xmlns="{_MAIN}">{columns}<sheetData>{data}</sheetData></worksheet>'


def _cell(place: tuple[int, int], value: Value, style: Style) -> str:
    opening = f'<c r="{column(place[1])}{place[0]}" s="{int(style)}"'
    if isinstance(value, str) and value.startswith("="):
        return f"{opening}><f>{escape(value[1:])}</f></c>"
    if isinstance(value, str):
        return f'{opening} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f"{opening}><v>{value!r}</v></c>"
