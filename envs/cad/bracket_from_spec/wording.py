"""How the specification words lengths, heads of holes and the datum."""

from __future__ import annotations

from .features import Head, Hole, head_depth
from .layout import INCH_MM


def mm(value: float) -> str:
    """A length in millimetres, without needless zeros.

    Example:
        >>> mm(12.5), mm(6.0), mm(123.9375)
        ('12.5 mm', '6 mm', '123.9375 mm')
    """
    return f"{digits(value)} mm"


def inches(value: float) -> str:
    """A length in inches.

    Example:
        >>> inches(6.35)
        '0.25 in'
    """
    return f"{digits(value / INCH_MM)} in"


def digits(value: float) -> str:
    """At most four decimals, without needless zeros."""
    return f"{value + 0.0:.4f}".rstrip("0").rstrip(".")


def said_datum(level: int) -> str:
    """Where the origin lies."""
    x = "the middle plane of the width" if level >= 3 else "the left side face"
    y = "the front edge of the base, so that the base lies at negative Y" if level >= 4 else "the rear face of the base"
    return f"X = 0 is {x}; Y = 0 is {y}; Z = 0 is the underside of the base."


def said_head(hole: Hole, face: str) -> str:
    """The head of a hole as the end of its sentence; nothing for a plain one."""
    if hole.head is Head.COUNTERBORE:
        return (
            f", counterbored from the {face} face to diameter {mm(hole.head_diameter)}, {mm(hole.head_depth)} deep "
            "(flat bottom)"
        )
    if hole.head is Head.COUNTERSINK:
        return (
            f", countersunk 90° (included angle) from the {face} face to diameter {mm(hole.head_diameter)} at that "
            f"face (so {mm(head_depth(hole))} deep)"
        )
    return ""
