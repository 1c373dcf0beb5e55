"""Events as rows: the Parquet tables that `metier records query` sees, all of them append-only.

`episodes` and `turns` etc. of a query are views (`query`): an episode's beginning and end may lie in different files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from .event import EndedBody, Event, Kind, LogBody, StartedBody, StepBody, TurnBody, VerdictBody
from .extras import need

Row: TypeAlias = dict[str, Any]

_TEXT, _INT, _FLOAT, _BOOL, _TIME, _MONEY, _TEXTS = "text", "int", "float", "bool", "time", "money", "texts"
_KEY = {"run_id": _TEXT, "episode_id": _TEXT, "attempt": _INT, "seq": _INT, "trace_id": _TEXT, "at": _TIME}
_MONEY_PLACES = 12
_MOST_MONEY = Decimal(10) ** 20
TIMINGS = ("reset", "policy", "tool", "verify", "total")
"""The time ledger's entries that have a column."""

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "started": _KEY
    | dict.fromkeys(("env_id", "options", "policy", "settings", "environment_digest", "image"), _TEXT)
    | dict.fromkeys(("image_digest", "backend", "hub_fingerprint", "metier_version", "commit", "weights"), _TEXT)
    | {"seed": _INT, "level": _INT, "sample": _INT},
    "turns": _KEY
    | {
        "turn": _INT,
        "text": _TEXT,
        "reasoning": _TEXT,
        "num_calls": _INT,
        "calls": _TEXT,
        "notes": _TEXTS,
        "stop": _TEXT,
    }
    | dict.fromkeys(("prompt_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "num_requests"), _INT)
    | {"prefill_s": _FLOAT, "decode_s": _FLOAT, "waited_s": _FLOAT, "duration_s": _FLOAT, "cost_usd": _MONEY}
    | {"traced_tokens": _INT, "weights_first": _INT, "weights_last": _INT},
    "steps": _KEY
    | {"step": _INT, "turn": _INT, "tool": _TEXT, "arguments": _TEXT, "call_id": _TEXT, "text": _TEXT, "images": _TEXTS}
    | {"observed": _BOOL, "ok": _BOOL, "cut_bytes": _INT, "duration_s": _FLOAT},
    "verdicts": _KEY | {"reward": _FLOAT, "passed": _BOOL},
    "checks": _KEY
    | {"check_index": _INT, "name": _TEXT, "score": _FLOAT, "weight": _FLOAT, "gate": _BOOL, "evidence": _TEXT},
    "ended": _KEY
    | {
        "outcome": _TEXT,
        "limit_name": _TEXT,
        "failure": _TEXT,
        "num_turns": _INT,
        "num_steps": _INT,
        "num_dropped": _INT,
    }
    | {f"{name}_s": _FLOAT for name in TIMINGS},
    "logs": _KEY | {"level": _TEXT, "text": _TEXT, "about": _TEXT, "num_dropped": _INT},
}
"""Table → column → kind of value."""


def rows(event: Event) -> Iterable[tuple[str, Row]]:
    """The rows of an event, with the table of each."""
    base: Row = {**event.key._asdict(), "trace_id": event.trace_id, "at": event.at_ns}
    for table, row in _ROWS[event.kind](event.body):
        yield table, base | row


def _started(body: StartedBody) -> Iterable[tuple[str, Row]]:
    row = body.model_dump(mode="json", exclude={"tools", "provenance", "options", "settings"})
    yield (
        "started",
        row
        | body.provenance.model_dump()
        | {
            "options": _json(body.options),
            "settings": _json(body.settings),
        },
    )


def _turn(body: TurnBody) -> Iterable[tuple[str, Row]]:
    turn, usage, tokens = body.turn, body.turn.usage, body.turn.tokens
    versions = [version for version, _ in tokens.versions] if tokens else []
    yield (
        "turns",
        {
            "turn": body.index,
            "text": turn.text,
            "reasoning": turn.reasoning,
            "num_calls": len(turn.calls),
            "calls": _json([{"tool": c.tool, "arguments": c.arguments, "id": c.id} for c in turn.calls]),
            "notes": list(turn.notes),
            "stop": str(turn.stop),
            "prompt_tokens": usage.prompt_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "num_requests": usage.num_requests,
            "prefill_s": usage.prefill_s,
            "decode_s": usage.decode_s,
            "waited_s": usage.waited_s,
            "duration_s": body.duration_s,
            "cost_usd": usage.cost_usd,
            "traced_tokens": len(tokens.output_ids) if tokens else None,
            "weights_first": min(versions, default=None),
            "weights_last": max(versions, default=None),
        },
    )


def _step(body: StepBody) -> Iterable[tuple[str, Row]]:
    yield (
        "steps",
        {
            "step": body.index,
            "turn": body.turn,
            "tool": body.call.tool,
            "arguments": _json(body.call.arguments),
            "call_id": body.call.id,
            "text": body.text,
            "images": [image.sha256 for image in body.images],
            "observed": body.observed,
            "ok": body.ok,
            "cut_bytes": body.cut_bytes,
            "duration_s": body.duration_s,
        },
    )


def _verdict(body: VerdictBody) -> Iterable[tuple[str, Row]]:
    yield "verdicts", {"reward": body.reward, "passed": body.passed}
    for index, check in enumerate(body.checks):
        yield (
            "checks",
            {
                "check_index": index,
                "name": check.name,
                "score": check.score,
                "weight": check.weight,
                "gate": check.gate,
                "evidence": check.evidence,
            },
        )


def _ended(body: EndedBody) -> Iterable[tuple[str, Row]]:
    row: Row = {
        "outcome": str(body.outcome),
        "limit_name": str(body.limit) if body.limit else None,
        "failure": body.failure,
        "num_turns": body.num_turns,
        "num_steps": body.num_steps,
        "num_dropped": len(body.dropped),
    }
    yield "ended", row | {f"{name}_s": body.timings_s.get(name) for name in TIMINGS}


def _log(body: LogBody) -> Iterable[tuple[str, Row]]:
    yield (
        "logs",
        {"level": body.level, "text": body.text, "about": body.episode_id, "num_dropped": body.num_dropped},
    )


_ROWS: Mapping[Kind, Callable[[Any], Iterable[tuple[str, Row]]]] = {
    Kind.EPISODE_STARTED: _started,
    Kind.TURN: _turn,
    Kind.STEP: _step,
    Kind.VERDICT: _verdict,
    Kind.EPISODE_ENDED: _ended,
    Kind.LOG: _log,
}


def _json(value: Any) -> str:
    return json.dumps(value if isinstance(value, list) else dict(value), ensure_ascii=False, separators=(",", ":"))


def _fitting(kind: str, value: Any) -> Any:
    """The value, or None where a column cannot hold it: an endpoint may count any tokens. Segments hold the truth."""
    if kind in (_INT, _TIME) and isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    if kind == _MONEY and isinstance(value, Decimal):
        return round(value, _MONEY_PLACES) if value.is_finite() and abs(value) < _MOST_MONEY else None
    return value


def schema(table: str) -> Any:
    """The table's Arrow schema."""
    pa = need("pyarrow", "records as Parquet")
    kinds = {
        _TEXT: pa.string(),
        _INT: pa.int64(),
        _FLOAT: pa.float64(),
        _BOOL: pa.bool_(),
        _TIME: pa.timestamp("ns", tz="UTC"),
        _MONEY: pa.decimal128(38, _MONEY_PLACES),
        _TEXTS: pa.list_(pa.string()),
    }
    return pa.schema([(name, kinds[kind]) for name, kind in COLUMNS[table].items()])


def parquet(table: str, all_rows: list[Row]) -> bytes:
    """A Parquet file of these rows; the same bytes for the same rows."""
    pa = need("pyarrow", "records as Parquet")
    pq = need("pyarrow.parquet", "records as Parquet")
    columns = {name: [_fitting(kind, row.get(name)) for row in all_rows] for name, kind in COLUMNS[table].items()}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema(table)), sink, compression="zstd")
    return sink.getvalue().to_pybytes()
