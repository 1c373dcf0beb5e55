"""Assemblies of level 4: many parts, arrays, copies, derived sizes, relative places, statements that repeat others."""

from __future__ import annotations

from .draft import Draft
from .machine_parts import PillarSizes, pillar, say_pillar
from .solids import Cut, Solid, box, chamfered, cylinder, profile

CORNERS = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def portal(draft: Draft) -> None:
    """Two flanged pillars, a perforated channel beam on them, a trolley below it, stops in its ends."""
    length = draft.length
    draft.title = "a portal crane"
    sizes = PillarSizes.drawn(draft, 4)
    count, pitch, lead = draft.step(5, 8), draft.step(120, 180, 4), draft.step(80, 120, 4)
    beam_long = (count - 1) * pitch + 2 * lead
    overhang = draft.step(20, 60, 2)
    span = beam_long - sizes.tube - 2 * overhang
    for side, sign in (("_left", -1), ("_right", 1)):
        pillar(draft, sizes, (sign * span / 2, 0), side, bolts=True)
    say_pillar(
        draft, sizes, "_left", f"centred {length(span / 2)} from the Z axis in direction -X, on Y = 0", bolts=True
    )
    draft.say(
        "`flange_right`, `column_right`, `gusset_right_1` to `gusset_right_4` and `bolt_right_1` to `bolt_right_4` "
        "are copies of those with `_left`, with the same numbers, moved along +X (not mirrored); the axes of the "
        f"two columns are {length(span)} apart."
    )
    under = float(sizes.flange_thick + sizes.tube_height)
    _beam(draft, sizes, (beam_long, count, pitch, lead), span, under)
    trolley = (draft.step(80, 110, 2), draft.step(70, 110, 2), draft.step(60, 110, 2))
    hook, deep, offset = draft.step(16, 30, 2), draft.step(20, 40, 2), draft.step(-40, 40, 5)
    centre = (float(offset), 0.0, under - trolley[2] / 2)
    recess = Cut(body=cylinder(2, (offset, 0, under - trolley[2] + deep / 2), hook, deep), open_high=False)
    draft.add(Solid(name="trolley", base=box(centre, trolley), cuts=(recess,)))
    draft.touches("trolley", 2, "high", "beam")
    towards = "+X" if offset >= 0 else "-X"
    draft.say(
        f"`trolley`: a block {draft.lengths(*trolley)} (X × Y × Z) hanging from the underside of `beam`, centred on "
        f"Y = 0, its centre {length(abs(offset))} from the plane X = 0 in direction {towards}. A round blind hole, "
        f"diameter {length(hook)}, goes {length(deep)} deep into the centre of its underside, with a flat bottom."
    )
    low, high = draft.overall()
    draft.say(
        f"For checking: overall the model is {length(high[0] - low[0])} long (X) and {length(high[2] - low[2])} high "
        f"(Z); the underside of `beam` is {length(under)} above the floor."
    )


def _beam(draft: Draft, sizes: PillarSizes, row: tuple[int, int, int, int], span: float, under: float) -> None:
    length = draft.length
    long, count, pitch, lead = row
    wide, tall, web = sizes.tube + draft.step(10, 40, 2), draft.step(60, 110, 2), draft.step(8, 14, 1)
    hole = draft.step(30, 50, 2)
    a = wide / 2
    shape = ((-a, 0), (a, 0), (a, tall), (a - web, tall), (a - web, web), (web - a, web), (web - a, tall), (-a, tall))
    cuts = tuple(
        Cut(body=cylinder(2, (-long / 2 + lead + number * pitch, 0, under + web / 2), hole, web))
        for number in range(count)
    )
    section = tuple((y, under + z) for y, z in shape)
    draft.add(Solid(name="beam", base=profile(0, section, -long / 2, long / 2), cuts=cuts))
    for side in ("_left", "_right"):
        draft.touches("beam", 2, "low", f"column{side}")
    draft.say(
        "`beam`: a U channel along X, open upwards, resting on both columns, symmetric about X = 0 and Y = 0; "
        f"{length(wide)} wide (Y) and {length(tall)} high (Z) outside, web and both side walls {length(web)} thick. "
        f"Each end lies {length((long - span) / 2)} beyond the axis of the nearer column."
    )
    draft.say(
        f"A row of {count} round holes along Z, diameter {length(hole)}, goes through the web of `beam` on Y = 0; "
        f"the first and the last are centred {length(lead)} from the ends, all are evenly spaced."
    )
    stop = (draft.step(16, 30, 2), wide - 2 * web, draft.step(20, tall - web, 2))
    for side, sign in (("_left", -1), ("_right", 1)):
        centre = (sign * (long - stop[0]) / 2, 0.0, under + web + stop[2] / 2)
        draft.add(Solid(name=f"stop{side}", base=box(centre, stop)))
    draft.say(
        f"`stop_left` (at -X) and `stop_right`: blocks {length(stop[0])} long (X) and {length(stop[2])} high (Z) "
        "that lie on the web inside the channel, fill its inner width, and are flush with the ends of `beam`."
    )


