"""Sub-assemblies of levels 3 and 4: a flanged pillar with its bolts and gussets, a drilled bed, profiles, a lamp."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .draft import Draft
from .solids import Cut, Point2, Prism, Round, Solid, box, chamfered, cylinder, hexagon, profile


@dataclass(frozen=True, slots=True, kw_only=True)
class PillarSizes:
    """A round flange, a tube on it, triangular gussets in the corner between, hexagonal bolt heads on the flange."""

    flange: int
    flange_thick: int
    circle: int
    hole: int
    num_holes: int
    tube: int
    wall: int
    tube_height: int
    gusset: int
    gusset_height: int
    gusset_thick: int
    head: int
    head_height: int

    @classmethod
    def drawn(cls, draft: Draft, num_holes: int) -> PillarSizes:
        tube, gusset = draft.step(80, 140, 4), draft.step(30, 50, 2)
        hole = draft.step(10, 16, 2)
        head = hole + draft.step(6, 10, 2)
        # between gusset's toe and the flange's edge the bolt heads find room
        circle = tube + 2 * gusset + 2 * head
        return cls(
            flange=circle + 2 * head,
            flange_thick=draft.step(12, 24, 2),
            circle=circle,
            hole=hole,
            num_holes=num_holes,
            tube=tube,
            wall=draft.step(8, 14, 2),
            tube_height=draft.step(400, 900, 20),
            gusset=gusset,
            gusset_height=draft.step(60, 120, 5),
            gusset_thick=draft.step(6, 12, 2),
            head=head,
            head_height=draft.step(8, 14, 1),
        )


def pillar(draft: Draft, sizes: PillarSizes, at: Point2, suffix: str, *, bolts: bool) -> None:
    """Solids and contacts of one pillar; names end in `suffix`."""
    (x, y), t = at, float(sizes.flange_thick)
    spots = [
        (x + sizes.circle / 2 * math.cos(angle), y + sizes.circle / 2 * math.sin(angle))
        for angle in ((number + 0.5) * 2 * math.pi / sizes.num_holes for number in range(sizes.num_holes))
    ]
    drilled = tuple(Cut(body=cylinder(2, (u, v, t / 2), sizes.hole, t)) for u, v in spots)
    draft.add(Solid(name=f"flange{suffix}", base=cylinder(2, (x, y, t / 2), sizes.flange, t), cuts=drilled))
    middle = (x, y, t + sizes.tube_height / 2)
    bore = Cut(body=cylinder(2, middle, sizes.tube - 2 * sizes.wall, sizes.tube_height))
    draft.add(Solid(name=f"column{suffix}", base=cylinder(2, middle, sizes.tube, sizes.tube_height), cuts=(bore,)))
    draft.stands_on(f"column{suffix}", f"flange{suffix}")
    for number, (axis, sign) in enumerate(((0, 1), (1, 1), (0, -1), (1, -1)), start=1):
        draft.add(Solid(name=f"gusset{suffix}_{number}", base=_gusset(sizes, at, axis, sign)))
        draft.stands_on(f"gusset{suffix}_{number}", f"flange{suffix}")
        draft.touches(f"gusset{suffix}_{number}", axis, "low" if sign > 0 else "high", f"column{suffix}")
    for number, spot in enumerate(spots if bolts else (), start=1):
        name = f"bolt{suffix}_{number}"
        draft.add(Solid(name=name, base=hexagon(spot, sizes.head, t, t + sizes.head_height)))
        draft.stands_on(name, f"flange{suffix}")


def _gusset(sizes: PillarSizes, at: Point2, axis: int, sign: int) -> Prism:
    """A right triangle in the plane of Z and `axis`, pushed along the other horizontal axis."""
    across = 1 - axis
    near, foot = at[axis] + sign * sizes.tube / 2, float(sizes.flange_thick)
    corners = ((near, foot), (near + sign * sizes.gusset, foot), (near, foot + sizes.gusset_height))
    # the plane of a prism along X is (Y, Z), that of one along Y is (Z, X)
    plane = corners if across == 0 else tuple((z, u) for u, z in corners)
    middle, half = at[across], sizes.gusset_thick / 2
    return profile(across, plane, middle - half, middle + half)


def say_pillar(draft: Draft, sizes: PillarSizes, suffix: str, where: str, *, bolts: bool) -> None:
    length = draft.length
    draft.say(
        f"`flange{suffix}`: a round plate along Z, diameter {length(sizes.flange)}, {length(sizes.flange_thick)} "
        f"thick, on the floor, {where}. {sizes.num_holes} round through-holes along Z, diameter "
        f"{length(sizes.hole)}, are evenly spaced on a pitch circle of diameter {length(sizes.circle)} about the "
        "centre of the flange; the direction +X lies midway between two neighbouring holes."
    )
    draft.say(
        f"`column{suffix}`: a tube along Z, open at both ends, outer diameter {length(sizes.tube)}, wall "
        f"{length(sizes.wall)}, {length(sizes.tube_height)} long, standing on `flange{suffix}` and concentric with "
        "it."
    )
    draft.say(
        f"`gusset{suffix}_1` to `gusset{suffix}_4`: plates {length(sizes.gusset_thick)} thick, shaped as right "
        "triangles, standing on the flange at the +X, +Y, -X and -Y side of the column, in this order. Each lies in "
        "the vertical plane through the column's axis (half of its thickness to either side). Its upright edge, "
        f"{length(sizes.gusset_height)} high, is at the column's outer radius; its lower edge lies on the flange and "
        f"runs {length(sizes.gusset)} outwards. (The upright edge touches the round column in a line; no edge is "
        "shaped to the curve.)"
    )
    if bolts:
        draft.say(
            f"`bolt{suffix}_1` to `bolt{suffix}_{sizes.num_holes}`: hexagonal bolt heads, {length(sizes.head)} "
            f"across flats, {length(sizes.head_height)} high, standing on the flange over the holes and concentric "
            "with them, plain solids without a shank; two flats of each face -Y and +Y. Number 1 sits over the "
            "first hole counter-clockwise from +X as seen from above, and so on."
        )


def flanged_pillar(draft: Draft) -> None:
    """Level 3: one pillar with a chamfered, drilled head plate."""
    length = draft.length
    draft.title = "a flanged pillar"
    sizes = PillarSizes.drawn(draft, draft.step(4, 8, 2))
    pillar(draft, sizes, (0, 0), "", bolts=False)
    say_pillar(draft, sizes, "", "centred on the Z axis", bolts=False)
    side, thick, chamfer = draft.step(180, 260, 4), draft.step(10, 20, 2), draft.step(10, 24, 2)
    hole, edge = draft.step(8, 14, 2), draft.step(30, 40, 2)
    z = sizes.flange_thick + sizes.tube_height + thick / 2
    reach = side / 2 - edge
    corners = [(sx * reach, sy * reach) for sx in (-1, 1) for sy in (-1, 1)]
    drilled = tuple(Cut(body=cylinder(2, (u, v, z), hole, thick)) for u, v in corners)
    draft.add(Solid(name="head_plate", base=chamfered((0, 0, z), (side, side, thick), chamfer), cuts=drilled))
    draft.stands_on("head_plate", "column")
    draft.say(
        f"`head_plate`: a square plate {length(side)} by the same, {length(thick)} thick, sides parallel to X and Y, "
        f"centred on top of `column`. Its four upright edges are chamfered at 45°, {length(chamfer)} off both faces. "
        f"Four round through-holes along Z, diameter {length(hole)}, have their centres {length(edge)} from two "
        "neighbouring sides each."
    )


def lamp(draft: Draft) -> None:
    """Level 3: a conical base with a bore below, a tube, a knuckle, an arm, a conical shade open at both ends."""
    length = draft.length
    draft.title = "a reading lamp"
    wide, narrow, tall = draft.step(180, 260, 4), draft.step(80, 120, 4), draft.step(30, 60, 2)
    bore, deep = draft.step(20, 40, 2), draft.step(10, 20, 1)
    recess = Cut(body=cylinder(2, (0, 0, deep / 2), bore, deep), open_high=False)
    foot = Round(axis=2, centre=(0, 0), radius_low=wide / 2, radius_high=narrow / 2, low=0, high=tall)
    draft.add(Solid(name="base", base=foot, cuts=(recess,)))
    draft.say(
        f"`base`: a cone frustum on the floor about the Z axis, diameter {length(wide)} below and {length(narrow)} "
        f"above, {length(tall)} high. A round blind hole, diameter {length(bore)}, goes {length(deep)} deep into its "
        "underside, centred, with a flat bottom."
    )
    pole, wall, high = draft.step(24, 40, 2), draft.step(3, 6, 1), draft.step(360, 520, 10)
    middle = (0.0, 0.0, tall + high / 2)
    hollow = Cut(body=cylinder(2, middle, pole - 2 * wall, high))
    draft.add(Solid(name="pole", base=cylinder(2, middle, pole, high), cuts=(hollow,)))
    draft.stands_on("pole", "base")
    draft.say(
        f"`pole`: a tube along Z, open at both ends, outer diameter {length(pole)}, wall {length(wall)}, "
        f"{length(high)} long, standing centred on `base`."
    )
    knuckle, arm, reach = draft.step(40, 60, 4), draft.step(16, 28, 2), draft.step(240, 400, 10)
    z = tall + high + knuckle / 2
    draft.add(Solid(name="knuckle", base=hexagon((0, 0), knuckle, z - knuckle / 2, z + knuckle / 2)))
    draft.stands_on("knuckle", "pole")
    draft.say(
        f"`knuckle`: a hexagonal prism along Z, {length(knuckle)} across flats and as high as that, standing centred "
        "on `pole`; two of its flats face -Y and +Y."
    )
    start = knuckle / 2
    draft.add(Solid(name="arm", base=box((0, -start - reach / 2, z), (arm, reach, arm))))
    draft.touches("arm", 1, "high", "knuckle")
    draft.say(
        f"`arm`: a square bar, {length(arm)} by the same, {length(reach)} long, that runs along Y from the centre of "
        "the -Y flat of `knuckle` towards -Y."
    )
    _shade(draft, -start - reach, z - arm / 2)


def _shade(draft: Draft, end: float, under: float) -> None:
    length = draft.length
    mouth, crown, skirt, sheet = (
        draft.step(160, 220, 4),
        draft.step(80, 110, 2),
        draft.step(100, 150, 5),
        draft.step(3, 5, 1),
    )
    y = end + crown / 2
    outer = Round(axis=2, centre=(0, y), radius_low=mouth / 2, radius_high=crown / 2, low=under - skirt, high=under)
    inner = Round(
        axis=2,
        centre=(0, y),
        radius_low=mouth / 2 - sheet,
        radius_high=crown / 2 - sheet,
        low=under - skirt,
        high=under,
    )
    draft.add(Solid(name="shade", base=outer, cuts=(Cut(body=inner),)))
    draft.touches("shade", 2, "high", "arm")
    draft.say(
        f"`shade`: a conical shell open below and above, {length(skirt)} high; outer diameter {length(mouth)} at its "
        f"lower and {length(crown)} at its upper rim, each inner diameter {length(2 * sheet)} less. Its upper rim "
        "touches the underside of `arm`; its axis is vertical, at X = 0, and so placed that the outermost point of "
        "the upper rim in -Y is flush with the free end of `arm`."
    )


def machine_bed(draft: Draft) -> None:
    """Level 3: a drilled bed with a pocket on conical feet, two profile rails, a bored headstock with its "
    "spindle."""
    length = draft.length
    draft.title = "a machine bed"
    foot_high, wide, narrow = draft.step(30, 60, 2), draft.step(60, 90, 2), draft.step(40, 56, 2)
    size = (draft.step(700, 1000, 20), draft.step(320, 440, 4), draft.step(40, 70, 2))
    inset, hole = draft.step(50, 70, 2), draft.step(10, 18, 2)
    pocket = (draft.step(160, 240, 10), draft.step(60, 90, 2), draft.step(10, 24, 2))
    z, top = foot_high + size[2] / 2, float(foot_high + size[2])
    corners = [
        (sx * (size[0] / 2 - inset), sy * (size[1] / 2 - inset)) for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]
    cuts = [Cut(body=cylinder(2, (u, v, z), hole, size[2])) for u, v in corners]
    cuts.append(Cut(body=box((0, 0, top - pocket[2] / 2), pocket), open_low=False))
    draft.add(Solid(name="bed", base=box((0, 0, z), size), cuts=tuple(cuts)))
    for number, spot in enumerate(corners, start=1):
        foot = Round(axis=2, centre=spot, radius_low=wide / 2, radius_high=narrow / 2, low=0, high=foot_high)
        draft.add(Solid(name=f"foot_{number}", base=foot))
        draft.touches(f"foot_{number}", 2, "high", "bed")
    draft.say(
        f"`bed`: a plate {draft.lengths(*size)} (X × Y × Z), centred on the Z axis, resting on the feet. Four round "
        f"through-holes along Z, diameter {length(hole)}, have their centres {length(inset)} from the two nearest "
        f"edges. In the middle of its upper face is a rectangular pocket {draft.lengths(*pocket)} (X × Y × depth)."
    )
    draft.say(
        f"`foot_1` to `foot_4`: cone frusta along Z from the floor to the underside of `bed`, {length(foot_high)} "
        f"high, diameter {length(wide)} below and {length(narrow)} above, concentric with the four holes; `foot_1` "
        "at -X, -Y, then counter-clockwise as seen from above."
    )
    _rails(draft, size[0], top)
    _headstock(draft, -size[0] / 2, top)


