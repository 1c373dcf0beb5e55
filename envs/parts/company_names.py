"""Names of companies, people and places that no real filing has, many enough for annexes of thousands of rows."""

from __future__ import annotations

from ..core import Rng

_HEADS = (
    "Al", "Bren", "Cor", "Dal", "El", "Fen", "Gar", "Hol", "Ister", "Jor", "Kel", "Lun", "Mar", "Nor", "Os", "Pel",
    "Quin", "Ras", "Sol", "Tor", "Ul", "Ven", "Wal", "Yar", "Zel", "Ash", "Bel", "Cas", "Drev", "Esk", "Far", "Gris",
)  # fmt: skip
_TAILS = (
    "dane", "vik", "mont", "berg", "ford", "stad", "wen", "holm", "tec", "lux", "mar", "nova", "ridge", "sund", "vale",
    "mere", "brook", "haven", "lind", "strand", "worth", "gate", "field", "by",
)  # fmt: skip
_FORMS = ("plc", "SE", "AG", "N.V.", "ASA", "Oyj", "S.A.", "GmbH", "B.V.", "Ltd", "s.r.o.", "S.p.A.")
_FIRST = (
    "Anneke", "Birgit", "Carlo", "Dorota", "Einar", "Fiona", "Gregor", "Helene", "Ivo", "Jana", "Kasper", "Lucia",
    "Marek", "Nadia", "Oskar", "Petra", "Quentin", "Rosalind", "Stefan", "Tamara", "Ulrik", "Vera", "Willem", "Ylva",
)  # fmt: skip
_TRADES = ("Logistics", "Services", "Holding", "Trading", "Systems", "Properties", "Industries", "Partners", "Works")


def word(rng: Rng) -> str:
    """A name without a form, as of a place or a family."""
    return rng.choice(_HEADS) + rng.choice(_TAILS)


def company(rng: Rng, taken: frozenset[str] = frozenset()) -> str:
    """A company with its legal form; a third of them with their trade. None is called by a word of `taken`."""
    name = word(rng)
    while name in taken:
        name = word(rng)
    trade = f" {rng.choice(_TRADES)}" if rng.integer(0, 2) == 0 else ""
    return f"{name}{trade} {rng.choice(_FORMS)}"


def person(rng: Rng) -> str:
    """First and last name."""
    return f"{rng.choice(_FIRST)} {word(rng)}"


def distinct(rng: Rng, count: int) -> list[str]:
    """`count` different words."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[word(rng)] = None
    return list(found)