def rack(draft: Draft) -> None:
    """Angle posts on foot plates, perforated chamfered shelves, a row of open bins, braces."""
    length = draft.length
    draft.title = "a storage rack"
    num_shelves, sheet, gap = draft.step(3, 4), draft.step(16, 24, 2), draft.step(260, 360, 5)
    low, above = draft.step(100, 180, 5), draft.step(40, 120, 5)
    height = low + num_shelves * sheet + (num_shelves - 1) * gap + above
    size = (draft.step(900, 1300, 20), draft.step(400, 560, 20))
    leg, thick = draft.step(40, 60, 2), draft.step(4, 8, 2)
    _posts(draft, size, leg, thick, height)
    chamfer, hole = draft.step(10, 20, 2), draft.step(16, 30, 2)
    columns, rows, pitch_x, pitch_y = (
        draft.step(3, 5),
        draft.step(2, 3),
        draft.step(120, 180, 4),
        draft.step(80, 120, 4),
    )
    inner = (size[0] - 2 * thick, size[1] - 2 * thick)
    grid = [
        ((column - (columns - 1) / 2) * pitch_x, (row - (rows - 1) / 2) * pitch_y)
        for row in range(rows)
        for column in range(columns)
    ]
    for number in range(1, num_shelves + 1):
        z = low + (number - 1) * (sheet + gap) + sheet / 2
        cuts = tuple(Cut(body=cylinder(2, (u, v, z), hole, sheet)) for u, v in grid)
        draft.add(Solid(name=f"shelf_{number}", base=chamfered((0, 0, z), (*inner, sheet), chamfer), cuts=cuts))
    draft.say(
        f"`shelf_1` (lowest) to `shelf_{num_shelves}`: boards {length(sheet)} thick that fill the space between the "
        "inner faces of the posts, so that they touch all four; their four upright edges are chamfered at 45°, "
        f"{length(chamfer)} off both faces. The underside of `shelf_1` is {length(low)} above the floor, the upper "
        f"face of `shelf_{num_shelves}` is {length(above)} below the upper ends of the posts, and the clear gaps "
        "between neighbours are equal."
    )
    draft.say(
        f"Every shelf has {columns} × {rows} (X × Y) round through-holes along Z, diameter {length(hole)}, in a grid "
        f"centred on the Z axis with a pitch of {length(pitch_x)} along X and {length(pitch_y)} along Y."
    )
    _bins(draft, inner, float(low + 2 * sheet + gap), gap)
    _braces(draft, size, height)
    bottom, top = draft.overall()
    draft.say(
        f"For checking: the clear gap between two shelves is {length(gap)}; overall the model is "
        f"{length(top[0] - bottom[0])} long (X) and {length(top[2])} high (Z)."
    )


