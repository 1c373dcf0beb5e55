"""Draws a bracket and writes its specification in the same stroke, so that prose and truth cannot part.

Level 0 gives every number by its coordinates. Each level adds features and gives more of them by relations (pitch, edge
distance, symmetry), in two units, with the datum moved off the corner, and with remarks that repeat or do not matter.
Features never touch each other: holes keep about 3 mm from edges, bends, gussets and one another.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from ...core import Rng
from .features import Bend, Bracket, Corner, Gusset, Head, Hole, Plate, Slot
from .layout import INCH_MM, Layout, Profile, draw_layout
from .wording import digits, inches, mm, said_datum, said_head

_METRIC_MM = (4.5, 5.0, 5.5, 6.0, 6.6, 7.0, 8.0)
_SMALL_MM = (4.5, 5.0, 5.5, 6.0, 6.6)
_EDGE_MM = 3.0


class Specification(NamedTuple):
    """The truth and the text."""

    bracket: Bracket
    datum: str
    lines: tuple[str, ...]


def draw(rng: Rng, level: int) -> Specification:
    """The bracket of this stream and level."""
    draft = _Draft(draw_layout(rng.child("layout"), level))
    draft.draw_plates(plain=level < 2)
    if level == 0:
        draft.draw_placed_holes(rng.child("holes"), head=Head.PLAIN, upright=1)
    elif level == 1:
        draft.draw_bends()
        draft.draw_placed_holes(rng.child("holes"), head=Head.COUNTERBORE, upright=2)
    else:
        draft.draw_bends()
        draft.draw_gussets(rng.child("gussets"))
        draft.draw_corners(rng.child("corners"), both=level >= 3)
        draft.draw_base_pair(rng.child("pair"), head=Head.COUNTERSINK if level == 3 else Head.COUNTERBORE)
        draft.draw_upright(rng.child("upright"), level)
    if level >= 3:
        draft.draw_profile_holes(rng.child("profile"))
        draft.say_envelope()
    if level >= 4:
        draft.draw_base_slot(rng.child("slot"))
        draft.say_remarks()
        lines = [*draft.lines[:3], *rng.child("order").shuffled(draft.lines[3:])]
    else:
        lines = draft.lines
    return Specification(bracket=draft.bracket(), datum=said_datum(level), lines=tuple(lines))


class _Draft:
    """What has been drawn and said so far."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.lines: list[str] = []
        self._plates: list[Plate] = []
        self._bends: list[Bend] = []
        self._gussets: list[Gusset] = []
        self._corners: list[Corner] = []
        self._holes: list[Hole] = []
        self._slots: list[Slot] = []

    def bracket(self) -> Bracket:
        return Bracket(
            plates=tuple(self._plates),
            bends=tuple(self._bends),
            gussets=tuple(self._gussets),
            corners=tuple(self._corners),
            holes=tuple(self._holes),
            slots=tuple(self._slots),
        )

    def draw_plates(self, *, plain: bool) -> None:
        s = self.layout
        self._plate("base", (s.rear, s.front), (0.0, s.base))
        self._plate("upright", (s.heel, s.face), (s.base, s.top))
        self._bend(s.face, s.base, (1, 1))
        thick = inches(s.base) if s.base_in_inches else mm(s.base)
        rises = f"over the full width, up to {mm(s.height)} above the underside of the base"
        if plain:
            self.lines += [
                f"Base plate: {mm(s.width)} wide (along X), {mm(s.depth)} deep (along Y), {thick} thick (along Z).",
                f"Upright: at the rear of the base, {mm(s.upright)} thick (Y 0 to {mm(s.upright)}), {rises}.",
            ]
            return
        place = f"{mm(s.setback)} in front of the rear face of the base" if s.setback else "flush with that of the base"
        flange = f" (this includes the {mm(s.flange)} of the top flange)" if s.flange else ""
        self.lines += [
            f"Base plate: {mm(s.width)} wide, {mm(s.depth)} deep, {thick} thick.",
            f"Upright: {mm(s.upright)} thick, {rises}{flange}; its rear face is {place}.",
        ]
        self._draw_profile()

    def _draw_profile(self) -> None:
        s = self.layout
        if s.profile is Profile.L:
            self.lines.append("Seen from the side, base and upright form an L.")
        elif s.profile is Profile.T:
            self._bend(s.heel, s.base, (-1, 1))
            self.lines.append("Seen from the side, base and upright form a T that stands on its head.")
        elif s.profile is Profile.U:
            self._plate("front upright", (s.front - s.upright, s.front), (s.base, s.front_height))
            self._bend(s.front - s.upright, s.base, (-1, 1))
            self.lines.append(
                f"Front upright: over the full width, {mm(s.upright)} thick, its front face flush with that of the "
                f"base, up to {mm(s.front_height)} above the underside of the base."
            )
        else:
            self._plate("flange", (s.heel - s.overhang, s.face), (s.top, s.height))
            self._bend(s.heel, s.top, (-1, -1))
            self.lines.append(
                f"Top flange: over the full width, {mm(s.flange)} thick, on top of the upright and flush with its "
                f"front face; it reaches {mm(s.overhang)} to the rear of the upright's rear face."
            )

    def draw_bends(self) -> None:
        radius = mm(self.layout.bend)
        if len(self._bends) == 1:
            self.lines.append(f"Inner bend between base and upright: fillet of radius {radius} over the full width.")
        else:
            self.lines.append(
                "Both inner corners where two plates meet at 90° (seen from the side) have a fillet "
                f"of radius {radius} over the full width."
            )

    def draw_placed_holes(self, rng: Rng, *, head: Head, upright: int) -> None:
        """Each hole by its coordinates: two in the base, one or two in the upright."""
        s = self.layout
        reach = 8.0 if head is Head.PLAIN else 9.0
        diameter = rng.choice(_METRIC_MM)
        near, far = s.base_zone
        spots = [
            (float(rng.integer(math.ceil(reach), math.floor(s.width / 2.0 - reach))), _between(rng, near, far, reach)),
            (s.width - float(rng.integer(math.ceil(reach), 14)), _between(rng, near, far, reach)),
        ]
        for x, y in spots:
            hole = self._headed(
                rng.child("head"), Hole(axis=2, centre=(x, y), diameter=diameter, span=(0.0, s.base)), head
            )
            self._holes.append(hole)
            self.lines.append(
                f"Hole {len(self._holes)}: diameter {mm(diameter)}, through the base along Z, axis at X {mm(x)}, "
                f"Y {mm(y)}{said_head(hole, 'upper')}."
            )
        diameter, (low, high) = rng.choice(_METRIC_MM), s.upright_zone
        for index in range(upright):
            x = _between(rng, s.width * index / upright, s.width * (index + 1) / upright, 8.0)
            z = _between(rng, low, high, 8.0)
            self._holes.append(Hole(axis=1, centre=(x, z), diameter=diameter, span=(s.heel, s.face)))
            self.lines.append(
                f"Hole {len(self._holes)}: diameter {mm(diameter)}, through the upright along Y, axis at X {mm(x)}, "
                f"Z {mm(z)}."
            )

    def draw_gussets(self, rng: Rng) -> None:
        s = self.layout
        thickness, leg_z = float(rng.integer(4, 6)), s.leg - float(rng.integer(0, 4))
        bend = self._bends[0]
        if s.profile is Profile.U or rng.integer(0, 1):
            inset = float(rng.integer(5, 8))
            spans = [
                (s.left + inset, s.left + inset + thickness),
                (s.right - inset - thickness, s.right - inset),
            ]
            count, where = "Two gussets", f"each {mm(inset)} in from its side face"
        else:
            spans = [(s.middle - thickness / 2.0, s.middle + thickness / 2.0)]
            count, where = "One gusset", "in the middle of the width"
        self._gussets += [
            Gusset(corner=bend.corner, signs=bend.signs, legs=(s.leg, leg_z), span=span) for span in spans
        ]
        self.lines.append(
            f"{count} between the base and the front face of the upright, {where}: a right-angled triangular web, "
            f"{mm(thickness)} thick, reaching {mm(s.leg)} along the base from the upright's front face and {mm(leg_z)} "
            "up the upright from the upper face of the base. The edges of the web are sharp."
        )

    def draw_corners(self, rng: Rng, *, both: bool) -> None:
        """The free corners of the base (or of what stands in their place), and those at the top."""
        s = self.layout
        size = float(rng.integer(3, 6))
        if s.profile is Profile.U:
            self._corner_pair(1, s.front_height, -1, size, False, (s.front - s.upright, s.front))
            self.lines.append(f"Both upper corners of the front upright are rounded, radius {mm(size)}.")
        else:
            self._corner_pair(2, s.front, -1, size, False, (0.0, s.base))
            self.lines.append(f"Both front corners of the base (the vertical edges) are rounded, radius {mm(size)}.")
        if not both:
            return
        size = float(rng.integer(3, 6))
        if s.profile is Profile.Z:
            self._corner_pair(2, s.heel - s.overhang, 1, size, True, (s.top, s.height))
            self.lines.append(f"Both rear corners of the top flange are chamfered, {mm(size)} × 45°.")
        else:
            self._corner_pair(1, s.height, -1, size, True, (s.heel, s.face))
            self.lines.append(f"Both upper corners of the upright are chamfered, {mm(size)} × 45°.")

    def draw_base_pair(self, rng: Rng, *, head: Head) -> None:
        """Two headed holes, by their edge distances."""
        s = self.layout
        diameter = rng.choice((3, 4, 5)) / 16.0 * INCH_MM
        near, far = s.base_zone
        hole = self._headed(
            rng.child("head"), Hole(axis=2, centre=(0.0, 0.0), diameter=diameter, span=(0.0, s.base)), head
        )
        reach = hole.head_diameter / 2.0 + _EDGE_MM
        edge = float(math.ceil(reach)) + rng.integer(0, 2)
        y = _between(rng, near, far, reach)
        for x in (s.left + edge, s.right - edge):
            self._holes.append(replace(hole, centre=(x, y)))
        self.lines.append(
            f"Two through holes in the base, diameter {inches(diameter)}{said_head(hole, 'upper')}: symmetric about "
            f"the middle plane of the width, {mm(s.width - 2 * edge)} apart, {mm(s.front - y)} behind the front face "
            f"of the base (so each axis is {mm(edge)} from its side face)."
        )

    def draw_upright(self, rng: Rng, level: int) -> None:
        """Two holes at level 2, a slot at level 3, a bore with its bolt circle at level 4."""
        low, high = self.layout.upright_zone
        if level == 2:
            self._upright_pair(rng, low, high)
        elif level == 3:
            self._upright_slot(rng, low, high)
        else:
            self._bolt_circle(rng, low, high)

    def _upright_pair(self, rng: Rng, low: float, high: float) -> None:
        s, diameter = self.layout, rng.choice(_METRIC_MM)
        pitch, z = float(rng.integer(12, int(s.width / 2.0 - 8.0)) * 2), _between(rng, low, high, 8.0)
        for x in (s.middle - pitch / 2.0, s.middle + pitch / 2.0):
            self._holes.append(Hole(axis=1, centre=(x, z), diameter=diameter, span=(s.heel, s.face)))
        self.lines.append(
            f"Two through holes in the upright, diameter {mm(diameter)}, symmetric about the middle plane of the "
            f"width, {mm(pitch)} apart, axes {mm(s.height - z)} below the upper end of the upright."
        )

    def _upright_slot(self, rng: Rng, low: float, high: float) -> None:
        s, width = self.layout, float(rng.integer(6, 9))
        length, upright = float(rng.integer(16, 22)), bool(rng.integer(0, 1))
        z = _between(rng, low, high, (length if upright else width) / 2.0 + _EDGE_MM)
        span = (s.heel, s.face)
        self._slots.append(
            Slot(axis=1, centre=(s.middle, z), length=length, width=width, along_u=not upright, span=span)
        )
        self.lines.append(
            f"One slot with full-radius ends through the upright, {mm(width)} wide and {mm(length)} long over its "
            f"round ends, {'upright (long along Z)' if upright else 'lying (long along X)'}, in the middle of the "
            f"width, its centre {mm(s.height - z)} below the upper end of the upright."
        )

    def _bolt_circle(self, rng: Rng, low: float, high: float) -> None:
        s, bore = self.layout, float(rng.integer(9, 10))
        circle, diameter, count = float(rng.integer(22, 24)), rng.choice((3.4, 4.3, 4.5)), rng.choice((3, 4, 5))
        z, span = _between(rng, low, high, circle / 2.0 + 4.0), (s.heel, s.face)
        self._holes.append(Hole(axis=1, centre=(s.middle, z), diameter=bore, span=span))
        for index in range(count):
            angle = 2.0 * math.pi * index / count
            x, up = s.middle + circle / 2.0 * math.sin(angle), z + circle / 2.0 * math.cos(angle)
            self._holes.append(Hole(axis=1, centre=(round(x, 6), round(up, 6)), diameter=diameter, span=span))
        self.lines.append(
            f"A through bore of diameter {mm(bore)} in the upright, in the middle of the width, {mm(s.top - z)} below "
            f"the upper end of the upright{' (the underside of the top flange)' if s.flange else ''}, and around it "
            f"{count} through holes of diameter {mm(diameter)}, evenly spaced on a pitch circle of diameter "
            f"{mm(circle)}, the first one straight above the bore."
        )

    def draw_profile_holes(self, rng: Rng) -> None:
        """The holes that only this outline has."""
        s, diameter = self.layout, rng.choice(_SMALL_MM)
        if s.profile is Profile.T:
            back = float(rng.integer(7, 8))
            self._holes.append(Hole(axis=2, centre=(s.middle, s.rear + back), diameter=diameter, span=(0.0, s.base)))
            self.lines.append(
                f"One through hole of diameter {mm(diameter)} in the base behind the upright, in the middle of the "
                f"width, its axis {mm(back)} in front of the rear face of the base."
            )
        elif s.profile is Profile.U:
            bore, z = float(rng.integer(8, 10)), math.ceil(s.base + s.bend) + float(rng.integer(9, 10))
            for span in ((s.heel, s.face), (s.front - s.upright, s.front)):
                self._holes.append(Hole(axis=1, centre=(s.middle, z), diameter=bore, span=span))
            self.lines.append(
                f"A bore of diameter {mm(bore)} through both uprights on one common axis along Y, in the middle of the "
                f"width, {mm(z)} above the underside of the base."
            )
        else:
            edge, back = float(rng.integer(8, 11)), float(rng.integer(8, 10))
            for x in (s.left + edge, s.right - edge):
                centre = (x, s.heel - s.overhang + back)
                self._holes.append(Hole(axis=2, centre=centre, diameter=diameter, span=(s.top, s.height)))
            self.lines.append(
                f"Two through holes of diameter {mm(diameter)} in the top flange, each {mm(edge)} from its side face "
                f"and {mm(back)} in front of the flange's rear face."
            )

    def draw_base_slot(self, rng: Rng) -> None:
        s, width = self.layout, float(rng.integer(5, 6))
        near, far = s.base_zone
        length = float(rng.integer(12, 18))
        y = _between(rng, near, far, length / 2.0 + _EDGE_MM)
        self._slots.append(
            Slot(axis=2, centre=(s.middle, y), length=length, width=width, along_u=False, span=(0.0, s.base))
        )
        self.lines.append(
            f"One slot with full-radius ends through the base, long along Y, in the middle of the width: {mm(width)} "
            f"wide, {mm(length - width)} between the centres of its round ends ({mm(length)} over all), its centre "
            f"{mm(s.front - y)} behind the front face of the base."
        )

    def say_envelope(self) -> None:
        low, high = self.bracket().part().bounds()
        sizes = " × ".join(digits(b - a) for a, b in zip(low, high, strict=True))
        self.lines.append(f"For checking: the envelope over all is {sizes} mm (X × Y × Z).")

    def say_remarks(self) -> None:
        self.lines += [
            "The bracket is symmetric about the middle plane of its width.",
            "Material EN AW-6082 T6; edges are broken by hand later: model every edge that is not named here sharp.",
            "Threads are cut at assembly and are not modelled; hole diameters are the ones to model.",
        ]

    def _plate(self, name: str, y: tuple[float, float], z: tuple[float, float]) -> None:
        s = self.layout
        self._plates.append(Plate(name=name, low=(s.left, y[0], z[0]), high=(s.right, y[1], z[1])))

    def _bend(self, y: float, z: float, signs: tuple[int, int]) -> None:
        s = self.layout
        self._bends.append(Bend(corner=(y, z), signs=signs, radius=s.bend, span=(s.left, s.right)))

    def _corner_pair(
        self, axis: int, v: float, sign_v: int, size: float, chamfer: bool, span: tuple[float, float]
    ) -> None:
        s = self.layout
        for x, sign_x in ((s.left, 1), (s.right, -1)):
            self._corners.append(
                Corner(axis=axis, corner=(x, v), signs=(sign_x, sign_v), size=size, chamfer=chamfer, span=span)
            )

    def _headed(self, rng: Rng, hole: Hole, head: Head) -> Hole:
        thickness = hole.span[1] - hole.span[0]
        if head is Head.COUNTERSINK:
            wide, depth = hole.diameter + 2.0 * rng.integer(2, 3), 0.0
        elif head is Head.COUNTERBORE:
            wide, depth = (
                math.floor(hole.diameter) + float(rng.integer(3, 4)),
                float(rng.integer(2, int(thickness) - 2)),
            )
        else:
            return hole
        return replace(hole, head=head, head_diameter=wide, head_depth=depth)


def _between(rng: Rng, low: float, high: float, margin: float) -> float:
    """A whole or half millimetre that keeps `margin` from both ends."""
    return rng.integer(math.ceil(2.0 * (low + margin)), math.floor(2.0 * (high - margin))) / 2.0
