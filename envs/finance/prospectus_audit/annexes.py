"""The annexes: registers and accounts of others, grown to a wanted length, with a few rows of the Issuer's own in them.

The sections of an annex and the rows that come from the ledger are the same at every length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core import Rng
from ...parts.company_names import company
from ...parts.displays import spelled
from ...parts.filing_prose import LIBRARY
from ...parts.prose import Prose
from ...parts.register_rows import accounts_of, contract_cells, peer_cells, property_cells
from ...parts.token_count import count_tokens
from .writer import Writer

Section = tuple[str, str]
"""Title and marked body."""
ACCOUNTS, PROPERTIES, CONTRACTS, MARKET = (
    "annex-a-subsidiaries.md", "annex-b-properties.md", "annex-c-contracts.md", "annex-d-market-report.md",
)  # fmt: skip
TITLES = {
    ACCOUNTS: "Annex A: statutory accounts of companies held",
    PROPERTIES: "Annex B: properties rented",
    CONTRACTS: "Annex C: contract register",
    MARKET: "Annex D: market report",
}
_FEWEST_ROWS = 3
_FIRST_COMPANIES = 5
_CLASSES = ("Finance", "Materials", "Energy", "Logistics", "Licences and software", "Services")
_REGIONS = ("North", "East", "South", "West", "Islands", "Abroad")


def accounts(core: Rng, rng: Rng, writer: Writer, tokens: int) -> list[Section]:
    """A section for each company, the acquired one among the first."""
    names = writer.names

    def one(index: int) -> Section:
        child = rng.child(f"company {index}")
        name = company(child, names.taken)
        return name, accounts_of(child, name, names.year)

    sections = [one(index) for index in range(_FIRST_COMPANIES)]
    figures = [writer.figure(ACCOUNTS, key, style, "reference") for key, style in (
        ("acquired_on", "iso"), ("acquired", "k"), ("acquired_staff", "n"), ("acquired_goodwill", "k"),
    )]  # fmt: skip
    own = accounts_of(rng.child("acquired"), names.acquired, names.year)
    own += (
        f"\nHeld since {figures[0]}; price paid {figures[1]}, of which goodwill {figures[3]} ({names.currency} "
        f"thousand). Staff taken over: {figures[2]}.\n"
    )
    sections.insert(core.integer(0, _FIRST_COMPANIES), (names.acquired, own))
    spent = sum(count_tokens(body) for _, body in sections)
    while spent < tokens:
        sections.append(one(len(sections)))
        spent += count_tokens(sections[-1][1])
    return sections


def properties(core: Rng, rng: Rng, writer: Writer, tokens: int) -> list[Section]:
    """Tables by region; the head office is known by its address, or by its register number alone."""
    names, coded = writer.names, writer.level >= 3
    key = "office_rent_later" if coded else "office_rent"
    figures = [
        writer.figure(PROPERTIES, "office_area", "n", "reference"),
        writer.figure(PROPERTIES, key, "k", "reference"),
        writer.figure(PROPERTIES, "office_until", "iso", "reference"),
    ]
    place = names.place if coded else f"{names.street}, {names.place}"
    head = f"| Land register no. | {'Town' if coded else 'Address'} | Use | Floor area (sq m) | Annual rent "
    head += f"({names.currency} thousand) | Lease until |\n|---|---|---|---:|---:|---|"
    titles = [f"Properties: {region}" for region in _REGIONS]
    own = _row([names.land, place, "Office", *figures])
    return _tables(
        core,
        rng,
        titles,
        head,
        [own],
        lambda child: property_cells(child, names.year, addressed=not coded, taken=names.taken),
        tokens,
    )


def contracts(core: Rng, rng: Rng, writer: Writer, tokens: int) -> list[Section]:
    """Tables by class; at high levels counterparties are withheld, and the number alone tells."""
    names, coded = writer.names, writer.level >= 3

    def row(number: str, party: str, *cells: tuple[str, str]) -> str:
        shown = [writer.figure(CONTRACTS, key, style, "reference") for key, style in cells]
        return _row([number, "(withheld)" if coded else party, *shown])

    facility, supply, licence = names.contracts
    own = [
        row(facility, names.bank, ("facility_signed", "iso"), ("facility", "k"), ("facility_matures", "iso")),
        row(supply, names.supplier, ("supply_signed", "iso"), ("supply", "k"), ("supply_until", "iso")),
    ]
    until = writer.figure(CONTRACTS, "licence_until", "iso", "reference")
    own.append(_row([licence, "(withheld)" if coded else names.licensor, "not stated", "by sales", until]))
    head = f"| No. | Counterparty | Signed | Amount ({names.currency} thousand) | Until |\n|---|---|---|---:|---|"
    titles = [f"Contracts: {title.lower()}" for title in _CLASSES]
    return _tables(
        core,
        rng,
        titles,
        head,
        own,
        lambda child: contract_cells(child, names.year, withheld=coded, taken=names.taken),
        tokens,
    )


def market(core: Rng, rng: Rng, writer: Writer, tokens: int) -> list[Section]:
    """Markets with their suppliers; the Issuer stands among those of the first three markets, in one of them."""
    names = writer.names
    cells = [
        writer.figure(MARKET, key, style, hop)
        for key, style, hop in (
            ("revenue.0", "m1bare", ""), ("ebitda_margin.0", "p1", ""), ("equity_ratio.0", "p1", ""),
            ("employees.0", "n", "reference"), ("market_share", "p1", "reference"),
        )
    ]  # fmt: skip
    head = f"| Supplier | Revenue {names.year} ({names.currency} million) | Adjusted EBITDA margin | Equity ratio | "
    head += "Employees at year-end | European market share |\n|---|---:|---:|---:|---:|---:|"
    titles = [f"Market: {segment.lower()}" for segment in names.trade.segments]
    titles += [f"Market: related products, group {letter}" for letter in "ABCDEF"]
    prose = Prose(rng.child("prose"), LIBRARY, {"cur": names.currency})
    intro = f"Prepared by {names.adviser} for the prospectus of {spelled(names.dated)}."
    tables = _tables(
        core,
        rng,
        titles,
        head,
        [_row([names.issuer, *cells])],
        lambda child: peer_cells(child, names.taken),
        tokens,
        own_in=3,
    )
    return [(title, f"{intro} {prose.paragraph('market', 4)}\n\n{body}") for title, body in tables]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _tables(
    core: Rng,
    rng: Rng,
    titles: Sequence[str],
    head: str,
    own: Sequence[str],
    cells: Callable[[Rng], list[str]],
    tokens: int,
    own_in: int = 0,
) -> list[Section]:
    """Each title a table under `head`, filled row by row to `tokens` in all; rows of the Issuer's own anywhere."""
    rows: list[list[str]] = [[] for _ in titles]
    spent = count_tokens(head) * len(titles)
    stream = rng.child("rows")
    index = 0
    while index < _FEWEST_ROWS * len(titles) or spent < tokens:
        row = _row(cells(stream))
        rows[index % len(rows)].append(row)
        spent += count_tokens(row)
        index += 1
    for row in own:
        table = rows[core.integer(0, (own_in or len(rows)) - 1)]
        table.insert(int(core.fraction() * (len(table) + 1)), row)
    return [(title, "\n".join([head, *table]) + "\n") for title, table in zip(titles, rows, strict=True)]
