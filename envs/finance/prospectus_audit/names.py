"""Who and what a prospectus is about: an issuer of some trade, its people, places and counterparties."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ...core import Rng
from ...parts.company_names import distinct, person


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """A line of business and its words."""

    product: str
    segments: tuple[str, str, str]
    site: str
    sites: str
    unit: str
    """What capacity is counted in."""


TRADES = (
    Trade(product="winches, davits and deck machinery", segments=("Deck Equipment", "Subsea Handling", "Aftermarket"),
          site="yard", sites="yards", unit="winch systems"),
    Trade(product="folding cartons and moulded fibre", segments=("Food Packaging", "Pharma Packaging", "Displays"),
          site="mill", sites="mills", unit="tonnes"),
    Trade(product="infusion pumps and sterile disposables", segments=("Pumps", "Disposables", "Home Care"),
          site="plant", sites="plants", unit="thousand sets"),
    Trade(product="enzymes and starter cultures", segments=("Dairy", "Bakery", "Plant Protein"),
          site="fermentation site", sites="fermentation sites", unit="tonnes"),
    Trade(product="brakes and couplers for rail vehicles", segments=("Braking", "Coupling", "Services"),
          site="factory", sites="factories", unit="car sets"),
    Trade(product="coatings and adhesives", segments=("Wood Coatings", "Metal Coatings", "Adhesives"),
          site="works", sites="works", unit="tonnes"),
    Trade(product="cold-room doors and insulated panels", segments=("Panels", "Doors", "Maintenance"),
          site="plant", sites="plants", unit="thousand square metres"),
    Trade(product="measuring instruments for water networks", segments=("Flow", "Quality", "Data Services"),
          site="workshop", sites="workshops", unit="thousand instruments"),
)  # fmt: skip
_REGIONS = (
    ("Nordic countries", "Central Europe", "Southern Europe", "Rest of the world"),
    ("Germany", "Other European Union", "North America", "Asia-Pacific"),
    ("United Kingdom and Ireland", "Continental Europe", "Americas", "Middle East and Asia"),
)
_STREETS = ("Harbour Road", "Mill Lane", "Station Square", "Canal Street", "Foundry Way", "Orchard Row", "Tannery Quay")
_PROJECTS = ("Heron", "Juniper", "Cobalt", "Lantern", "Osprey", "Saffron", "Tundra", "Willow", "Anvil", "Meridian")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The proper names of one prospectus."""

    issuer: str
    short: str
    currency: str
    trade: Trade
    regions: tuple[str, str, str, str]
    bank: str
    rival: str
    supplier: str
    licensor: str
    acquired: str
    claimant: str
    adviser: str
    holders: tuple[str, str]
    ceo: str
    cfo: str
    chair: str
    place: str
    street: str
    towns: tuple[str, ...]
    projects: tuple[str, str, str]
    """Code names: of the acquisition, of the supply agreement, of the claim."""
    land: str
    """The number of the head office in the land register."""
    contracts: tuple[str, str, str]
    """The numbers of facility, supply and licence agreement in the contract register."""
    year: int
    """The last financial year."""
    recent: date
    """The latest practicable date."""
    dated: date
    """The date of the prospectus."""
    taken: frozenset[str]
    """Words and numbers that name something here, and so nobody in an annex."""


def draw_names(rng: Rng) -> Names:
    """Independent of everything else that is drawn."""
    words = distinct(rng, 20)
    year = rng.integer(2021, 2027)
    registers = rng.sample(range(20000, 90000), 3)
    projects = rng.sample(_PROJECTS, 3)
    contracts = tuple(f"CR-{number}" for number in registers)
    land = f"{rng.integer(1000, 9899)}-{rng.integer(1000, 9899)}"
    return Names(
        issuer=f"{words[0]} {rng.choice(('plc', 'SE', 'N.V.', 'ASA', 'AG'))}",
        short=words[0],
        currency=rng.choice(("EUR", "USD", "CHF", "SEK", "GBP")),
        trade=rng.choice(TRADES),
        regions=rng.choice(_REGIONS),
        bank=f"{words[1]} Bank",
        rival=f"{words[2]} Group",
        supplier=f"{words[3]} {rng.choice(('Steel', 'Resins', 'Polymers', 'Metals'))} {rng.choice(('GmbH', 'B.V.'))}",
        licensor=f"{words[4]} Technologies Ltd",
        acquired=f"{words[5]} {rng.choice(('Oyj', 'S.p.A.', 'GmbH'))}",
        claimant=f"{words[6]} {rng.choice(('Energy', 'Foods', 'Transport'))} S.A.",
        adviser=f"{words[7]} Research",
        holders=(f"{words[8]} Holding AG", f"{words[9]} Family Foundation"),
        ceo=person(rng),
        cfo=person(rng),
        chair=person(rng),
        place=words[10],
        street=f"{rng.integer(2, 98)} {rng.choice(_STREETS)}",
        towns=tuple(words[11:]),
        projects=(projects[0], projects[1], projects[2]),
        land=land,
        contracts=(contracts[0], contracts[1], contracts[2]),
        taken=frozenset((*words, *contracts, land)),
        year=year,
        recent=date(year + 1, 3, 31) if rng.integer(0, 1) else date(year + 1, 4, 30),
        dated=date(year + 1, rng.integer(5, 6), rng.integer(4, 28)),
    )
