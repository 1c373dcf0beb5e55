"""Invented companies."""

from __future__ import annotations

from ...core import Rng

_PLACES = (
    "Aldbury", "Bexmoor", "Corran", "Denholm", "Elsworth", "Farrow", "Glenmore", "Hexley", "Inverdale", "Jarrow",
    "Kelding", "Lowick", "Merrow", "Northam", "Oakhurst", "Pelham", "Ravensby", "Stanmere", "Tarrant", "Upwell",
    "Wansford", "Yarnton",
)  # fmt: skip
_TRADES = (
    "Bakeries", "Instruments", "Printing", "Freight", "Nurseries", "Glass", "Cycles", "Pumps", "Broadband", "Laundries",
    "Coatings", "Castings", "Optics", "Furniture", "Software", "Springs",
)  # fmt: skip
_FORMS = ("Ltd", "plc", "GmbH", "BV", "AB", "SpA")


def company_name(rng: Rng) -> str:
    """As in Merrow Pumps Ltd."""
    return f"{rng.choice(_PLACES)} {rng.choice(_TRADES)} {rng.choice(_FORMS)}"
