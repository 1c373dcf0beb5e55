"""Assemblies of levels 0 to 2: blocks at stated places, a stack of parts, and furniture with counted parts."""

from __future__ import annotations

from .draft import Draft
from .solids import Cut, Point3, Solid, box, cylinder


def blocks(draft: Draft) -> None:
    """One or two boxes or cylinders; every number is stated, in metres."""
    rng = draft.rng
    draft.title = "blocks"
    names = rng.choice((("base", "post"), ("plinth", "drum"), ("slab", "column"), ("pallet", "keg"), ("crate", "lid")))
    x, y = draft.step(-200, 200, 50), draft.step(-200, 200, 50)
    size = (draft.step(300, 600, 20), draft.step(200, 400, 20), draft.step(20, 100, 10))
    _plain_box(draft, names[0], (x, y, size[2] / 2), size)
    if rng.integer(0, 1):
        return
    height = draft.step(100, 400, 20)
    if rng.integer(0, 1):
        side = (draft.step(40, 120, 10), draft.step(40, 120, 10), height)
        _plain_box(draft, names[1], (x, y, size[2] + height / 2), side)
    else:
        radius, centre = draft.step(20, 80, 5), (x, y, size[2] + height / 2)
        draft.add(Solid(name=names[1], base=cylinder(2, centre, 2 * radius, height)))
        draft.say(
            f"`{names[1]}` is a cylinder along Z with radius {_metres(radius)}, depth {_metres(height)} and centre "
            f"{_vector(centre)}."
        )
    draft.stands_on(names[1], names[0])


def stack(draft: Draft) -> None:
    """Three or four parts, each placed by its contact with an earlier one."""
    rng, length = draft.rng, draft.length
    draft.title = "a stacked pedestal"
    x, y = draft.step(-100, 100, 5), draft.step(-100, 100, 5)
    width, depth, thick = draft.step(200, 400, 4), draft.step(200, 400, 4), draft.step(12, 60, 2)
    draft.add(Solid(name="base", base=box((x, y, thick / 2), (width, depth, thick))))
    draft.say(
        f"`base`: a box {draft.lengths(width, depth, thick)} (X × Y × Z) that stands on the floor; its centre is at "
        f"X = {length(x)}, Y = {length(y)}."
    )
    below, top, room = "base", float(thick), min(width, depth)
    for name in rng.sample(("neck", "shaft", "collar", "body", "cap"), rng.integer(1, 2)):
        height, across = draft.step(30, 240, 2), draft.step(60, room - 40, 2)
        shift = draft.step(-8, 8, 2)
        towards = "+X" if shift > 0 else "-X"
        where = (
            f"its centre {length(abs(shift))} towards {towards} from that of `{below}`" if shift else "centred on it"
        )
        x += shift
        if rng.integer(0, 1):
            draft.add(Solid(name=name, base=cylinder(2, (x, y, top + height / 2), across, height)))
            what = f"a cylinder along Z, diameter {length(across)}, height {length(height)}"
        else:
            other = draft.step(60, room - 40, 2)
            draft.add(Solid(name=name, base=box((x, y, top + height / 2), (across, other, height))))
            what = f"a box {draft.lengths(across, other, height)} (X × Y × Z)"
        draft.say(f"`{name}`: {what}; it stands on `{below}`, {where}.")
        draft.stands_on(name, below)
        below, top = name, top + height
    _side_block(draft)


def _side_block(draft: Draft) -> None:
    low, high = draft.solids[0].bounds()
    size = (draft.step(30, 80, 2), draft.step(40, 120, 2), draft.step(20, 150, 2))
    to_right, to_front = bool(draft.rng.integer(0, 1)), bool(draft.rng.integer(0, 1))
    x = high[0] + size[0] / 2 if to_right else low[0] - size[0] / 2
    y = low[1] + size[1] / 2 if to_front else high[1] - size[1] / 2
    draft.add(Solid(name="block", base=box((x, y, size[2] / 2), size)))
    face, flush = "+X" if to_right else "-X", "-Y" if to_front else "+Y"
    draft.say(
        f"`block`: a box {draft.lengths(*size)} (X × Y × Z) that stands on the floor and touches the {face} face of "
        f"`base`; its {flush} face is flush with the {flush} face of `base`."
    )
    draft.touches("block", 0, "low" if to_right else "high", "base")


