"""What a verifier sandbox with Bullet measures on a collider file; sent there as source, never run on the host.

The true body is a union of convex pieces. Volumes come from seeded random points. Both bodies get the same mass, centre
of mass and inertia, so only their shape tells them apart when they are dropped. `measure` answers with JSON and catches
what a bad file can raise.
"""
# pyright: reportMissingImports=false

import json
import math
import os
import tempfile
from typing import Any

import numpy as np

_FIELDS = {
    "box": {"size": 3},
    "sphere": {"radius": 0},
    "cylinder": {"radius": 0, "length": 0},
    "capsule": {"radius": 0, "length": 0},
}
_SMALLEST_M, _LARGEST_M = 1e-3, 10.0
_SAMPLES = 120_000
_STEP_S, _STEPS = 1.0 / 240.0, 1200
_MASS_KG = 1.0
_SAME_REST_DEG = 8.0


def measure(payload: dict[str, Any]) -> dict[str, Any]:
    """Problems of the file, or its volumes, bounds and rests beside those of the true body."""
    try:
        colliders = _read(payload["path"], payload["cap"])
    except Exception as error:  # a bad file is the agent's, and is graded
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    pieces = [_halfspaces(piece) for piece in payload["pieces"]]
    answer, body = _compare(pieces, colliders, payload["seed"])
    if answer["overlap"] >= payload["least_overlap"]:
        answer["rests"] = _rests(payload, colliders, body)
    return answer


def _read(path: str, cap: int) -> list[dict[str, Any]]:
    if not os.path.isfile(path) or os.path.islink(path):
        raise ValueError("the file is missing")
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    entries = data.get("primitives") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ValueError('no list "primitives" with at least one entry')
    if len(entries) > cap:
        raise ValueError(f"{len(entries)} primitives, where {cap} are allowed")
    return [_entry(number, entry) for number, entry in enumerate(entries, start=1)]


def _entry(number: int, entry: Any) -> dict[str, Any]:
    kind = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(f"primitive {number} has no known type")
    known = {"type", "center", "rotation", *_FIELDS[kind]}
    if set(entry) - known:
        raise ValueError(f"primitive {number}: unknown field {sorted(set(entry) - known)[0]!r}")
    center = _numbers(number, "center", entry.get("center"), 3)
    turn = _numbers(number, "rotation", entry.get("rotation", [0, 0, 0, 1]), 4)
    if abs(float(np.linalg.norm(turn)) - 1.0) > 1e-3:
        raise ValueError(f"primitive {number}: rotation is no unit quaternion")
    if np.abs(center).max() > _LARGEST_M:
        raise ValueError(f"primitive {number}: center is further than {_LARGEST_M} m away")
    read = {"kind": kind, "center": center, "turn": turn / np.linalg.norm(turn)}
    for field, count in _FIELDS[kind].items():
        value = _numbers(number, field, entry.get(field), count or 1, single=count == 0)
        if value.min() < _SMALLEST_M or value.max() > _LARGEST_M:
            raise ValueError(f"primitive {number}: {field} is not between {_SMALLEST_M} and {_LARGEST_M} m")
        read[field] = value if count else float(value[0])
    return read


def _numbers(number: int, field: str, value: Any, count: int, single: bool = False) -> Any:
    values = [value] if single else value
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(
            f"primitive {number}: {field} must be {'a number' if single else f'a list of {count} numbers'}"
        )
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in values):
        raise ValueError(f"primitive {number}: {field} must hold numbers only")
    result = np.array(values, dtype=float)
    if not np.isfinite(result).all():
        raise ValueError(f"primitive {number}: {field} is not finite")
    return result


def _halfspaces(piece: dict[str, Any]) -> tuple[Any, Any, Any]:
    vertices = np.array(piece["vertices"], dtype=float)
    a, b, c = (vertices[np.array(piece["faces"])[:, corner]] for corner in range(3))
    normals = np.cross(b - a, c - a)
    lengths = np.linalg.norm(normals, axis=1)
    normals, a = normals[lengths > 1e-12] / lengths[lengths > 1e-12, None], a[lengths > 1e-12]
    rows = np.unique(np.round(np.column_stack([normals, np.einsum("ij,ij->i", normals, a)]), 7), axis=0)
    return vertices, rows[:, :3], rows[:, 3]


def _in_pieces(points: Any, pieces: list[tuple[Any, Any, Any]]) -> Any:
    inside = np.zeros(len(points), dtype=bool)
    for vertices, normals, offsets in pieces:
        near = ~inside & (points >= vertices.min(axis=0)).all(axis=1) & (points <= vertices.max(axis=0)).all(axis=1)
        inside[near] = (points[near] @ normals.T <= offsets + 1e-6).all(axis=1)
    return inside