def _rails(draft: Draft, bed_long: float, top: float) -> None:
    length = draft.length
    margin, apart = draft.step(90, 110, 2), draft.step(120, 160, 4)
    leg, thick = draft.step(30, 50, 2), draft.step(4, 8, 2)
    stock = draft.step(110, 140, 2)
    low, high = -bed_long / 2 + stock + margin, bed_long / 2 - margin
    for name, sign in (("rail_front", -1), ("rail_back", 1)):
        # an L in the plane (Y, Z): one leg lies on the bed and points outwards, the other stands at the inner side
        y = sign * apart / 2
        shape = ((0, 0), (leg, 0), (leg, thick), (thick, thick), (thick, leg), (0, leg))
        draft.add(Solid(name=name, base=profile(0, tuple((y + sign * u, top + v) for u, v in shape), low, high)))
        draft.stands_on(name, "bed")
    draft.say(
        "`rail_front` (at -Y) and `rail_back` (at +Y): angle bars along X with an L section, both legs "
        f"{length(leg)} long (measured outside) and {length(thick)} thick. One leg lies on `bed`, the other stands "
        f"upright on the side towards Y = 0; the upright outer faces, which look at each other, are {length(apart)} "
        f"apart, symmetric about Y = 0. Both bars begin {length(stock + margin)} from the -X end of `bed` and end "
        f"{length(margin)} before its +X end."
    )


