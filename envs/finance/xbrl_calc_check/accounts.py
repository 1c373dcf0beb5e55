"""Draw a company's statements: exact amounts that tie, each rounded by itself to thousands, as a filing.

Rounded by themselves, the parts of a total may miss it by a unit or two; that is no fault, and calculation 1.1 with
rounding accepts it. A concept is positive when it is what its label says, so an expense is a positive fact that its
total subtracts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core import Rng
from .catalogue import MEMBERS, SMALL, STATEMENTS, Group, Size
from .filing import Arc, Concept, Context, Fact, Filing, Role
from .statements import Statement, rows_of

_MONTH_END = "12-31"
_OTHER = {"EUR": "USD", "USD": "EUR", "GBP": "USD", "CHF": "EUR", "SEK": "EUR"}


class _Books:
    """Amounts in units of the currency by concept, for one year; totals follow their items."""

    def __init__(self, rng: Rng, scale: int) -> None:
        self._rng, self._scale = rng, scale
        self.amounts: dict[str, int] = {}

    def drawn(self, name: str, low: int = 15, high: int = 260) -> int:
        """A fresh amount, no round number, between so many thousandths of the scale."""
        amount = self._scale * self._rng.integer(low * 1000, high * 1000) // 1_000_000 + self._rng.integer(1, 999)
        return self.amounts.setdefault(name, amount)

    def total(self, name: str, items: Sequence[tuple[str, int]]) -> None:
        """The sum of its items by weight."""
        self.amounts[name] = sum(self.amounts[item] * weight for item, weight in items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The right filing, and the statements that it tags."""

    filing: Filing
    statements: tuple[Statement, ...]


def draw_accounts(rng: Rng, size: Size, *, prefix: str, company: str, currency: str, year: int) -> Accounts:
    """Everything of one company."""
    words = rng.child("items")
    statements = [STATEMENTS[name](words, size) for name in size.statements if name in STATEMENTS]
    groups = [group for _, _, _, groups in statements for group in groups]
    concepts, arcs, roles, printed = [], [], [], []
    for role, title, period, its in statements:
        rows = rows_of(its)
        heading = Concept(name=f"{role}Heading", label=title, kind="heading")
        known = {concept.name for concept in concepts}
        made = [_concept(name, label, period, its) for name, label in _named(its) if name not in known]
        concepts += [heading, *made]
        arcs += [Arc(role, total, item, weight) for total, _, _, items in its for item, _, weight in items]
        roles.append(Role(name=role, title=title, concepts=(heading.name, *(row.concept for row in rows))))
        printed.append(Statement(role=role, title=title, rows=tuple(rows)))
    contexts: dict[str, Context] = {}
    facts: list[Fact] = []
    members = tuple(words.sample(MEMBERS, 3)) if "segments" in size.statements else ()
    scale = rng.integer(40_000, 900_000) * 1000
    cash: int | None = None
    for back in range(size.years):
        books = _filled(rng.child(f"year {back}"), scale, groups, cash)
        cash = books.amounts["Cash"] - books.amounts.get("NetChangeInCash", 0)
        duration, instant = f"FY{year - back}", f"YE{year - back}"
        contexts[duration] = Context(f"{year - back}-01-01/{year - back}-{_MONTH_END}")
        contexts[instant] = Context(f"{year - back}-{_MONTH_END}")
        for concept in concepts:
            if concept.kind == "money":
                context = instant if concept.period == "instant" else duration
                facts.append(Fact(concept.name, context, currency, _thousands(books.amounts[concept.name]), "-3"))
        for member, _ in members:
            name = f"{duration}_{member.removesuffix('Member')}"
            contexts[name] = Context(contexts[duration].period, (("SegmentAxis", member),))
        if members:
            facts += _segments(rng.child(f"segments {back}"), books, members, duration, currency)
        if "income" in size.statements:
            shares = rng.child(f"shares {back}").integer(8_000, 90_000) * 1000
            facts.append(Fact("WeightedShares", duration, "shares", str(shares), "-3"))
            earned = f"{books.amounts['ProfitForTheYear'] / shares:.2f}"
            facts.append(Fact("EarningsPerShare", duration, f"{currency}_per_share", earned, "2"))
    if "income" in size.statements:
        concepts.append(Concept(name="WeightedShares", label="Weighted average number of shares", kind="shares"))
        concepts.append(Concept(name="EarningsPerShare", label="Earnings per share", kind="per_share"))
        income = next(index for index, role in enumerate(roles) if role.name == "Income")
        both = ("WeightedShares", "EarningsPerShare")
        roles[income] = Role(name="Income", title=roles[income].title, concepts=(*roles[income].concepts, *both))
    if members:
        role, added = _segment_role(members)
        roles.append(role)
        concepts += added
    filing = Filing(
        prefix=prefix,
        company=company,
        entity=f"{rng.integer(10_000_000, 99_999_999)}",
        currency=currency,
        date=f"{year}-{_MONTH_END}",
        concepts=tuple(concepts),
        roles=tuple(roles),
        arcs=tuple(arcs),
        contexts=contexts,
        units=_units(currency, "income" in size.statements),
        facts=tuple(_with_repeats(rng.child("repeats"), facts, size.repeats)),
        axis="SegmentAxis" if members else "",
        members=tuple(name for name, _ in members),
    )
    return Accounts(filing=filing, statements=tuple(printed))


