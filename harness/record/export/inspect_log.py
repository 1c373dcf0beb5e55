"""Inspect's `.eval` logs: one for each run, environment and policy, so that its viewer and analyses take our episodes.

An instance is a sample, and each of its rollouts an epoch of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from metier.envs.core import Limit

from ...policy.contract import Role, Stop
from ..blob import BlobRef
from ..event import Told
from ..parcel import Load
from ..reader import Attempt
from .atif import finite, moment
from .dialogue import Exchange, exchanges, identity

VERSION = 2
_SCORER = "metier"
_NO_END = "the end of this attempt was not recorded"
_STOPS = {Stop.LENGTH: "max_tokens", Stop.CONTEXT: "model_length", Stop.ABORT: "unknown"}
_LIMITS = {Limit.STEPS: "turn", Limit.TIME: "time", Limit.TOKENS: "token"}
Document = dict[str, Any]
Group = tuple[str, str, str, str]
"""Run, environment, policy, model."""


def group_of(attempt: Attempt) -> Group:
    """Which log an attempt belongs to."""
    started = attempt.started
    if started is None:
        return attempt.run_id, "unknown", "unknown", "unknown"
    model = started.settings.get("model") or started.provenance.weights or started.policy
    return attempt.run_id, started.env_id, started.policy or "unknown", str(model or "unknown")


def write_log(folder: Path, group: Group, attempts: Sequence[Attempt], load: Load) -> tuple[Path, int]:
    """Write the log of one group; returns its path and how many samples it has. Raises as `Load`.

    Of an episode's attempts the last one is the sample; those before it that failed are its retries.
    """
    run_id, env_id, _, _ = group
    digest = hashlib.sha256("\0".join(group).encode()).hexdigest()
    samples = [_sample(tries, group[3], load) for tries in _by_episode(attempts)]
    start = {"version": VERSION, "eval": _spec(group, attempts, digest, samples), "plan": _plan(group)}
    header = {**start, "status": "success", "results": _results(samples), "stats": _stats(samples)}
    stem = f"{_name(run_id)}_{_name(env_id)}_{digest[:12]}"
    path = folder / f"{stem}.eval"
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("_journal/start.json", _json(start))
        for sample in samples:
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", _json(sample))
        log.writestr("summaries.json", _json([_summary(sample) for sample in samples]))
        log.writestr("header.json", _json(header))
    partial.rename(path)
    return path, len(samples)


def _by_episode(attempts: Iterable[Attempt]) -> list[list[Attempt]]:
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.episode_id, []).append(attempt)
    return [sorted(tries, key=lambda attempt: attempt.attempt) for tries in found.values()]


def _name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in text)


def _json(value: Any) -> str:
    return json.dumps(finite(value), ensure_ascii=False)


def _spec(group: Group, attempts: Sequence[Attempt], digest: str, samples: Sequence[Document]) -> Document:
    run_id, env_id, policy, model = group
    first = min(attempts, key=lambda attempt: attempt.events[0].at_ns)
    started = first.started
    made_of = started.provenance.model_dump() if started else {}
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    spec: Document = {
        "eval_id": digest[:22],
        "run_id": run_id,
        "created": moment(first.events[0].at_ns),
        "task": env_id,
        "task_id": digest[22:44],
        "task_version": made_of.get("environment_digest", "") or 0,
        "task_args": {},
        "solver": policy,
        "dataset": {"name": env_id, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": model,
        "config": {"epochs": max((sample["epoch"] for sample in samples), default=1)},
        "packages": {"metier": made_of.get("metier_version", "")},
        "metadata": {"metier": made_of, "settings": dict(started.settings) if started else {}},
        "scorers": [{"name": _SCORER}],
    }
    if made_of.get("commit"):
        spec["revision"] = {"type": "git", "origin": "", "commit": made_of["commit"]}
    return spec


def _plan(group: Group) -> Document:
    return {"name": "plan", "steps": [{"solver": group[2], "params": {}}]}


def _sample(tries: Sequence[Attempt], model: str, load: Load) -> Document:
    attempt = tries[-1]
    started, verdict, ended = attempt.started, attempt.verdict, attempt.ended
    turns = list(exchanges(attempt))
    brief = [_told(told, load) for told in (turns[0].told if turns else ())]
    said = [message for exchange in turns for message in _messages(exchange, model, load)]
    usage = _usage(turns)
    last = next((message for message in reversed(said) if message["role"] == "assistant"), None)
    seconds = ended.timings_s.get("total") if ended else None
    sample: Document = {
        "id": _sample_id(attempt),
        "epoch": (started.sample if started else 0) + 1,
        "input": brief,
        "target": "",
        "messages": said,
        "output": {"model": model, "choices": [], "usage": usage},
        "metadata": identity(attempt),
        "store": {},
        "events": [],
        "model_usage": {model: usage},
        "started_at": moment(attempt.events[0].at_ns),
        "completed_at": moment(attempt.events[-1].at_ns),
        "total_time": seconds,
        "working_time": seconds,
        "uuid": attempt.trace_id,
        "turn_count": sum(exchange.turn is not None for exchange in turns),
        "attachments": {},
    }
    if last is not None:
        stop = next(exchange.turn.turn.stop for exchange in reversed(turns) if exchange.turn is not None)
        choice = {"message": last, "stop_reason": _STOPS.get(stop, "tool_calls" if last.get("tool_calls") else "stop")}
        sample["output"]["choices"] = [choice]
    if verdict:
        lines = [f"{c.score:g}{' (gate)' if c.gate else ''}  {c.name}: {c.evidence}" for c in verdict.checks]
        about = {"passed": verdict.passed, "checks": {c.name: c.score for c in verdict.checks}}
        sample["scores"] = {_SCORER: {"value": verdict.reward, "explanation": "\n".join(lines), "metadata": about}}
    if ended is None:
        sample["error"] = _error(_NO_END)
    elif not ended.outcome.graded:
        sample["error"] = _error(ended.failure or str(ended.outcome))
    elif ended.limit is not None:
        kind = _LIMITS.get(ended.limit, "custom")
        sample["limit"] = {"type": kind, "limit": _reached(ended.limit, sample), "reason": f"{ended.limit} limit"}
    if failed := [one for one in tries[:-1] if one.verdict is None]:
        sample["error_retries"] = [_error(one.ended.failure if one.ended else _NO_END) for one in failed]
    return sample


def _reached(limit: Limit, sample: Document) -> float:
    """How far the episode came, since a record has no limits but only what was reached."""
    if limit is Limit.TIME:
        return float(sample["total_time"] or 0)
    if limit is Limit.TOKENS:
        return float(sample["output"]["usage"]["total_tokens"])
    return float(sample["turn_count"])


def _sample_id(attempt: Attempt) -> str:
    """It names a file, and stays the same for all rollouts of an instance."""
    started = attempt.started
    if started is None:
        return _name(attempt.episode_id)
    name = f"seed-{started.seed}-level-{started.level}"
    if started.options:
        name += "-" + hashlib.sha256(json.dumps(dict(started.options), sort_keys=True).encode()).hexdigest()[:8]
    return name


def _messages(exchange: Exchange, model: str, load: Load) -> list[Document]:
    said = [_told(told, load) for told in exchange.told]
    if exchange.turn is not None:
        turn = exchange.turn.turn
        text: Any = turn.text
        if turn.reasoning:
            text = [{"type": "reasoning", "reasoning": turn.reasoning}, {"type": "text", "text": turn.text}]
        message: Document = {"role": "assistant", "content": text, "source": "generate", "model": model}
        if exchange.calls:
            message["tool_calls"] = [
                {"id": call_id, "function": call.tool, "arguments": dict(call.arguments), "type": "function"}
                for call_id, call in exchange.calls
            ]
        said.append(message)
    for one in exchange.observed:
        said += [_told(told, load) for told in one.step.told]
        if one.step.observed:
            content = _content(one.step.text, one.step.images, load)
            if one.call_id is None:
                said.append({"role": "user", "content": content})
            else:
                call = {"tool_call_id": one.call_id, "function": one.step.call.tool}
                said.append({"role": "tool", "content": content, **call})
    return said


def _told(told: Told, load: Load) -> Document:
    role = "system" if told.role is Role.SYSTEM else "user"
    return {"role": role, "content": _content(told.text, told.images, load), "source": "input"}


def _content(text: str, images: Sequence[BlobRef], load: Load) -> Any:
    if not images:
        return text
    shown = [
        {"type": "image", "image": f"data:{ref.media_type};base64,{base64.b64encode(load(ref)).decode()}"}
        for ref in images
    ]
    return [{"type": "text", "text": text}, *shown]


def _usage(turns: Sequence[Exchange]) -> Document:
    usages = [exchange.turn.turn.usage for exchange in turns if exchange.turn is not None]
    sent, got = sum(one.prompt_tokens for one in usages), sum(one.output_tokens for one in usages)
    costs = [float(one.cost_usd) for one in usages if one.cost_usd is not None]
    return {
        # Inspect counts what came from a cache beside the input, not within it
        "input_tokens": sent - sum(one.cached_tokens for one in usages),
        "output_tokens": got,
        "total_tokens": sent + got,
        "input_tokens_cache_read": sum(one.cached_tokens for one in usages),
        "reasoning_tokens": sum(one.reasoning_tokens for one in usages),
        "total_cost": sum(costs) if costs else None,
    }


def _error(message: str) -> Document:
    return {"message": message, "traceback": message, "traceback_ansi": message}


def _results(samples: Sequence[Document]) -> Document:
    rewards = [sample["scores"][_SCORER]["value"] for sample in samples if "scores" in sample]
    passed = [bool(sample["scores"][_SCORER]["metadata"]["passed"]) for sample in samples if "scores" in sample]
    metrics = {}
    if rewards:
        metrics = {
            "mean": {"name": "mean", "value": sum(rewards) / len(rewards)},
            "pass_rate": {"name": "pass_rate", "value": sum(passed) / len(passed)},
        }
    counts = {"scored_samples": len(rewards), "unscored_samples": len(samples) - len(rewards)}
    return {
        "total_samples": len(samples),
        "completed_samples": len(rewards),
        "scores": [{"name": _SCORER, "scorer": _SCORER, **counts, "metrics": metrics}],
    }


def _stats(samples: Sequence[Document]) -> Document:
    return {
        "started_at": min((sample["started_at"] for sample in samples), default=""),
        "completed_at": max((sample["completed_at"] for sample in samples), default=""),
    }


def _summary(sample: Document) -> Document:
    kept = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "started_at", "completed_at")
    summary = {name: sample[name] for name in (*kept, "total_time", "working_time", "uuid") if name in sample}
    # a listing needs no pictures
    summary["input"] = [
        {"role": message["role"], "content": _text(message["content"])[:1000]} for message in sample["input"]
    ]
    failed = sample.get("error")
    return summary | {
        "completed": failed is None,
        "error": failed["message"] if failed else None,
        "limit": sample["limit"]["type"] if "limit" in sample else None,
        "retries": len(sample.get("error_retries", [])) or None,
        "message_count": len(sample["messages"]),
        "turn_count": sample["turn_count"],
    }


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
