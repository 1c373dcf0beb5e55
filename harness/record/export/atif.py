"""Trajectories in Harbor's interchange format, ATIF v1.8: one JSON document an attempt.

A turn is an `agent` step with its calls and their observations; the brief and remarks are `user` and `system` steps.
What the format has no place for is under `extra.metier`: which instance, outcome, reward, checks, the time ledger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from metier.envs.core import Json

from ...policy.contract import Role
from ..blob import BlobRef
from ..event import StepBody, Told
from ..reader import Attempt
from .dialogue import Exchange, Observed, exchanges, function_schemas, identity
from .pictures import Pictures

SCHEMA = "ATIF-v1.8"
Document = dict[str, Any]


def trajectory(attempt: Attempt, pictures: Pictures) -> Document:
    """The document. Raises as `Pictures.path`."""
    steps: list[Document] = []
    for exchange in exchanges(attempt):
        for told in exchange.told:
            steps.append({"source": _source(told), "message": _content(told.text, told.images, pictures)})
        if exchange.turn is not None:
            steps.append(_agent(exchange, pictures))
        elif exchange.observed:
            observation = {"results": [_result(one, pictures) for one in exchange.observed]}
            steps.append({"source": "system", "message": "", "observation": observation})
    if not steps:
        steps.append({"source": "system", "message": "nothing was said"})
    for number, step in enumerate(steps, start=1):
        step["step_id"] = number
    document: Document = {
        "schema_version": SCHEMA,
        "session_id": attempt.run_id,
        "trajectory_id": attempt.trace_id,
        "agent": _described(attempt),
        "steps": steps,
        "final_metrics": _totals(steps),
        "extra": {"metier": _extra(attempt)},
    }
    if not attempt.whole:
        document["notes"] = "The end of this attempt was not recorded."
    return document


def _source(told: Told) -> str:
    return "user" if told.role is Role.USER else "system"


def _described(attempt: Attempt) -> Document:
    started = attempt.started
    agent: Document = {"name": (started.policy if started else "") or "unknown", "version": "0"}
    if started:
        agent["version"] = started.provenance.metier_version or "0"
        model = started.settings.get("model") or started.provenance.weights
        if model:
            agent["model_name"] = str(model)
        if started.settings:
            agent["extra"] = {"settings": finite(dict(started.settings))}
    if tools := function_schemas(attempt):
        agent["tool_definitions"] = tools
    return agent


def _agent(exchange: Exchange, pictures: Pictures) -> Document:
    assert exchange.turn is not None
    turn = exchange.turn.turn
    step: Document = {"source": "agent", "message": turn.text, "timestamp": moment(exchange.at_ns)}
    if turn.reasoning:
        step["reasoning_content"] = turn.reasoning
    if exchange.calls:
        step["tool_calls"] = [
            {"tool_call_id": call_id, "function_name": call.tool, "arguments": finite(dict(call.arguments))}
            for call_id, call in exchange.calls
        ]
    if exchange.observed:
        step["observation"] = {"results": [_result(one, pictures) for one in exchange.observed]}
    usage = turn.usage
    metrics: Document = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
    }
    if usage.cost_usd is not None and usage.cost_usd.is_finite():
        metrics["cost_usd"] = float(usage.cost_usd)
    if turn.tokens is not None:
        metrics["completion_token_ids"] = list(turn.tokens.output_ids)
        if all(map(math.isfinite, turn.tokens.logprobs)):
            metrics["logprobs"] = list(turn.tokens.logprobs)
        metrics["extra"] = {"weight_versions": [list(span) for span in turn.tokens.versions]}
    if any(metrics.values()):
        step["metrics"] = metrics
    extra: Document = {"stop": str(turn.stop)}
    if turn.notes:
        extra["parsing_notes"] = list(turn.notes)
    remarks = [message.text for one in exchange.observed for message in one.step.told]
    if remarks:
        extra["remarks_between_observations"] = remarks
    step["extra"] = extra
    return step


def _result(one: Observed, pictures: Pictures) -> Document:
    result: Document = {"content": _observation(one.step, pictures)}
    if one.call_id is not None:
        result["source_call_id"] = one.call_id
    extra = {"ok": one.step.ok, "cut_bytes": one.step.cut_bytes, "duration_s": one.step.duration_s}
    if not one.step.observed:
        extra["observed"] = False
    known = {name: value for name, value in extra.items() if value is not None}
    if known:
        result["extra"] = known
    return result


def _observation(step: StepBody, pictures: Pictures) -> Any:
    return _content(step.text, step.images, pictures) if step.observed else None


def _content(text: str, images: Sequence[BlobRef], pictures: Pictures) -> str | list[Document]:
    if not images:
        return text
    shown = [{"type": "image", "source": {"media_type": ref.media_type, "path": pictures.path(ref)}} for ref in images]
    return [{"type": "text", "text": text}, *shown]


def _totals(steps: Sequence[Document]) -> Document:
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    totals: Document = {
        "total_prompt_tokens": sum(one["prompt_tokens"] for one in metrics),
        "total_completion_tokens": sum(one["completion_tokens"] for one in metrics),
        "total_cached_tokens": sum(one["cached_tokens"] for one in metrics),
        "total_steps": len(steps),
    }
    costs = [one["cost_usd"] for one in metrics if "cost_usd" in one]
    return totals | ({"total_cost_usd": sum(costs)} if costs else {})


def _extra(attempt: Attempt) -> Document:
    started, verdict, ended = attempt.started, attempt.verdict, attempt.ended
    extra = identity(attempt)
    extra["options"] = finite(extra.get("options"))
    if started:
        extra["provenance"] = started.provenance.model_dump()
    if verdict:
        extra["checks"] = [
            {"name": c.name, "score": c.score, "weight": c.weight, "gate": c.gate, "evidence": c.evidence}
            for c in verdict.checks
        ]
    if ended:
        extra |= {"limit": str(ended.limit) if ended.limit else None, "failure": ended.failure}
        extra["timings_s"] = finite(dict(ended.timings_s))
        extra["dropped_calls"] = [
            {"function_name": call.tool, "arguments": finite(dict(call.arguments))} for call in ended.dropped
        ]
    return extra


def moment(at_ns: int) -> str:
    """ISO 8601, in UTC."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds")


def finite(value: Any) -> Json:
    """JSON without NaN and infinities, which are none: they become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(name): finite(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value
