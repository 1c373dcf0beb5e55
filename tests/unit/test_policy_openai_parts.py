"""The parts of the policy `openai`, each by itself: settings, money, events, refusals, pauses."""

from __future__ import annotations

import contextlib
import email.utils
import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import ConfigError
from metier.harness.policy import open_policy
from metier.harness.policy.openai import OpenAISettings, Prices
from metier.harness.policy.openai.answer import cost_usd
from metier.harness.policy.openai.asking import pause_s
from metier.harness.policy.openai.faults import Fault, Meaning, refused, retry_after_s
from metier.harness.policy.openai.stream import Assembly, Events

# money


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**6))
def test_a_cost_is_exact_and_adds_up(prompt: int, cached: int, output: int) -> None:
    prices = Prices.model_validate({"prompt": "0.15", "cached": "0.075", "output": "0.60"})
    cached = min(prompt, cached)
    parts = (cost_usd(prompt, 0, 0, prices), cost_usd(0, 0, output, prices), -cached * Decimal("0.000000075"))
    assert cost_usd(prompt, cached, output, prices) == sum(parts)


# settings

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"url": "http://a/v1"}, "model"),
    "no address": ({"model": "m"}, "url"),
    "no http": ({"address": "ftp://a#m"}, "http"),
    "a password in the address": ({"address": "http://me:pw@a#m"}, "api_key_env"),
    "a key in the address": ({"address": "http://a/v1?api_key=x#m"}, "api_key_env"),
    "a key in a header": ({"address": "http://a#m", "headers": {"Authorization": "x"}}, "api_key_env"),
    "a header in two lines": ({"address": "http://a#m", "headers": {"X-A": "b\r\nC: d"}}, "X-A"),
    "two addresses": ({"address": "http://a#m", "url": "http://b"}, "not both"),
    "an unknown setting": ({"address": "http://a#m", "temprature": 1}, "temprature"),
    "a part that is ours": ({"address": "http://a#m", "extra": {"messages": []}}, "messages"),
    "money as a float": ({"address": "http://a#m", "prices": {"prompt": 0.1, "output": "1"}}, "in quotes"),
    "a negative limit": ({"address": "http://a#m", "requests_per_minute": 0}, "requests_per_minute"),
    "time without end": ({"address": "http://a#m", "request_s": float("inf")}, "request_s"),
}


@pytest.mark.parametrize(("chosen", "words"), WRONG.values(), ids=list(WRONG))
def test_wrong_settings_are_refused_with_a_word_on_what_is_wrong(chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_policy("openai", chosen)


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("https://h/api/v3?api-version=2", "https://h/api/v3/chat/completions?api-version=2"),
        ("https://h/x/chat/completions", "https://h/x/chat/completions"),
    ],
)
def test_an_address_leads_to_its_endpoint(url: str, endpoint: str) -> None:
    assert OpenAISettings.of(address=f"{url}#org/model:free").endpoint == endpoint


def test_what_changes_only_how_an_answer_is_had_is_not_the_agents_identity() -> None:
    one = OpenAISettings.of(address="http://a#m", retries=1, api_key_env="A", prices={"prompt": "1", "output": "1"})
    other = OpenAISettings.of(url="http://a", model="m", request_s=5, requests_per_minute=3)
    assert one.identity() == other.identity()
    assert one.identity() != OpenAISettings.of(address="http://a#m", temperature=0).identity()
    json.dumps(one.identity())


# the parts


@given(st.lists(st.binary(max_size=30), max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_events_do_not_depend_on_how_they_are_cut(payloads: list[bytes], random: Any) -> None:
    clean = [payload.replace(b"\n", b"").replace(b"\r", b"") for payload in payloads]
    raw = b"".join(b"event: x\ndata: " + payload + random.choice([b"\n\n", b"\r\n\r\n"]) for payload in clean)
    cut, found = Events(), []
    while raw:
        size = random.randint(1, len(raw))
        found += cut.feed(raw[:size])
        raw = raw[size:]
    assert found + cut.end() == [payload.decode("utf-8", "replace") for payload in clean]


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "tool_calls", "function", "index", "id", "arguments", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.lists(JSONISH, max_size=5))
@settings(max_examples=200)
def test_pieces_of_any_shape_raise_only_a_fault(pieces: list[Any]) -> None:
    assembly = Assembly()
    for piece in pieces:
        for event in ({"choices": [{"delta": piece}], "usage": piece}, piece):
            with contextlib.suppress(Fault):
                assembly.add(json.dumps(event))
    json.dumps(assembly.completion())


TOO_LONG = [
    ("context_length_exceeded", "Please reduce the length of the messages or completion."),
    ("", "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."),
    ("", "prompt is too long: 210000 tokens > 200000 maximum"),
    ("", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    ("exceed_context_size_error", "the request exceeds the available context size, try increasing it"),
    ("", "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    ("", "Input length (40000 tokens) exceeds the maximum allowed length (32764 tokens)."),
    ("", "The prompt (length 3000) is longer than the maximum model length of 2048 (max_model_len)."),
]


@pytest.mark.parametrize(("code", "words"), TOO_LONG, ids=range(len(TOO_LONG)))
def test_every_vendors_way_to_say_too_long_is_understood(code: str, words: str) -> None:
    body = json.dumps({"error": {"message": words, "code": code}})
    assert refused(400, {}, body, max_tokens=64).meaning is Meaning.CONTEXT
    assert refused(429, {}, body, max_tokens=64).meaning is Meaning.AGAIN


@pytest.mark.parametrize(
    "words", ["unknown field 'tools'", "model not found", "temperature must be at most 2", "invalid max_tokens value"]
)
def test_other_refusals_are_not_taken_for_it(words: str) -> None:
    assert refused(400, {}, json.dumps({"error": {"message": words}}), max_tokens=64).meaning is Meaning.FINAL


def test_413_is_too_long_and_so_is_what_a_proxy_says_of_it() -> None:
    assert refused(413, {}, "<html>Request Entity Too Large</html>", max_tokens=None).meaning is Meaning.CONTEXT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds
    later = {"retry-after": email.utils.formatdate(time.time() + 100, usegmt=True)}
    assert 90 < (retry_after_s(later) or 0) <= 101


@given(attempt=st.integers(1, 10_000), asked=st.none() | st.floats(0, 1000))
def test_pauses_grow_within_their_bounds(attempt: int, asked: float | None) -> None:
    chosen = OpenAISettings.of(address="http://a#m", backoff_s=1, longest_backoff_s=60)
    pause = pause_s(attempt, chosen, asked)
    bound = min(60, 2 ** min(attempt - 1, 10))
    assert bound / 2 <= pause or asked is not None
    assert (asked or 0) <= pause <= max(bound, 1.1 * (asked or 0) + 1)
