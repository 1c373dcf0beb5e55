"""The rest of the ledger: people, sites, contracts and their amendments, disputes, and the offering itself."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction

from ...core import Rng
from ...parts.displays import rounded, spelled
from ...parts.ledger import Kind, Ledger, ordinal
from .names import Names
from .world import CREW, days_before, end_of, part, recent_of, year_of


def add_dealings(rng: Rng, book: Ledger, names: Names) -> None:
    """Everything that is not in the statements."""
    _people(rng, book, names)
    _business(rng, book, names)
    _financing(rng, book, names)
    _contracts(rng, book, names)
    _offering(rng, book, names)
    _governance(rng, book, names)


def _people(rng: Rng, book: Ledger, names: Names) -> None:
    heads = int(book["revenue.0"] / rng.integer(180, 240)) + rng.integer(3, 60)
    book.add("employees.0", Kind.COUNT, heads, "Employees", end_of(names, 0))
    book.add("employees.1", Kind.COUNT, heads - rng.integer(60, 190), "Employees", end_of(names, 1))
    average = heads - rng.integer(25, 58)
    book.add("employees_average", Kind.COUNT, average, "Employees, average", year_of(names, 0))
    book.add("employees_recent", Kind.COUNT, heads + rng.integer(31, 120), "Employees", recent_of(names))
    left = heads
    labels = ("production", "sales and service", "research and development", "administration")
    for key, label, (low, high) in zip(CREW, labels, ((480, 560), (130, 190), (60, 110), (0, 0)), strict=True):
        count = heads * rng.integer(low, high) // 1000 if high else left
        left -= count
        book.add(key, Kind.COUNT, count, f"Employees in {label}", end_of(names, 0))
    book.relate("employees.0", *CREW)
    book.add("staff_costs.0", Kind.MONEY, part(rng, book["revenue.0"], 205, 255), "Staff costs", year_of(names, 0))


def _business(rng: Rng, book: Ledger, names: Names) -> None:
    end, recent = end_of(names, 0), recent_of(names)
    owned, leased = rng.integer(3, 6), rng.integer(2, 5)
    book.add("sites_owned", Kind.COUNT, owned, "Production sites owned", recent)
    book.add("sites_leased", Kind.COUNT, leased, "Production sites leased", recent)
    book.derive("sites", Kind.COUNT, owned + leased, "Production sites", recent, ("sites_owned", "sites_leased"))
    book.add("countries", Kind.COUNT, rng.integer(21, 64), "Countries with customers", end)
    book.add("customers", Kind.COUNT, rng.integer(1310, 6870), "Active customers", end)
    backlog = part(rng, book["revenue.0"], 310, 560)
    book.add("backlog.0", Kind.MONEY, backlog, "Order backlog", end)
    book.add("backlog_recent", Kind.MONEY, backlog + part(rng, Fraction(backlog), 41, 120), "Order backlog", recent)
    book.add("capacity", Kind.COUNT, rng.integer(1100, 9800), f"Annual capacity, {names.trade.unit}", end)
    book.add("utilisation", Kind.PERCENT, Fraction(rng.integer(712, 938), 10), "Utilisation of capacity", end)
    largest = Fraction(rng.integer(74, 139), 10)
    year = year_of(names, 0)
    book.add("top_customer", Kind.PERCENT, largest, "Largest customer's share of revenue", year)
    book.add("top_five", Kind.PERCENT, largest + Fraction(rng.integer(161, 249), 10), "Five largest customers", year)
    book.add("patents", Kind.COUNT, rng.integer(118, 460), "Patents granted", recent)
    book.add("market_share", Kind.PERCENT, Fraction(rng.integer(88, 261), 10), "Market share in Europe", year)


def _financing(rng: Rng, book: Ledger, names: Names) -> None:
    end = end_of(names, 0)
    owed = book["debt_long.0"]
    commitment = 5000 * int(owed * rng.integer(96, 112) / 500_000) + 5000
    first = commitment - 2500 * rng.integer(4, 9)
    signed = date(names.year - 2, rng.integer(2, 11), rng.integer(2, 27))
    amended = date(names.year, rng.integer(2, 11), rng.integer(2, 27))
    book.add("facility_first", Kind.MONEY, first, "Senior Facility, Original Commitment", "at signing")
    book.add("facility", Kind.MONEY, commitment, "Senior Facility, Commitment", "since amended")
    drawn = part(rng, owed, 560, 740)
    book.add("facility_drawn", Kind.MONEY, drawn, "Senior Facility, amount drawn", end)
    book.add("facility_margin", Kind.PERCENT, Fraction(rng.integer(36, 66) * 5, 100), "Senior Facility, margin", end)
    book.add("facility_signed", Kind.DATE, ordinal(signed), "Senior Facility, signing", "date")
    book.add("facility_amended", Kind.DATE, ordinal(amended), "Senior Facility, amendment", "date")
    matures = date(names.year + rng.integer(3, 5), signed.month, signed.day)
    book.add("facility_matures", Kind.DATE, ordinal(matures), "Senior Facility, final maturity", "date")
    covenant = Fraction(rng.integer(13, 17), 4)
    book.add("covenant", Kind.MULTIPLE, covenant, "Senior Facility, leverage covenant", end)
    pension = part(rng, book["revenue.0"], 21, 42)
    book.add("pension", Kind.MONEY, pension, "Pension obligation (defined benefit)", end)
    losses = part(rng, book["revenue.0"], 33, 72)
    book.add("tax_losses", Kind.MONEY, losses, "Tax loss carry-forwards not recognised", end)
    ordered = part(rng, book["capex.0"], 240, 480)
    book.add("commitments", Kind.MONEY, ordered, "Contractual commitments for equipment", end)
    doubtful = part(rng, book["receivables.0"], 22, 51)
    book.add("allowance", Kind.MONEY, doubtful, "Loss allowance on trade receivables", end)
    whole = book["provisions.0"]
    warranty, legal = part(rng, whole, 380, 480), part(rng, whole, 180, 260)
    book.add("warranty", Kind.MONEY, warranty, "Provision for warranties", end)
    book.add("legal", Kind.MONEY, legal, "Provision for legal disputes", end)
    book.add("restructuring", Kind.MONEY, whole - warranty - legal, "Provision for restructuring", end)
    book.relate("provisions.0", "warranty", "legal", "restructuring")


def _contracts(rng: Rng, book: Ledger, names: Names) -> None:
    def amended(key: str, kind: Kind, value: int, label: str, when: str) -> None:
        """As printed in the prospectus, and as its supplement has it."""
        book.add(key, kind, value, label, when)
        later = value + value * rng.integer(7, 19) // 100
        book.add(f"{key}_later", kind, later, f"{label}, as supplemented", when)

    def day(key: str, year: int, label: str) -> None:
        drawn = date(year, rng.integer(1, 12), rng.integer(2, 27))
        book.add(key, Kind.DATE, ordinal(drawn), label, "date")

    yearly = "per year"
    book.add("office_area", Kind.COUNT, rng.integer(6210, 18900), "Head office, floor area (sq m)", "lease")
    amended("office_rent", Kind.MONEY, rng.integer(1130, 2960), "Head office, annual rent", yearly)
    day("office_until", names.year + rng.integer(6, 11), "Head office, expiry of the lease")
    amended("claim", Kind.MONEY, part(rng, book["revenue.0"], 19, 38), f"Claim of {names.claimant}", "as filed")
    day("claim_filed", names.year - 1, f"Claim of {names.claimant}, filing")
    minimum = part(rng, book["cost_of_sales.0"], 52, 97)
    book.add("supply", Kind.MONEY, minimum, "Supply agreement, minimum purchases", yearly)
    day("supply_signed", names.year - 3, "Supply agreement, signing")
    day("supply_until", names.year + rng.integer(3, 6), "Supply agreement, expiry")
    royalty = Fraction(rng.integer(21, 58), 10)
    book.add("royalty", Kind.PERCENT, royalty, "Licence, royalty on sales of licensed products", yearly)
    day("licence_until", names.year + rng.integer(4, 9), "Licence, expiry")
    price = int(book["acquired_goodwill"] * 1000 / rng.integer(410, 620)) + rng.integer(3, 96)
    book.add("acquired", Kind.MONEY, price, f"Consideration for {names.acquired}", "at completion")
    day("acquired_on", names.year, f"Completion of the acquisition of {names.acquired}")
    book.add("acquired_staff", Kind.COUNT, rng.integer(142, 489), f"Employees of {names.acquired}", "at completion")


def _offering(rng: Rng, book: Ledger, names: Names) -> None:
    dated = f"prospectus of {spelled(names.dated)}"
    price = Fraction(rng.integer(1150, 3890) // 5 * 5, 100)
    raised = book["net_debt.0"] * rng.integer(420, 640) / 1000
    new = int(raised * 1000 / price / 10_000) * 10_000
    before = new * rng.integer(3, 4) + 250_000 * rng.integer(1, 7)
    sold = new * rng.integer(30, 70) // 100_000 * 1000
    book.add("price", Kind.PRICE, price, "Offer Price", dated)
    book.add("new_shares", Kind.COUNT, new, "New Shares", dated)
    book.add("sale_shares", Kind.COUNT, sold, "Sale Shares", dated)
    of = ("new_shares", "sale_shares")
    book.derive("offered", Kind.COUNT, new + sold, "Offer Shares", dated, of)
    book.derive("option", Kind.COUNT, (new + sold) * 15 // 100, "Over-allotment shares", dated, ("offered",))
    gross = Fraction(rounded(new * price / 1000))
    book.derive("gross_proceeds", Kind.MONEY, gross, "Gross proceeds of the Issuer", dated, ("new_shares", "price"))
    book.add("issue_costs", Kind.MONEY, part(rng, gross, 31, 48), "Costs of the Offering", dated)
    net = gross - book["issue_costs"]
    of = ("gross_proceeds", "issue_costs")
    book.derive("net_proceeds", Kind.MONEY, net, "Net proceeds of the Issuer", dated, of)
    repaid, spent = part(rng, net, 380, 490), part(rng, net, 230, 320)
    book.add("use_debt", Kind.MONEY, repaid, "Net proceeds used to repay debt", dated)
    book.add("use_plant", Kind.MONEY, spent, "Net proceeds used for new capacity", dated)
    book.add("use_general", Kind.MONEY, net - repaid - spent, "Net proceeds for general purposes", dated)
    book.relate("net_proceeds", "use_debt", "use_plant", "use_general")
    book.add("shares_before", Kind.COUNT, before, "Shares in issue before the Offering", dated)
    of = ("shares_before", "new_shares")
    book.derive("shares_after", Kind.COUNT, before + new, "Shares in issue after the Offering", dated, of)
    for key, (low, high) in {"holder_a": (410, 520), "holder_b": (110, 190)}.items():
        name = names.holders[key == "holder_b"]
        held = before * rng.integer(low, high) // 1000
        after = held - (sold if key == "holder_a" else 0)
        book.add(f"{key}_shares", Kind.COUNT, held, f"Shares of {name} before the Offering", dated)
        of, share = (f"{key}_shares", "shares_before"), Fraction(100 * held, before)
        book.derive(f"{key}_before", Kind.PERCENT, share, f"Holding of {name} before the Offering", dated, of)
        of, share = (f"{key}_shares", "sale_shares", "shares_after"), Fraction(100 * after, before + new)
        book.derive(f"{key}_after", Kind.PERCENT, share, f"Holding of {name} after the Offering", dated, of)
    opens = names.dated + timedelta(days=rng.integer(2, 5))
    closes = opens + timedelta(days=rng.integer(26, 33))
    book.add("opens", Kind.DATE, ordinal(opens), "Start of the offer period", "date")
    book.add("closes", Kind.DATE, ordinal(closes), "End of the offer period", "date")
    trading = closes + timedelta(days=rng.integer(22, 30))
    book.add("trading", Kind.DATE, ordinal(trading), "First day of trading", "date")
    dividend = Fraction(rounded(book["profit.0"] * 1000 * rng.integer(240, 380) / before / 10), 100)
    year = year_of(names, 0)
    book.add("dividend", Kind.PRICE, dividend, "Dividend per share", year)
    paid = 100 * dividend * before / 1000 / book["profit.0"]
    of = ("dividend", "shares_before", "profit.0")
    book.derive("payout", Kind.PERCENT, paid, "Payout ratio", year, of)


def _governance(rng: Rng, book: Ledger, names: Names) -> None:
    recent = recent_of(names)
    book.add("board", Kind.COUNT, rng.integer(6, 11), "Members of the board", recent)
    book.add("ceo_since", Kind.DATE, days_before(names, 900, 2900, rng), f"Appointment of {names.ceo}", "date")
    book.add("ceo_shares", Kind.COUNT, rng.integer(41_300, 388_000), f"Shares of {names.ceo}", recent)
    book.add("board_pay", Kind.MONEY, rng.integer(2130, 6870), "Remuneration of the board", year_of(names, 0))
    book.add("options", Kind.COUNT, rng.integer(311, 988) * 1000 + 500, "Share options outstanding", recent)
    book.add("auditor_fee", Kind.MONEY, rng.integer(1012, 2480), "Fees of the auditor", year_of(names, 0))
