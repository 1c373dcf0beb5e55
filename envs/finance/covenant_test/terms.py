"""What a tested covenant is: an exact value, its limit, and where the agreement says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ...core import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One covenant at one test date.

    Example:
        >>> Tested(name="leverage", value=Fraction(7, 2), limit=Decimal("3.50"), is_maximum=True, clause="21.2").passes
        True
    """

    name: str
    value: Fraction
    """Exact, before rounding."""
    limit: Decimal
    is_maximum: bool
    """The value may not exceed the limit; otherwise it may not fall below."""
    clause: str
    """The clause that sets the limit."""

    @property
    def passes(self) -> bool:
        """The limit itself passes."""
        limit = Fraction(self.limit)
        return self.value <= limit if self.is_maximum else self.value >= limit

    @property
    def exact(self) -> Decimal:
        """To 28 digits."""
        return Decimal(self.value.numerator) / Decimal(self.value.denominator)

    @property
    def rounded(self) -> str:
        """To 2 decimals, halves away from zero."""
        hundredths = abs(self.value) * 100
        whole = (2 * hundredths.numerator + hundredths.denominator) // (2 * hundredths.denominator)
        sign = "-" if self.value < 0 and whole else ""
        return f"{sign}{whole // 100}.{whole % 100:02d}"

    @property
    def status(self) -> str:
        """As the answer writes it."""
        return "pass" if self.passes else "fail"

    def to_json(self) -> dict[str, Json]:
        """For the truth of an instance."""
        return {
            "name": self.name,
            "value": str(self.value),
            "limit": str(self.limit),
            "is_maximum": self.is_maximum,
            "clause": self.clause,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> Tested:
        """The inverse of `to_json`."""
        return cls(
            name=str(value["name"]),
            value=Fraction(str(value["value"])),
            limit=Decimal(str(value["limit"])),
            is_maximum=bool(value["is_maximum"]),
            clause=str(value["clause"]),
        )


def is_clear(value: Fraction, limit: Decimal) -> bool:
    """Whether no rounding convention could change the 2 decimals or the result: far from a half and from the limit."""
    thousandths = value * 1000 % 10
    return not Fraction(48, 10) <= thousandths <= Fraction(52, 10) and abs(value - Fraction(limit)) > Fraction(2, 100)
