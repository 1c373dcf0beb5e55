"""Invented borrowers."""

from __future__ import annotations

from ...core import Rng

_FIRST = (
    "Alder", "Brackwater", "Calder", "Dunmore", "Eastholt", "Fennick", "Gransey", "Harrow", "Ilkeston", "Jarvik",
    "Kestrel", "Lorimer", "Marsden", "Norvane", "Orwell", "Penrith", "Quarry", "Rosby", "Selwick", "Thornby",
    "Ulverton", "Varley", "Wexcombe", "Yarrow",
)  # fmt: skip
_TRADE = (
    "Foods", "Shipping", "Plastics", "Logistics", "Dairy", "Timber", "Energy", "Textiles", "Hotels", "Paper",
    "Ceramics", "Motors", "Packaging", "Media", "Clinics", "Steel",
)  # fmt: skip
_FORM = ("plc", "Ltd", "AG", "SE", "NV", "Inc")


def borrower(rng: Rng) -> str:
    """A company's name."""
    return f"{rng.choice(_FIRST)} {rng.choice(_TRADE)} {rng.choice(_FORM)}"


def place(rng: Rng) -> str:
    """A name for what is neither borrower nor lender."""
    return rng.choice(_FIRST)