def _headstock(draft: Draft, left: float, top: float) -> None:
    length = draft.length
    size = (draft.step(70, 100, 2), draft.step(100, 140, 4), draft.step(120, 180, 4))
    bore, up = draft.step(40, 60, 2), draft.step(70, 84, 2)
    play, beyond = draft.step(2, 6, 2), draft.step(60, 140, 5)
    centre = (left + size[0] / 2, 0.0, top + size[2] / 2)
    drilled = Cut(body=cylinder(0, (centre[0], 0, top + up), bore, size[0]))
    draft.add(Solid(name="headstock", base=box(centre, size), cuts=(drilled,)))
    draft.stands_on("headstock", "bed")
    long = size[0] + beyond
    draft.add(Solid(name="spindle", base=cylinder(0, (left + long / 2, 0, top + up), bore - play, long)))
    draft.say(
        f"`headstock`: a block {draft.lengths(*size)} (X × Y × Z) standing on `bed`, its -X face flush with the -X "
        f"end of `bed`, centred on Y = 0. A round hole along X, diameter {length(bore)}, goes through it at Y = 0, "
        f"its centre {length(up)} above `bed`."
    )
    draft.say(
        f"`spindle`: a cylinder along X, concentric with the hole of `headstock`, {length(play)} less in diameter; "
        f"it begins flush with the -X face of `headstock` and ends {length(beyond)} beyond its +X face."
    )