def _posts(draft: Draft, size: tuple[int, int], leg: int, thick: int, height: int) -> None:
    length = draft.length
    plate, foot = leg + draft.step(10, 30, 2), draft.step(6, 12, 2)
    bore = draft.step(8, 14, 2)
    for number, (sx, sy) in enumerate(CORNERS, start=1):
        x, y = sx * size[0] / 2, sy * size[1] / 2
        spot = (x - sx * plate / 2, y - sy * plate / 2, foot / 2)
        drilled = Cut(body=cylinder(2, spot, bore, foot))
        draft.add(Solid(name=f"foot_{number}", base=box(spot, (plate, plate, foot)), cuts=(drilled,)))
    for number, (sx, sy) in enumerate(CORNERS, start=1):
        x, y = sx * size[0] / 2, sy * size[1] / 2
        shape = ((0, 0), (leg, 0), (leg, thick), (thick, thick), (thick, leg), (0, leg))
        draft.add(
            Solid(
                name=f"post_{number}", base=profile(2, tuple((x - sx * u, y - sy * v) for u, v in shape), foot, height)
            )
        )
        draft.stands_on(f"post_{number}", f"foot_{number}")
    draft.say(
        f"`post_1` to `post_4`: upright angle bars with an L section, both legs {length(leg)} long (measured "
        f"outside) and {length(thick)} thick. Their outer corners stand on the corners of a rectangle "
        f"{draft.lengths(*size)} (X × Y) about the Z axis, their legs run along its sides. They stand on the feet "
        f"and end {length(height)} above the floor. Number 1 is at -X, -Y; the numbers go on counter-clockwise as "
        "seen from above."
    )
    draft.say(
        f"`foot_1` to `foot_4`: square plates {length(plate)} by the same, {length(foot)} thick, on the floor under "
        "the post of the same number; their two outer sides are flush with the outer faces of the post. Each has a "
        f"round through-hole along Z in its centre, diameter {length(bore)}."
    )


def _bins(draft: Draft, inner: tuple[int, int], floor: float, gap: int) -> None:
    length = draft.length
    count, apart, wall = draft.step(3, 4), draft.step(10, 30, 2), draft.step(3, 6, 1)
    wide, deep, tall = draft.step(120, 160, 4), draft.step(200, 300, 4), draft.step(100, min(200, gap - 40), 5)
    margin = draft.step(60, 80, 5)
    left, front = -inner[0] / 2 + margin, -inner[1] / 2
    for number in range(1, count + 1):
        x = left + (number - 1) * (wide + apart) + wide / 2
        y, z = front + deep / 2, floor + tall / 2
        room = box((x, y, z + wall / 2), (wide - 2 * wall, deep - 2 * wall, tall - wall))
        bin_body = box((x, y, z), (wide, deep, tall))
        draft.add(Solid(name=f"bin_{number}", base=bin_body, cuts=(Cut(body=room, open_low=False),)))
        draft.stands_on(f"bin_{number}", "shelf_2")
    draft.say(
        f"`bin_1` to `bin_{count}`, from -X to +X: bins open at the top, {draft.lengths(wide, deep, tall)} outside "
        f"(X × Y × Z), four walls and bottom {length(wall)} thick. They stand on `shelf_2`, their -Y faces flush "
        f"with its -Y edge; the first begins {length(margin)} from its -X edge, and there is {length(apart)} of air "
        "between neighbours."
    )


def _braces(draft: Draft, size: tuple[int, int], height: int) -> None:
    length = draft.length
    bar, tall, down = draft.step(3, 6, 1), draft.step(40, 70, 2), draft.step(20, 60, 5)
    z = height - down - tall / 2
    for name, sign, post, face in (("brace_left", -1, "post_1", "high"), ("brace_right", 1, "post_2", "low")):
        draft.add(Solid(name=name, base=box((sign * (size[0] + bar) / 2, 0, z), (bar, size[1], tall))))
        draft.touches(name, 0, face, post)
    draft.say(
        f"`brace_left` (at -X) and `brace_right` (at +X): flat bars {length(bar)} thick (X) and {length(tall)} high "
        "(Z) on the outer faces of the posts, touching them and as long (Y) as the rectangle; their upper edges are "
        f"{length(down)} below the upper ends of the posts."
    )
