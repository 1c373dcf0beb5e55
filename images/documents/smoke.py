"""Office work once: a PDF written and read back, a workbook recalculated after a change, a letter written and read."""
# pyright: reportMissingImports=false

import itertools
import subprocess
from pathlib import Path

import docx
import openpyxl
import pypdf
from reportlab.pdfgen.canvas import Canvas

WORK = Path("/workspace")
PROFILE = "-env:UserInstallation=file:///tmp/smoke-profile"


def pdf() -> None:
    path = WORK / "note.pdf"
    canvas = Canvas(str(path))
    canvas.drawString(72, 720, "Trade receivables 1,234.50")
    canvas.save()
    assert "1,234.50" in pypdf.PdfReader(path).pages[0].extract_text(), "pypdf does not read the page"
    text = subprocess.run(["pdftotext", "-layout", path, "-"], check=True, capture_output=True, text=True).stdout
    assert "Trade receivables 1,234.50" in text, "pdftotext does not read the page"
    subprocess.run(["pdftoppm", "-r", "40", "-png", path, WORK / "page"], check=True)
    assert list(WORK.glob("page*.png")), "pdftoppm made no picture"


def recalculated(path: Path) -> openpyxl.Workbook:
    target = WORK / "out"
    kind = "xlsx:Calc MS Excel 2007 XML"
    command = ["soffice", PROFILE, "--headless", "--convert-to", kind, "--outdir", target, path]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return openpyxl.load_workbook(target / path.name, data_only=True)


def workbook() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet["A1"], sheet["A2"] = 1000, 0.1
    sheet["B1"], sheet["B2"], sheet["B3"] = "=A1*(1+A2)", "=NPV(A2,B1,B1)", "=A1-0.5*A2*(A1+B3)"
    # the last one refers to itself: average-balance interest, which only iteration solves
    book.calculation.iterate, book.calculation.iterateCount, book.calculation.iterateDelta = True, 200, 1e-9
    book.save(WORK / "model.xlsx")
    first = recalculated(WORK / "model.xlsx").active
    assert abs(first["B1"].value - 1100) < 1e-9, f"B1 is {first['B1'].value}"
    assert abs(first["B2"].value - (1000 + 1100 / 1.21)) < 1e-6, f"B2 is {first['B2'].value}"
    assert abs(first["B3"].value - 950 / 1.05) < 1e-3, f"the circular cell is {first['B3'].value}"
    again = openpyxl.load_workbook(WORK / "out" / "model.xlsx")
    again.active["A1"] = 2000
    again.save(WORK / "model.xlsx")
    second = recalculated(WORK / "model.xlsx").active
    assert abs(second["B1"].value - 2200) < 1e-9, "the changed workbook was not recalculated"


def circle() -> None:
    """Twelve quarters of average-balance interest over two sheets, which LibreOffice alone leaves far from balance."""
    book = openpyxl.Workbook()
    debt, cash = book.active, book.create_sheet("Cash")
    debt.title, debt["A1"] = "Debt", 1000
    balance, letters = 1000.0, "ABCDEFGHIJKLM"
    for before, this in itertools.pairwise(letters):
        debt[f"{this}2"] = f"=({before}1+{this}1)/2*0.1"
        cash[f"{this}1"] = f"=50-Debt!{this}2"
        debt[f"{this}1"] = f"={before}1-Cash!{this}1"
        balance = (balance * 1.05 - 50) / 0.95
    book.calculation.iterate = True
    book.save(WORK / "circle.xlsx")
    command = ["recalculate", "circle.xlsx"]
    said = subprocess.run(command, cwd=WORK, check=True, timeout=120, capture_output=True, text=True)
    result = openpyxl.load_workbook(WORK / "circle.xlsx", data_only=True)["Debt"]["M1"].value
    assert "at rest" in said.stdout and abs(result - balance) < 1e-4, f"{result}, not {balance}: {said.stdout}"


def letter() -> None:
    document = docx.Document()
    document.add_heading("Engagement letter")
    document.add_paragraph("The fee is capped at 12,000.")
    document.save(WORK / "letter.docx")
    assert "12,000" in docx.Document(WORK / "letter.docx").paragraphs[1].text, "the letter does not read back"


pdf()
workbook()
circle()
letter()
print("a PDF, a workbook and a letter were written, recalculated and read back")