def _matrix(turn: Any) -> Any:
    x, y, z, w = turn
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _in_colliders(points: Any, colliders: list[dict[str, Any]]) -> Any:
    inside = np.zeros(len(points), dtype=bool)
    for collider in colliders:
        local = np.abs((points - collider["center"]) @ _matrix(collider["turn"]))
        if collider["kind"] == "box":
            inside |= (local <= collider["size"] / 2).all(axis=1)
        elif collider["kind"] == "cylinder":
            inside |= (np.hypot(local[:, 0], local[:, 1]) <= collider["radius"]) & (
                local[:, 2] <= collider["length"] / 2
            )
        else:
            beyond = np.maximum(local[:, 2] - collider.get("length", 0.0) / 2, 0.0)
            inside |= np.sqrt(local[:, 0] ** 2 + local[:, 1] ** 2 + beyond**2) <= collider["radius"]
    return inside


def _reach(collider: dict[str, Any]) -> Any:
    """Half the sides of a collider's own bounding box."""
    turn = _matrix(collider["turn"])
    if collider["kind"] == "box":
        return np.abs(turn) @ (collider["size"] / 2)
    if collider["kind"] == "cylinder":
        axis = turn[:, 2]
        return np.abs(axis) * collider["length"] / 2 + collider["radius"] * np.sqrt(np.maximum(1 - axis**2, 0.0))
    return np.abs(turn[:, 2]) * collider.get("length", 0.0) / 2 + collider["radius"]