def table(draft: Draft) -> None:
    """A top with a cable hole, four legs, two aprons between them."""
    length = draft.length
    draft.title = "a table"
    width, depth, thick = draft.step(800, 1600, 20), draft.step(500, 900, 20), draft.step(18, 40, 2)
    height, side, inset = draft.step(420, 760, 10), draft.step(40, 80, 4), draft.step(0, 60, 5)
    hole, from_x, from_y = draft.step(40, 80, 4), draft.step(150, 250, 10), draft.step(150, 220, 10)
    under = height - thick
    bore = Cut(body=cylinder(2, (width / 2 - from_x, depth / 2 - from_y, under + thick / 2), hole, thick))
    draft.add(Solid(name="top", base=box((0, 0, under + thick / 2), (width, depth, thick)), cuts=(bore,)))
    draft.say(
        f"`top`: a board {draft.lengths(width, depth, thick)} (X × Y × Z), centred on the Z axis; its upper face is "
        f"{length(height)} above the floor. A round hole along Z, diameter {length(hole)}, goes through it; the "
        f"centre of the hole is {length(from_x)} from the +X edge and {length(from_y)} from the +Y edge."
    )
    x, y = width / 2 - inset - side / 2, depth / 2 - inset - side / 2
    for number, (sx, sy) in enumerate(((-1, -1), (1, -1), (1, 1), (-1, 1)), start=1):
        draft.add(Solid(name=f"leg_{number}", base=box((sx * x, sy * y, under / 2), (side, side, under))))
        draft.touches(f"leg_{number}", 2, "high", "top")
    draft.say(
        f"`leg_1` to `leg_4`: square legs, {length(side)} by the same, from the floor to the underside of `top`; "
        f"their outer faces lie {length(inset)} inside the edges of `top`. `leg_1` is the one at -X, -Y; the numbers "
        "go on counter-clockwise as seen from above."
    )
    tall, board = draft.step(60, 120, 10), draft.step(16, 30, 2)
    for name, sign, leg in (("apron_front", -1, "leg_1"), ("apron_back", 1, "leg_4")):
        centre = (0, sign * (y + side / 2 - board / 2), under - tall / 2)
        draft.add(Solid(name=name, base=box(centre, (2 * x - side, board, tall))))
        draft.touches(name, 2, "high", "top")
        draft.touches(name, 0, "low", leg)
    draft.say(
        f"`apron_front` (at -Y) and `apron_back` (at +Y): boards {length(tall)} high (Z) and {length(board)} thick "
        "(Y) that fill the space along X between two legs; their upper faces touch `top`, their outer faces are "
        "flush with the outer faces of the legs."
    )


def shelf(draft: Draft) -> None:
    """Two sides, equally spaced boards between them, a back."""
    length = draft.length
    draft.title = "a shelf"
    num_boards, thick = draft.step(3, 5), draft.step(16, 30, 2)
    width, depth = draft.step(500, 1000, 10), draft.step(220, 400, 10)
    plinth, gap = draft.step(40, 120, 5), draft.step(220, 340, 5)
    height = plinth + num_boards * thick + (num_boards - 1) * gap
    hole, up, back_from = draft.step(30, 60, 2), draft.step(60, 90, 5), draft.step(60, 100, 5)
    bore = Cut(body=cylinder(0, (width / 2 - thick / 2, depth / 2 - back_from, plinth + thick + up), hole, thick))
    for name, sign, cuts in (("side_left", -1, ()), ("side_right", 1, (bore,))):
        centre = (sign * (width - thick) / 2, 0, height / 2)
        draft.add(Solid(name=name, base=box(centre, (thick, depth, height)), cuts=cuts))
    draft.say(
        f"`side_left` (at -X) and `side_right` (at +X): upright boards, {length(thick)} thick (X), {length(depth)} "
        f"deep (Y), {length(height)} high, standing on the floor; their outer faces are {length(width)} apart. The "
        "shelf is centred on the Z axis in X, and the sides are centred on it in Y."
    )
    for number in range(1, num_boards + 1):
        z = plinth + (number - 1) * (gap + thick) + thick / 2
        draft.add(Solid(name=f"board_{number}", base=box((0, 0, z), (width - 2 * thick, depth, thick))))
        draft.touches(f"board_{number}", 0, "low", "side_left")
        draft.touches(f"board_{number}", 0, "high", "side_right")
    draft.say(
        f"`board_1` (lowest) to `board_{num_boards}` (highest): as thick (Z) and as deep as the sides and fitting "
        f"between them. The underside of `board_1` is {length(plinth)} above the floor, the upper face of "
        f"`board_{num_boards}` is flush with the upper ends of the sides, and the clear gaps between neighbours are "
        "equal."
    )
    panel = draft.step(4, 10, 2)
    draft.add(Solid(name="back", base=box((0, depth / 2 + panel / 2, height / 2), (width, panel, height))))
    draft.touches("back", 1, "low", "side_left")
    draft.say(
        f"`back`: a panel {length(panel)} thick (Y) that covers the whole +Y side of the two sides and touches them."
    )
    draft.say(
        f"A round hole along X, diameter {length(hole)}, goes through `side_right`; its centre is {length(up)} above "
        f"the upper face of `board_1` and {length(back_from)} from the +Y edge of the side."
    )


