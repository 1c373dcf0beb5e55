"""Recalculate a workbook under changed cells, inside a sandbox of the documents image: a question and answer in JSON.

No import of ours: its source is sent into the sandbox, where the image's own recalculation drives LibreOffice. Every
scenario loads the file anew and calculates it until it rests, so that a stale or forged cached result counts for
nothing, and an error of one case does not live on in the circle of another. Nothing that a file holds makes `examine`
raise: what is wrong with it is the answer's `failure`.
"""

import re
import sys
import zipfile
from typing import Any

MOST_BYTES = 96 << 20
"""Of a workbook's parts together, unpacked."""
_FORBIDDEN = {"vbaProject": "macros", "externalLink": "external links", "connections.xml": "queries"}
_FORMULA = re.compile(rb"<(?:\w+:)?f\b[^>]*>([^<]*)<")
_OUTSIDE = re.compile(rb"\[\d+\]|file:|https?:|\b(WEBSERVICE|DDE|RTD|FILTERXML)\s*\(", re.I)


def examine(question: dict[str, Any]) -> dict[str, Any]:
    """{"failure": why} or {"wrong": names, "constants": name → cells, "runs": [name → values]}."""
    path = question["path"]
    if why := _refused(path):
        return {"failure": why}
    sys.path.insert(0, "/opt/metier")
    import recalculate  # pyright: ignore[reportMissingImports]  # it lies in the image

    try:
        office: Any = recalculate.Office()
    except BaseException as error:
        return {"failure": f"LibreOffice did not start: {type(error).__name__}: {str(error)[:200]}"}
    answer: dict[str, Any] = {"failure": "", "wrong": {}, "constants": {}, "runs": []}
    try:
        for scenario in question["scenarios"]:
            with office.workbook(path) as book:
                if not _run(recalculate, book, question, scenario, answer):
                    break
    except BaseException as error:
        return {"failure": f"LibreOffice could not open and recalculate it: {type(error).__name__}: {str(error)[:200]}"}
    finally:
        office.close()
    return answer


def _refused(path: str) -> str:
    """Why the file is no workbook to be opened, or nothing."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MOST_BYTES:
                return f"it unpacks to more than {MOST_BYTES >> 20} MiB"
            for member in members:
                for part, what in _FORBIDDEN.items():
                    if part.lower() in member.filename.lower():
                        return f"it holds {what} ({member.filename[:60]})"
                if member.filename.startswith("xl/worksheets/") and member.filename.endswith(".xml"):
                    for formula in _FORMULA.findall(archive.read(member)):
                        if found := _OUTSIDE.search(formula):
                            return f"a formula reaches outside: {found.group()[:40].decode('utf-8', 'replace')}"
    except FileNotFoundError:
        return "there is no workbook"
    except BaseException as error:
        return f"it is no .xlsx file: {type(error).__name__}"
    return ""


def _run(tool: Any, book: Any, question: dict[str, Any], scenario: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Set, settle, read; False where a name that is to be set is wrong, since then no run means anything."""
    places: dict[str, list[Any]] = {}
    for name in dict.fromkeys([*question["set"], *question["read"]]):
        try:
            places[name] = tool.named_cells(book, name)
            wanted = question["counts"].get(name)
            if wanted is not None and len(places[name]) != wanted:
                raise ValueError(f"has {len(places[name])} cells, not {wanted}")
        except ValueError as error:
            answer["wrong"][name] = str(error)
    if any(name in answer["wrong"] for name in question["set"]):
        return False
    reads = [name for name in question["read"] if name not in answer["wrong"]]
    for name in reads:
        answer["constants"].setdefault(name, sum(cell.Type.value != "FORMULA" for cell in places[name]))
    for name, values in scenario["set"].items():
        for cell, value in zip(places[name], values, strict=True):
            cell.setValue(value)
    for name, index, value in scenario["overwrite"]:
        if name in reads:
            places[name][index].setValue(value)
    tool.settle(book, [cell for name in reads for cell in places[name]])
    answer["runs"].append({name: [tool.shown(cell) for cell in places[name]] for name in reads})
    return True