def _compare(pieces: Any, colliders: Any, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.Generator(np.random.PCG64(seed))
    corners = np.concatenate([vertices for vertices, _, _ in pieces])
    low, high = corners.min(axis=0), corners.max(axis=0)
    own_low = np.min([c["center"] - _reach(c) for c in colliders], axis=0)
    own_high = np.max([c["center"] + _reach(c) for c in colliders], axis=0)
    points = low + rng.random((_SAMPLES, 3)) * (high - low)
    points = points[_in_pieces(points, pieces)]
    volume = float(np.prod(high - low)) * len(points) / _SAMPLES
    coverage = float(_in_colliders(points, colliders).mean())
    others = own_low + rng.random((_SAMPLES, 3)) * (own_high - own_low)
    others = others[_in_colliders(others, colliders)]
    unit = float(np.prod(own_high - own_low)) / _SAMPLES
    outside = unit * float((~_in_pieces(others, pieces)).sum())
    diagonal = float(np.linalg.norm(high - low))
    answer = {
        "coverage": coverage,
        "overshoot": outside / volume,
        "overlap": coverage * volume / (volume + outside),
        "bounds": float(max(np.abs(low - own_low).max(), np.abs(high - own_high).max())) / diagonal,
        "diagonal_m": diagonal,
    }
    centre = points.mean(axis=0)
    square = ((points - centre) ** 2).mean(axis=0) * _MASS_KG
    body = {"centre": centre, "inertia": (square.sum() - square).tolist(), "corners": corners, "diagonal": diagonal}
    return answer, body


def _rests(payload: dict[str, Any], colliders: Any, body: dict[str, Any]) -> list[dict[str, Any]]:
    """How the collider ends where the true body rests: first that body falls from each start, then, from every new rest
    that it keeps when it is disturbed, the collider is let go in the same disturbed place."""
    folder = tempfile.mkdtemp()
    hulls, urdf = os.path.join(folder, "pieces.obj"), os.path.join(folder, "collider.urdf")
    _write_pieces(hulls, payload["pieces"], body["centre"])
    _write_colliders(urdf, colliders, body["centre"])
    known: list[list[float]] = []
    rests: list[dict[str, Any]] = []
    for start, disturbances in zip(payload["starts"], payload["disturbances"], strict=True):
        rest = _drop(_true_body, hulls, start, body)
        if any(_angle_deg(rest["down"], down) < _SAME_REST_DEG for down in known):
            continue
        known.append(rest["down"])
        near = [_after(rest["turn"], disturbance) for disturbance in disturbances]
        true = [rest, *(_drop(_true_body, hulls, turn, body) for turn in near)]
        heights = [end["height"] for end in true]
        if max(heights) - min(heights) > payload["spread_height"] * body["diagonal"]:
            continue
        end = _drop(_collider_body, urdf, near[0], body)
        sure = max(_angle_deg(true[0]["down"], other["down"]) for other in true[1:]) <= payload["spread_tilt_deg"]
        rests.append(
            {
                "height": (end["height"] - true[1]["height"]) / body["diagonal"],
                "tilt_deg": _angle_deg(end["down"], true[1]["down"]) if sure else None,
            }
        )
    return rests


def _after(first: list[float], second: list[float]) -> list[float]:
    """The turn that does `first`, then `second`."""
    x1, y1, z1, w1 = second
    x2, y2, z2, w2 = first
    return [
        w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
        w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
    ]


def _write_pieces(path: str, pieces: Any, centre: Any) -> None:
    lines, offset = [], 1
    for number, piece in enumerate(pieces):
        lines.append(f"o piece_{number}")
        lines += ["v {:.7f} {:.7f} {:.7f}".format(*(np.array(vertex) - centre)) for vertex in piece["vertices"]]
        lines += [f"f {a + offset} {b + offset} {c + offset}" for a, b, c in piece["faces"]]
        offset += len(piece["vertices"])
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def _true_body(bullet: Any, client: int, hulls: str) -> int:
    shape = bullet.createCollisionShape(bullet.GEOM_MESH, fileName=hulls, physicsClientId=client)
    return bullet.createMultiBody(_MASS_KG, shape, physicsClientId=client)


def _collider_body(bullet: Any, client: int, urdf: str) -> int:
    return bullet.loadURDF(urdf, flags=bullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client)


def _write_colliders(path: str, colliders: Any, centre: Any) -> None:
    """As URDF, which takes any number of shapes in one link; Bullet's call for compounds silently stops at 16."""
    import pybullet as bullet

    lines = ['<robot name="collider"><link name="base"><inertial><mass value="1"/>']
    lines.append('<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>')
    for collider in colliders:
        at = " ".join(f"{value:.9g}" for value in collider["center"] - centre)
        turn = " ".join(f"{value:.9g}" for value in bullet.getEulerFromQuaternion(collider["turn"].tolist()))
        if collider["kind"] == "box":
            sizes = 'size="{:.9g} {:.9g} {:.9g}"'.format(*collider["size"])
        else:
            sizes = " ".join(f'{name}="{collider[name]:.9g}"' for name in ("radius", "length") if name in collider)
        lines.append(f'<collision><origin xyz="{at}" rpy="{turn}"/><geometry><{collider["kind"]} {sizes}/></geometry>')
        lines.append("</collision>")
    lines.append("</link></robot>")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def _drop(make: Any, source: str, turn: list[float], body: dict[str, Any]) -> dict[str, Any]:
    """Height of the centre of mass at rest, turn, and which way is down as the body sees it; in a fresh world."""
    import pybullet as bullet

    client = bullet.connect(bullet.DIRECT)
    try:
        bullet.setPhysicsEngineParameter(
            fixedTimeStep=_STEP_S,
            numSolverIterations=60,
            numSubSteps=1,
            deterministicOverlappingPairs=1,
            physicsClientId=client,
        )
        bullet.setGravity(0, 0, -9.81, physicsClientId=client)
        ground = bullet.createCollisionShape(bullet.GEOM_PLANE, physicsClientId=client)
        floor = bullet.createMultiBody(0, ground, physicsClientId=client)
        thing = make(bullet, client, source)
        for item in (floor, thing):
            bullet.changeDynamics(
                item,
                -1,
                lateralFriction=0.9,
                restitution=0.0,
                rollingFriction=0.02,
                spinningFriction=0.02,
                linearDamping=0.1,
                angularDamping=0.3,
                physicsClientId=client,
            )
        bullet.changeDynamics(thing, -1, localInertiaDiagonal=body["inertia"], physicsClientId=client)
        lowest = float(((body["corners"] - body["centre"]) @ _matrix(turn).T)[:, 2].min())
        at = [0.0, 0.0, 0.03 * body["diagonal"] - lowest]
        bullet.resetBasePositionAndOrientation(thing, at, turn, physicsClientId=client)
        return _settle(bullet, client, thing)
    finally:
        bullet.disconnect(client)


def _settle(bullet: Any, client: int, thing: int) -> dict[str, Any]:
    still = 0
    for _ in range(_STEPS):
        bullet.stepSimulation(physicsClientId=client)
        linear, angular = bullet.getBaseVelocity(thing, physicsClientId=client)
        still = still + 1 if max(map(abs, (*linear, *angular))) < 2e-3 else 0
        if still == 60:
            break
    at, turn = bullet.getBasePositionAndOrientation(thing, physicsClientId=client)
    return {"height": float(at[2]), "turn": list(turn), "down": (-_matrix(turn)[2]).tolist()}


def _angle_deg(a: list[float], b: list[float]) -> float:
    return math.degrees(math.acos(max(-1.0, min(1.0, sum(x * y for x, y in zip(a, b, strict=True))))))