def gate(draft: Draft) -> None:
    """Two posts, two rails, equally spaced pickets in front of them."""
    length = draft.length
    draft.title = "a garden gate"
    count, picket, gap = draft.step(5, 9), draft.step(60, 100, 4), draft.step(30, 60, 2)
    post, post_height = draft.step(80, 120, 4), draft.step(1000, 1400, 20)
    clear = count * picket + (count + 1) * gap
    x, latch = clear / 2 + post / 2, draft.step(20, 40, 2)
    latch_up = draft.step(500, 800, 10)
    bore = Cut(body=cylinder(1, (x, 0, latch_up), latch, post))
    for name, sign, cuts in (("post_left", -1, ()), ("post_right", 1, (bore,))):
        draft.add(Solid(name=name, base=box((sign * x, 0, post_height / 2), (post, post, post_height)), cuts=cuts))
    draft.say(
        f"`post_left` (at -X) and `post_right` (at +X): square posts, {length(post)} by the same, "
        f"{length(post_height)} high, standing on the floor; {length(clear)} clear between them along X. The gate is "
        f"symmetric about X = 0, and the posts are centred on Y = 0. A round hole along Y, diameter {length(latch)}, "
        f"goes through the middle of the width of `post_right`, its centre {length(latch_up)} above the floor."
    )
    tall, deep = draft.step(60, 100, 4), draft.step(30, 50, 2)
    centres = (draft.step(160, 240, 10), draft.step(680, 860, 10))
    for name, z in zip(("rail_low", "rail_high"), centres, strict=True):
        draft.add(Solid(name=name, base=box((0, 0, z), (clear, deep, tall))))
        draft.touches(name, 0, "low", "post_left")
        draft.touches(name, 0, "high", "post_right")
    draft.say(
        f"`rail_low` and `rail_high`: rails {length(tall)} high (Z) and {length(deep)} deep (Y) from post to post, "
        f"centred on Y = 0; their centre lines are {length(centres[0])} and {length(centres[1])} above the floor."
    )
    board, foot, tip = draft.step(14, 24, 2), draft.step(40, 100, 10), draft.step(900, 980, 10)
    for number in range(1, count + 1):
        left = -clear / 2 + gap + (number - 1) * (picket + gap)
        centre = (left + picket / 2, -(deep + board) / 2, (foot + tip) / 2)
        draft.add(Solid(name=f"picket_{number}", base=box(centre, (picket, board, tip - foot))))
        draft.touches(f"picket_{number}", 1, "high", "rail_low")
    draft.say(
        f"`picket_1` to `picket_{count}`, from -X to +X: upright boards {length(picket)} wide (X) and "
        f"{length(board)} thick (Y) on the -Y faces of the rails, touching them, from {length(foot)} to "
        f"{length(tip)} above the floor. The gaps between neighbours and between the outer pickets and the posts are "
        "all equal."
    )


def _plain_box(draft: Draft, name: str, centre: Point3, size: Point3) -> None:
    draft.add(Solid(name=name, base=box(centre, size)))
    draft.say(f"`{name}` is a box with size {_vector(size)} and centre {_vector(centre)}.")


def _metres(millimetres: float) -> str:
    return f"{millimetres / 1000:g}"


def _vector(point: Point3) -> str:
    return "(" + ", ".join(_metres(value) for value in point) + ")"
