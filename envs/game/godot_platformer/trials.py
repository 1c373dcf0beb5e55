"""The trials of each feature, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core import Rng
from .feel import Feature, Feel
from .grace_trials import air, buffer, ceiling, coyote, cut
from .ground_trials import fall, jump, run, single, turn
from .stage import Trial
from .terrain_trials import platforms, slopes

_MAKERS: dict[Feature, Callable[[Feel, Rng, int], list[Trial]]] = {
    Feature.RUN: run,
    Feature.JUMP: jump,
    Feature.FALL: fall,
    Feature.SINGLE: single,
    Feature.COYOTE: coyote,
    Feature.BUFFER: buffer,
    Feature.CUT: cut,
    Feature.AIR: air,
    Feature.SLOPES: slopes,
    Feature.CEILING: ceiling,
    Feature.TURN: turn,
    Feature.PLATFORMS: platforms,
}


def trials(feel: Feel, asked: Sequence[Feature], rng: Rng) -> list[Trial]:
    """All trials of the features asked for, on geometry drawn from `rng`; played in this order, in one go."""
    found: list[Trial] = []
    for feature in asked:
        found += _MAKERS[feature](feel, rng.child(feature), len(found))
    return found
