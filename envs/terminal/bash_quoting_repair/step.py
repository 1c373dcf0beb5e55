"""A step of a maintenance script: in a right form, in faulty and near-miss forms, and in another right one.

Every form does the step's duty on plain names; only the right ones do it on all. `@NAME@` stands for a word of the
instance, `$@SRC@` and `$@DST@` for the script's own variables. What a step does is said once more in `model`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One function of the script; `faulty` from the plainest fault to the most hidden one."""

    name: str
    call: str
    duty: str
    right: str
    other: str
    """Another right way."""
    near: str
    """Quoted by rote: it still takes some names for something else."""
    faulty: tuple[str, ...]