def _units(currency: str, shares: bool) -> dict[str, str]:
    units = {currency: f"iso4217:{currency}"}
    if shares:
        other = _OTHER[currency]
        units |= {"shares": "xbrli:shares", f"{currency}_per_share": f"iso4217:{currency}/xbrli:shares"}
        # a reader's convenience translation is filed in it elsewhere; nothing in these statements is
        units |= {other: f"iso4217:{other}"}
    return units


def _thousands(amount: int) -> str:
    """Rounded to thousands, halves up, written in full."""
    return str((amount + 500) // 1000 * 1000)


def _with_repeats(rng: Rng, facts: Sequence[Fact], count: int) -> list[Fact]:
    """Some facts once more, at the end, as a note repeats them: the same, or rounded to millions."""
    money = [fact for fact in facts if fact.decimals == "-3"]
    repeated: list[Fact] = []
    for index, fact in enumerate(rng.sample(money, count)):
        if index % 2:
            rounded = (abs(int(fact.value)) + 500_000) // 1_000_000 * 1_000_000
            repeated.append(fact._replace(value=str(rounded if int(fact.value) >= 0 else -rounded), decimals="-6"))
        else:
            repeated.append(fact)
    return [*facts, *repeated]


def _filled(rng: Rng, scale: int, groups: Sequence[Group], cash: int | None) -> _Books:
    """Amounts of one year that tie: assets equal equity and liabilities, profit is the same everywhere.

    `cash` is what the year after began with, where there is one.
    """
    books = _Books(rng, scale)
    if cash is not None:
        books.amounts["Cash"] = cash
    totals = {total for total, *_ in groups}
    known = {item for _, _, _, items in groups for item, _, _ in items}
    if "Revenue" in known:
        books.drawn("Revenue", 900, 1300)
        books.drawn("CostOfSales", 400, 560)
    for name in ("SellingExpenses", "AdministrativeExpenses"):
        if name in known:
            books.drawn(name, 50, 110)
    for _, _, _, items in groups:
        for item, _, _ in items:
            if item not in totals and item not in ("RetainedEarnings", "ProfitForTheYear"):
                books.drawn(item, 15, 70 if item in SMALL else 180)
    _totalled(books, groups)
    if "RetainedEarnings" in known:
        owed = books.amounts["CurrentLiabilities"] + books.amounts["NonCurrentLiabilities"]
        paid = books.amounts["ShareCapital"] - books.amounts["TreasuryShares"]
        books.amounts["RetainedEarnings"] = books.amounts["Assets"] - owed - paid
    _totalled(books, groups)
    if "NetChangeInCash" in totals:
        _tied(books, rng)
        _totalled(books, groups)
    return books


def _tied(books: _Books, rng: Rng) -> None:
    """Repay what leaves a small change in cash, and borrow more where that would be negative."""
    amounts = books.amounts
    change = amounts["Cash"] * rng.integer(-300, 300) // 1000 + rng.integer(1, 999)
    others = amounts["CashFromOperations"] + amounts["CashFromInvesting"] + amounts["CashFromFinancing"]
    repaid = others + amounts["RepaymentOfBorrowings"] - change
    least = books.drawn("least repayment", 20, 60)
    if repaid < least:
        amounts["ProceedsFromBorrowings"] += least - repaid
        repaid = least
    amounts["RepaymentOfBorrowings"] = repaid


def _totalled(books: _Books, groups: Sequence[Group]) -> None:
    for _ in range(2):  # some totals wait for others
        for total, _, _, items in groups:
            if all(item in books.amounts for item, _, _ in items):
                books.total(total, [(item, weight) for item, _, weight in items])


def _named(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Every concept of the groups, once, with its label."""
    found: dict[str, str] = {}
    for total, label, _, items in groups:
        found.update({name: text for name, text, _ in items})
        found[total] = label
    return list(found.items())


def _concept(name: str, label: str, period: str, groups: Sequence[Group]) -> Concept:
    group = next((group for group in groups if group[0] == name), None)
    if group:
        return Concept(name=name, label=label, kind="money", period=period, balance=group[2], total=True)
    parent, weight = next((one[2], item[2]) for one in groups for item in one[3] if item[0] == name)
    # an item that its total subtracts has the other balance; cash flows have none
    balance = parent if weight > 0 else {"debit": "credit", "credit": "debit", "": ""}[parent]
    return Concept(name=name, label=label, kind="money", period=period, balance=balance)


def _segment_role(members: Sequence[tuple[str, str]]) -> tuple[Role, list[Concept]]:
    added = [
        Concept(name="SegmentsHeading", label="Segments", kind="heading"),
        Concept(name="SegmentTable", label="Segments [table]", kind="table"),
        Concept(name="SegmentAxis", label="Segment [axis]", kind="axis"),
        Concept(name="SegmentsDomain", label="All segments [domain]", kind="domain"),
        *(Concept(name=name, label=label, kind="member") for name, label in members),
    ]
    names = (*(concept.name for concept in added), "Revenue", "OperatingProfit")
    return Role(name="Segments", title="Note: segments", concepts=names), added


def _segments(rng: Rng, books: _Books, members: Sequence[tuple[str, str]], duration: str, currency: str) -> list[Fact]:
    """Revenue and operating profit split over the members."""
    facts: list[Fact] = []
    for name in ("Revenue", "OperatingProfit"):
        rest = books.amounts[name]
        for index, (member, _) in enumerate(members):
            part = rest if index == len(members) - 1 else rest * rng.integer(250, 550) // 1000
            rest -= part
            context = f"{duration}_{member.removesuffix('Member')}"
            facts.append(Fact(name, context, currency, _thousands(part), "-3"))
    return facts
