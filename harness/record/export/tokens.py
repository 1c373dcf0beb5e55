"""Attempts as token rows: ids, which of them the policy chose, their behaviour logprobs and weight versions.

A row grows turn by turn, id for id as the engine saw them, and a new one begins only where a turn forked. So a trainer
needs no tokenizer and meets no drift.
"""

from __future__ import annotations

from typing import Any

from ..event import TurnBody
from ..reader import Attempt

Row = dict[str, Any]


def token_rows(attempt: Attempt) -> list[Row] | None:
    """The rows; None where a turn carries no token trace, or there is no turn."""
    rows: list[Row] = []
    for event in attempt.events:
        if not isinstance(event.body, TurnBody):
            continue
        trace = event.body.turn.tokens
        if trace is None:
            return None
        if not rows or trace.forked:
            rows.append({"input_ids": [], "action_mask": [], "logprobs": [], "weight_versions": []})
        row, context, output = rows[-1], len(trace.context_ids), len(trace.output_ids)
        row["input_ids"] += [*trace.context_ids, *trace.output_ids]
        row["action_mask"] += [0] * context + [1] * output
        row["logprobs"] += [0.0] * context + list(trace.logprobs)
        row["weight_versions"] += [-1] * context
        row["weight_versions"] += [version for version, count in trace.versions for _ in range(count)]
    return rows or None
