"""The statements as a reader gets them: plain text in thousands, what a total subtracts in parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .catalogue import Group
from .filing import Filing


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of a printed statement."""

    concept: str
    sign: int
    """-1 where the total above subtracts it, so that it is printed in parentheses."""
    total: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One printed statement."""

    role: str
    title: str
    rows: tuple[Row, ...]


def rows_of(groups: Sequence[Group]) -> list[Row]:
    """As a statement is printed: items above their total, each once."""
    rows: list[Row] = []
    totals = {total for total, *_ in groups}
    for total, _, _, items in groups:
        rows += [Row(concept=name, sign=weight) for name, _, weight in items if name not in totals]
        rows.append(Row(concept=total, sign=1, total=True))
    return rows


def printed(filing: Filing, statements: Sequence[Statement]) -> str:
    """The statements as text, in thousands, from the right facts."""
    values = {(fact.concept, fact.context): fact.value for fact in reversed(filing.facts) if fact.decimals != "-6"}
    years = sorted({int(name[2:6]) for name in filing.contexts}, reverse=True)
    heads = " " * 48 + "".join(f"{year:>14}" for year in years)
    lines = [filing.company, f"Consolidated statements at 31 December {years[0]}", ""]
    for statement in statements:
        unit = f"{filing.currency} thousand"
        lines += ["", f"{statement.title.upper()}  ({unit})", heads]
        instant = statement.role in ("Balance", "Assets")
        for row in statement.rows:
            cells = [values[row.concept, f"{'YE' if instant else 'FY'}{year}"] for year in years]
            text = "".join(f"{_printed(int(cell) // 1000 * row.sign):>14}" for cell in cells)
            label = filing.label(row.concept)
            if not row.total:
                label = f"  {label}"
            elif instant:
                label = f"Total {label[0].lower()}{label[1:]}"
            lines.append(f"{label:<48}{text}")
        if statement.role == "Income":
            for name, digits in (("WeightedShares", 0), ("EarningsPerShare", 2)):
                cells = [values[name, f"FY{year}"] for year in years]
                shown = [f"{int(cell) // 1000:,} " if digits == 0 else f"{cell} " for cell in cells]
                unit = " (thousand)" if digits == 0 else f" ({filing.currency})"
                lines.append(f"{filing.label(name) + unit:<48}" + "".join(f"{cell:>14}" for cell in shown))
    if filing.members:
        lines += [
            "",
            f"NOTE: SEGMENTS  ({filing.currency} thousand)",
            " " * 48 + "".join(f"{year:>14}" for year in years),
        ]
        for name in ("Revenue", "OperatingProfit"):
            lines.append(filing.label(name))
            for member in filing.members:
                cells = [values[name, f"FY{year}_{member.removesuffix('Member')}"] for year in years]
                text = "".join(f"{_printed(int(cell) // 1000):>14}" for cell in cells)
                lines.append(f"{'  ' + filing.label(member):<48}{text}")
    return "\n".join(lines) + "\n"


def _printed(amount: int) -> str:
    return f"({-amount:,})" if amount < 0 else f"{amount:,} "
