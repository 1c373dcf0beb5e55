"""The endpoint that an agent inside the sandbox has: what it answers, what it refuses, and what it records.

The agent's end is dialled by the tests; a scripted vendor is the model. Real programs: `tests/integration`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.core import ConfigError, Limit, PolicyError, ToolCall, ToolSpec
from metier.harness.policy import AssistantTurn, Inside, Message, Role, Stay, Stop, open_policy
from metier.harness.policy.inside import InsideSettings
from metier.harness.policy.inside.chat import key_of, read_chat
from metier.harness.policy.inside.endpoint import Endpoint
from metier.harness.policy.inside.http import MOST_BODY_BYTES, Refused, Room
from metier.harness.policy.inside.transcript import MESSAGE_BYTES, MOST_BYTES, Transcript
from metier.harness.policy.openai import OpenAISettings
from metier.harness.sandbox.protocol import BYTES, FRAME_COST, OPEN, WINDOW, Frame, FrameError, control, encode
from metier.harness.sandbox.tunnel import Carried, tunnel
from metier.harness.testing import SPEC, FakeBackend, FakeSandbox
from metier.harness.testing.policies import PIXEL
from metier.scheduler.worker import close_resources
from vendor import Answer, Asked, Script, Vendor, delta, error, streamed, whole
from waiting import soon

KEY = "sk-a-key-that-nobody-may-see"
HELLO = [{"role": "user", "content": "hello"}]


@dataclass
class Scene:
    """An endpoint in a sandbox, and a model behind it."""

    vendor: Vendor
    endpoint: Endpoint
    box: FakeSandbox
    port: int
    said: list[Message | AssistantTurn] = field(default_factory=list[Message | AssistantTurn])

    async def raw(self, data: bytes, *, end: bool = True) -> bytes:
        """Sends bytes, and gives all that comes until the other end has said everything."""
        talk = self.box.dial(self.port)
        got = b""
        try:
            await talk.send(data)
            while part := await talk.receive():
                got += part
        except ConnectionError:
            got += b"(gone)"
        if end:
            await talk.end()
        return got

    async def ask(self, method: str, target: str, body: bytes = b"") -> tuple[int, str]:
        head = f"{method} {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        said = (await self.raw(head.encode() + body)).decode()
        top, _, rest = said.partition("\r\n\r\n")
        if "chunked" in top.lower():
            rest = "".join(line + "\n" for line in rest.splitlines() if line.startswith("data: "))
        return int(top.split()[1]), rest

    async def complete(self, messages: Any = HELLO, **more: Any) -> tuple[int, Any]:
        body = json.dumps({"model": "gpt-anything", "messages": messages, **more}).encode()
        status, said = await self.ask("POST", "/v1/chat/completions", body)
        if status == 200 and more.get("stream"):
            return status, [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: {")]
        return status, json.loads(said)

    @property
    def turns(self) -> list[AssistantTurn]:
        return [part for part in self.said if isinstance(part, AssistantTurn)]

    @property
    def told(self) -> list[str]:
        return [part.text for part in self.said if isinstance(part, Message)]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METIER_TEST_KEY", KEY)


@asynccontextmanager
async def scene(script: Script, upstream: dict[str, Any] | None = None, **chosen: Any) -> AsyncIterator[Scene]:
    async with Vendor(script) as vendor:
        settings = InsideSettings.of(
            command=["agent"],
            address=f"{vendor.url}#the-model",
            upstream={"api_key_env": "METIER_TEST_KEY", "backoff_s": 0.01, "retries": 2, **(upstream or {})},
            **chosen,
        )
        backend = FakeBackend()
        box = await backend.acquire(SPEC, deadline=soon())
        said: list[Message | AssistantTurn] = []
        stay = Stay(sandbox=box, brief="", tools=(), max_turns=5, agent_s=60, deadline=soon(), say=said.append)
        endpoint = Endpoint(settings, stay, soon())
        async with tunnel(box, settings.port, endpoint.serve) as port:
            yield Scene(vendor, endpoint, box, port, said)
        await endpoint.close()
        await close_resources()
        assert KEY not in repr(said)


def upstream(**more: Any) -> OpenAISettings:
    return OpenAISettings.of(address="http://127.0.0.1:1#the-model", **more)


# what is answered


CALLS = [("c1", "run", '{"a": 1}'), ("c2", "run", "{}")]
IN_PIECES = streamed(
    delta(role="assistant", content="I th"),
    delta(content="ink"),
    delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a"'}}]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
    delta(tool_calls=[{"index": 1, "id": "c2", "type": "function", "function": {"name": "run", "arguments": "{}"}}]),
    delta("tool_calls"),
    {"id": "c", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}},
)


@pytest.mark.parametrize("script", [[whole("I think", calls=CALLS, finish="tool_calls")], [IN_PIECES]], ids=str)
async def test_an_answer_is_the_models_whole_or_in_pieces_and_is_a_turn(script: list[Answer]) -> None:
    async with scene(script, {"prices": {"prompt": "1", "output": "2"}}) as at:
        status, said = await at.complete()
        assert status == 200
        message, finish = said["choices"][0]["message"], said["choices"][0]["finish_reason"]
        assert (message["content"], finish, said["model"]) == ("I think", "tool_calls", "the-model")
        given_calls = [
            (one["id"], one["function"]["name"], one["function"]["arguments"]) for one in message["tool_calls"]
        ]
        assert given_calls == CALLS
        assert said["usage"]["total_tokens"] == 15
        status, events = await at.complete(stream=True, stream_options={"include_usage": True})
        assert status == 200
        deltas = [choice["delta"] for event in events for choice in event["choices"]]
        assert "".join(one.get("content") or "" for one in deltas) == "I think"
        assert [call["id"] for one in deltas for call in one.get("tool_calls", [])] == ["c1", "c2"]
        assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"
        assert events[-1]["usage"]["total_tokens"] == 15
        for turn in at.turns:
            assert turn.text == "I think"
            assert turn.calls == (
                ToolCall(tool="run", arguments={"a": 1}, id="c1"),
                ToolCall(tool="run", arguments={}, id="c2"),
            )
            assert (turn.usage.prompt_tokens, turn.usage.output_tokens) == (10, 5)
            assert str(turn.usage.cost_usd) == "0.00002"
        assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in at.vendor.asked)


async def test_models_and_nothing_else() -> None:
    async with scene([whole("no")]) as at:
        status, said = await at.ask("GET", "/v1/models")
        assert (status, [one["id"] for one in json.loads(said)["data"]]) == (200, ["the-model"])
        assert (await at.ask("GET", "/v1/models/the-model?a=b"))[0] == 200
        for method, target, wanted in (
            ("GET", "/v1/models/other", 404),
            ("POST", "/v1/models", 405),
            ("GET", "/v1/chat/completions", 405),
            ("POST", "/v1/embeddings", 404),
            ("POST", "http://127.0.0.1/v1/chat/completions", 404),
            ("POST", "//v1/chat/completions", 404),
            ("POST", "/v1/chat/completions/../../x", 404),
            ("CONNECT", "a.example:443", 404),
            ("OPTIONS", "*", 404),
        ):
            assert (await at.ask(method, target))[0] == wanted, (method, target)
        assert at.vendor.asked == [] and at.said == []


async def test_of_a_request_what_shapes_the_answer_is_passed_and_the_settings_count_more() -> None:
    chosen = {"temperature": 0.5, "max_tokens": 100, "extra": {"top_k": 3}, "stream": False}
    async with scene([whole("yes")], chosen) as at:
        tools = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
        await at.complete(
            temperature=2, top_p=0.9, max_tokens=7, tools=tools, guided_regex="x", user="u", logit_bias={"1": 2}
        )
        (asked,) = at.vendor.asked
        assert asked.body == {
            "model": "the-model",
            "messages": HELLO,
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 7,
            "tools": tools,
            "top_k": 3,
        }
        assert at.turns[0].notes == (
            "the name 'gpt-anything' for the model",
            "left out of the request: guided_regex, logit_bias",
        )


PNG = "data:image/png;base64,"
LEADS_OUT: list[Any] = [
    [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}],
    [{"type": "image_url", "image_url": "https://a/b.png"}],
    [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
    [{"type": "image_url", "image_url": {"url": "data:text/html;base64,AAAA"}}],
    [{"type": "image_url", "image_url": {"url": PNG + "A"}}],
    [{"type": "video_url", "video_url": {"url": PNG}}],
    [{"type": "input_audio", "input_audio": {"data": "http://a"}}],
    [{"type": "file", "file": {"file_id": "f"}}],
    [{"text": "no type"}],
    [3],
    7,
]


@pytest.mark.parametrize("content", LEADS_OUT, ids=str)
def test_content_that_could_lead_elsewhere_is_refused(content: Any) -> None:
    body = {"messages": [{"role": "user", "content": content}]}
    with pytest.raises(Refused, match=r"content|picture"):
        read_chat(json.dumps(body).encode(), upstream())


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"x", b"[]", b"{}", b"[" * 200_000, b'{"messages": NaN}', b"\xff\xfe", b'{"messages": {}}'),
        *(b'{"messages": []}', b'{"messages": [1]}', b'{"messages": [{"role": "root", "content": ""}]}'),
        b'{"messages": [{"role": "tool", "content": ""}]}',
        b'{"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "n": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": "9"}',
    ],
    ids=lambda body: str(body[:60]),
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        read_chat(body, upstream())


NAMES = ["role", "content", "type", "text", "tool_calls", "tool_call_id", "function", "name", "arguments", "id"]
WORDS = st.sampled_from(["user", "assistant", "tool", "text", "image_url", "refusal", "\ud800"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner),
)


@given(ANY_JSON)
def test_whatever_is_asked_is_read_or_refused_and_can_be_sent(value: Any) -> None:
    body = json.dumps({"messages": [value, {"role": "user", "content": value}], "stop": value}).encode()
    try:
        chat = read_chat(body, upstream())
    except Refused:
        return
    json.dumps(chat.body, allow_nan=False, ensure_ascii=False).encode()


def test_pictures_are_shown_as_the_settings_say_and_recorded() -> None:
    url = PNG + base64.b64encode(PIXEL).decode()
    shown = {"type": "image_url", "image_url": {"url": url}}
    body = json.dumps(
        {"messages": [{"role": "user", "content": [shown, shown, {"type": "text", "text": "?"}]}]}
    ).encode()
    chat = read_chat(body, upstream(max_images=1))
    kinds = [part.get("text", "shown") for part in chat.body["messages"][0]["content"]]
    assert kinds == ["[a picture, which is shown no longer]", "shown", "?"]
    assert chat.heard[0].message.images == (PIXEL, PIXEL)
    blind = read_chat(body, upstream(images=False)).body["messages"][0]["content"]
    assert "image_url" not in str(blind)


async def test_the_vendors_own_client_is_content_with_it() -> None:
    openai = pytest.importorskip("openai", reason="comes with metier[vllm]")
    async with scene([whole("I think", calls=CALLS, finish="tool_calls")], max_turns=2) as at:

        async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            talk = at.box.dial(at.port)

            async def inward() -> None:
                while data := await reader.read(65_536):
                    await talk.send(data)
                await talk.end()

            sending = asyncio.create_task(inward())
            while data := await talk.receive():
                writer.write(data)
            writer.close()
            await sending

        async with await asyncio.start_server(passed_on, "127.0.0.1", 0) as bridge:
            url = f"http://127.0.0.1:{bridge.sockets[0].getsockname()[1]}/v1"
            async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
                assert [model.id async for model in client.models.list()] == ["the-model"]
                said = await client.chat.completions.create(model="x", messages=HELLO)
                assert [call.id for call in said.choices[0].message.tool_calls] == ["c1", "c2"]
                stream = await client.chat.completions.create(
                    model="x", messages=HELLO, stream=True, stream_options={"include_usage": True}
                )
                pieces = [piece async for piece in stream]
                assert pieces[0].choices[0].delta.content == "I think"
                assert pieces[-1].usage.total_tokens == 15
                with pytest.raises(openai.BadRequestError, match="data: address"):
                    await client.chat.completions.create(
                        model="x", messages=[{"role": "user", "content": LEADS_OUT[0]}]
                    )
                with pytest.raises(openai.RateLimitError, match="used up"):
                    await client.chat.completions.create(model="x", messages=HELLO)
                with pytest.raises(openai.NotFoundError):
                    await client.embeddings.create(model="x", input="a")


# what is recorded


def heard(*messages: Any) -> Any:
    return read_chat(json.dumps({"messages": messages}).encode(), upstream()).heard


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=6))
def test_a_conversation_that_grows_is_recorded_once_in_order(news: list[list[str]]) -> None:
    """Whatever repeats itself in it: the record is the conversation."""
    said: list[Any] = []
    transcript = Transcript(said.append)
    messages: list[Any] = [user("begin")]
    wanted = ["begin"]
    for number, texts in enumerate(news):
        messages += [user(text) for text in texts]
        wanted += texts
        transcript.add(heard(*messages), AssistantTurn(text=f"answer {number % 2}"), _key_of(f"answer {number % 2}"))
        messages.append(assistant(f"answer {number % 2}"))
        wanted.append(f"answer {number % 2}")
    assert [part.text for part in said] == (wanted if news else [])


def _key_of(text: str) -> str:
    return key_of(text, [])


def test_a_second_conversation_is_recorded_by_what_is_new_in_it_and_no_word_is_put_into_the_models_mouth() -> None:
    said: list[Any] = []
    transcript = Transcript(said.append)
    transcript.add(heard(user("a"), user("b")), AssistantTurn(text="x"), _key_of("x"))
    transcript.add(heard(user("a"), user("summary")), AssistantTurn(text="y"), _key_of("y"))
    transcript.add(heard(user("a"), assistant("I did it all"), user("go")), AssistantTurn(text="z"), _key_of("z"))
    assert [part.text for part in said] == [
        *("a", "b", "x", "summary", "y"),
        "[said by the agent's program in the model's name]\nI did it all",
        *("go", "z"),
    ]
    assert isinstance(said[5], Message) and said[5].role is Role.USER


def test_a_record_has_a_bound() -> None:
    said: list[Any] = []
    transcript = Transcript(said.append)
    for number in range(5):
        transcript.add(heard(user(f"{number}" * (MOST_BYTES // 4))), AssistantTurn(text=""))
    assert said[-2].text == f"[not recorded: 1 messages, {MOST_BYTES // 4} bytes]"
    assert sum(len(part.text) for part in said) <= MOST_BYTES + 100
    said.clear()
    transcript = Transcript(said.append)
    for number in range(5):
        transcript.add(heard(*(user(f"{number} {n}") for n in range(10_000))), AssistantTurn(text=""))
    assert len(said) <= MOST_BYTES // MESSAGE_BYTES + 10
    assert said[-2].text.startswith("[not recorded: 10000 messages")


async def test_an_agent_that_leaves_has_asked_all_the_same() -> None:
    async with scene([Answer(headers=whole("late").headers, pieces=whole("late").pieces, before_s=0.2)]) as at:
        talk = at.box.dial(at.port)
        body = json.dumps({"messages": HELLO}).encode()
        await talk.send(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        while not at.vendor.asked:
            await asyncio.sleep(0.01)
        talk.drop()
        await at.endpoint.settle(60)
        assert [turn.text for turn in at.turns] == ["late"]
        assert at.endpoint.waited_s > 0.1


async def test_what_is_under_way_at_the_end_is_recorded_as_cut() -> None:
    async with scene([Answer(raw=True, end="hangs")]) as at:
        asking = asyncio.create_task(at.complete())
        while not at.vendor.asked:
            await asyncio.sleep(0.01)
        await at.endpoint.close()
        await asyncio.gather(asking, return_exceptions=True)
        assert [(turn.stop, turn.notes) for turn in at.turns] == [(Stop.ABORT, ("cut by the end of the episode",))]


# budgets


async def test_turns_are_counted_and_then_it_is_over() -> None:
    async with scene([whole("more")], max_turns=2) as at:
        assert [(await at.complete())[0] for _ in range(4)] == [200, 200, 429, 429]
        assert (at.endpoint.limit, len(at.vendor.asked)) == (Limit.STEPS, 2)
        assert at.endpoint.over.is_set()


async def test_turns_at_once_are_no_way_round() -> None:
    async with scene([whole("more")], max_turns=3) as at:
        statuses = [status for status, _ in await asyncio.gather(*(at.complete() for _ in range(10)))]
        assert (statuses.count(200), statuses.count(429), len(at.vendor.asked)) == (3, 7, 3)


async def test_tokens_are_counted() -> None:
    async with scene([whole("more")], max_total_tokens=20) as at:
        assert [(await at.complete())[0] for _ in range(3)] == [200, 200, 429]
        assert at.endpoint.limit is Limit.TOKENS


async def test_who_only_sends_rubbish_ends_its_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metier.harness.policy.inside.endpoint.MOST_REFUSED", 5)
    async with scene([whole("no")]) as at:
        for _ in range(6):
            assert (await at.ask("GET", "/"))[0] == 404
        assert at.endpoint.limit is Limit.STEPS
        assert (await at.complete())[0] == 429


# whose fault it is


async def test_what_a_second_attempt_mends_is_never_seen() -> None:
    async with scene([error(429, "slow down"), error(500), whole("at last")]) as at:
        status, said = await at.complete()
        assert (status, said["choices"][0]["message"]["content"]) == (200, "at last")
        assert at.turns[0].usage.num_requests == 3


@pytest.mark.parametrize(("status", "told"), [(400, 400), (429, 429), (500, 500), (503, 503)])
async def test_an_endpoint_that_fails_at_one_request_only_is_passed_on(status: int, told: int) -> None:
    def script(asked: Asked) -> Answer:
        return error(status, f"bad wish, {KEY}") if "bad" in str(asked.body["messages"]) else whole("fine")

    async with scene(script) as at:
        said = await at.complete([user("bad")])
        assert said[0] == told
        assert "bad wish" in said[1]["error"]["message"] and KEY not in str(said)
        assert at.endpoint.failure is None and not at.endpoint.over.is_set()
        assert (await at.complete())[0] == 200
        assert "answered another" in at.turns[0].notes[0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        *((error(429, "slow down"), 429), (error(500), 500), (error(401, "who are you"), 502)),
        *((error(404, "no such model"), 502), (Answer(raw=True, end="resets"), 502)),
    ],
    ids=["429", "500", "401", "404", "reset"],
)
async def test_an_endpoint_that_answers_nobody_is_a_failure_of_ours(answer: Answer, told: int) -> None:
    async with scene([answer]) as at:
        assert (await at.complete())[0] == told
        assert isinstance(at.endpoint.failure, PolicyError)
        assert at.endpoint.limit is None and at.endpoint.over.is_set()


async def test_who_uses_up_a_vendors_rate_has_not_taken_it_down() -> None:
    """While the endpoint is probed the agent's other requests wait, so that the probe finds it at rest."""
    asked_at: list[str] = []

    def script(asked: Asked) -> Answer:
        asked_at.append(asked.body["messages"][-1]["content"])
        in_a_row = len(asked_at) - max((n for n, text in enumerate(asked_at) if "yes" in text), default=-1)
        return whole("fine") if "yes" in asked_at[-1] or in_a_row > 40 else error(429, "slow down")

    async with scene(script, {"retries": 0}) as at:
        answers = await asyncio.gather(*(at.complete([user(f"{number}")]) for number in range(5)))
        assert {status for status, _ in answers} <= {200, 429}
        assert at.endpoint.failure is None
        assert 1 <= sum("yes" in text for text in asked_at) < 5


async def test_time_that_an_endpoint_took_and_never_gave_an_answer_for_is_not_the_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metier.harness.policy.inside.upstream.PROBE_S", 0.5)
    hangs = Answer(raw=True, end="hangs")
    for script, failed in (([hangs], True), ([hangs, whole("yes")], False)):
        async with scene(script) as at:
            asking = asyncio.create_task(at.complete())
            while not at.vendor.asked:
                await asyncio.sleep(0.01)
            at.endpoint.reached(Limit.TIME, "time_s")
            assert at.endpoint.busy
            await at.endpoint.doubt()
            await asyncio.gather(asking, return_exceptions=True)
            assert (at.endpoint.failure is not None, at.endpoint.limit) == (failed, None if failed else Limit.TIME)


async def test_a_failure_after_a_limit_is_no_way_out_of_being_graded() -> None:
    async with scene([Answer(raw=True, end="resets", before_s=0.1)], max_turns=1) as at:
        first = asyncio.create_task(at.complete())
        while not at.vendor.asked:
            await asyncio.sleep(0.01)
        assert (await at.complete())[0] == 429
        await first
        assert (at.endpoint.limit, at.endpoint.failure) == (Limit.STEPS, None)


async def test_a_conversation_too_long_for_the_model_is_the_agents_affair() -> None:
    async with scene(
        [error(400, "maximum context length is 8 tokens", "context_length_exceeded"), whole("short")]
    ) as at:
        status, said = await at.complete()
        assert (status, said["error"]["code"]) == (400, "context_length_exceeded")
        assert (await at.complete())[0] == 200
        assert [turn.stop for turn in at.turns] == [Stop.CONTEXT, Stop.END]
        assert at.endpoint.failure is None


# HTTP of any kind


BODY = json.dumps({"messages": HELLO}).encode()
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n"


async def test_requests_follow_one_another_on_a_connection_in_every_form() -> None:
    async with scene([whole("yes")]) as at:
        length = b"content-length: %d\r\n" % len(BODY)
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
        said = await at.raw(
            POST
            + length
            + b"\r\n"
            + BODY
            + POST
            + b"transfer-encoding: chunked\r\n\r\n"
            + chunked
            + POST
            + b"expect: 100-continue\r\nconnection: close\r\n"
            + length
            + b"\r\n"
            + BODY
        )
        assert said.count(b"HTTP/1.1 200") == 3
        assert len(at.turns) == 3


async def test_who_waits_to_be_asked_for_a_body_is_asked() -> None:
    async with scene([whole("yes")]) as at:
        talk = at.box.dial(at.port)
        await talk.send(POST + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(BODY))
        assert b"100" in await talk.receive()
        await talk.send(BODY)
        assert b"200" in await talk.receive()


@pytest.mark.parametrize(
    "data",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET\r\n\r\n",
        POST + b"content-length: -1\r\n\r\n",
        b"A" * 200_000,
        b"\x16\x03\x01" + b"x" * 999,
    ],
    ids=["NUL", "half a line", "a length below 0", "a head without end", "TLS"],
)
async def test_what_is_no_http_is_refused_or_cut(data: bytes) -> None:
    async with scene([whole("no")]) as at:
        said = await at.raw(data)
        assert said.startswith(b"HTTP/1.1 4") or said == b"(gone)"
        assert (await at.complete())[0] == 200


async def test_a_body_has_a_bound_and_so_have_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene([whole("no")]) as at:
        said = await at.raw(
            POST + b"content-length: %d\r\n\r\n" % (10 * MOST_BODY_BYTES) + b" " * (MOST_BODY_BYTES + WINDOW)
        )
        assert said.startswith(b"HTTP/1.1 413") or said == b"(gone)"
        room = Room(10)
        room.take(8)
        with pytest.raises(Refused, match="at once"):
            room.take(3)
        room.give(8)
        room.take(10)


# the tunnel's own guard


class Sent:
    """A steward that says nothing."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, data: bytes, /) -> None:
        self.frames.append(data)

    async def drain(self) -> None:
        return


async def test_a_steward_that_sends_beyond_its_credit_is_none() -> None:
    async def deaf(_: Any) -> None:
        await asyncio.Event().wait()

    carried = Carried(Sent())
    number = carried.register(deaf)
    opened = control(OPEN, 1 << 31, tunnel=number)
    carried.take(Frame(OPEN, 1 << 31, opened[9:]))
    with pytest.raises(FrameError, match="open already"):
        carried.take(Frame(OPEN, 1 << 31, opened[9:]))
    for _ in range(WINDOW // (FRAME_COST + 1)):
        carried.take(Frame(BYTES, 1 << 31, b"x"))
    with pytest.raises(FrameError, match="credit"):
        carried.take(Frame(BYTES, 1 << 31, b"x" * (FRAME_COST + 1)))
    carried.take(Frame(BYTES, 7, b"of nobody"))
    await carried.unregister(number)


async def test_a_connection_to_a_tunnel_that_is_gone_is_dropped() -> None:
    sent = Sent()
    carried = Carried(sent)
    carried.take(Frame(OPEN, 1 << 31, control(OPEN, 0, tunnel=99)[9:]))
    assert len(sent.frames) == 1
    assert encode(BYTES, 1, b"") not in sent.frames


async def test_a_sandbox_without_tunnels_says_so() -> None:
    class Bare:
        id = "bare"
        spec = SPEC

    with pytest.raises(ConfigError, match="bare has no tunnels"):
        tunnel(Bare(), 0, lambda _: asyncio.sleep(0))  # type: ignore[arg-type]


# settings


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no command": ({}, "command"),
    "an empty command": ({"command": []}, "command"),
    "no model": ({"command": "a", "address": "http://a"}, "model"),
    "an unknown placeholder": ({"command": ["a", "{config}"]}, "unknown placeholder 'config'"),
    "a secret": ({"command": "a", "env": {"MY_TOKEN": "x"}}, "looks like a secret"),
    "what is ours": ({"command": "a", "env": {"OPENAI_BASE_URL": "x"}}, "not to be replaced"),
    "a system port": ({"command": "a", "port": 80}, "1024"),
    "no folder": ({"command": "a", "folder": "/no/such/folder"}, "is no folder"),
    "what the agent says itself": ({"command": "a", "upstream": {"system": "x"}}, "agent's own affair"),
    "no settings": ({"command": "a", "upstream": "x"}, "by name"),
    "an unknown one": ({"command": "a", "model": "x"}, "model"),
    "an unknown one of the model's": ({"command": "a", "upstream": {"modle": "x"}}, "modle"),
}


@pytest.mark.parametrize(("chosen", "words"), WRONG.values(), ids=list(WRONG))
def test_wrong_settings_are_refused_in_words(chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_policy("inside", {"address": "http://127.0.0.1:1#m", **chosen})


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        open_policy("inside:http://127.0.0.1:1#m", {"command": "a", "upstream": {"api_key_env": "NO_SUCH_KEY"}})


def test_the_identity_is_what_is_done_not_where_it_lies(tmp_path: Path) -> None:
    def made(folder: Path, **more: Any) -> dict[str, Any]:
        return InsideSettings.of(address="http://127.0.0.1:1#m", command="a", folder=str(folder), **more).identity()

    for name in ("one", "two"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "agent.py").write_text("print()")
        (tmp_path / name / "__pycache__").mkdir()
        (tmp_path / name / "__pycache__" / name).write_text(name)
    assert made(tmp_path / "one") == made(tmp_path / "two", port=8377)
    json.dumps(made(tmp_path / "one"))
    (tmp_path / "two" / "deep" / "agent.py").write_text("print(1)")
    assert made(tmp_path / "one") != made(tmp_path / "two")
    (tmp_path / "two" / "link").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="is a link"):
        made(tmp_path / "two")


async def test_it_takes_no_single_turns_and_no_tools_that_are_out_of_reach() -> None:
    policy = open_policy("inside:http://127.0.0.1:1#m", {"command": "a", "without": ["b"]})
    assert isinstance(policy, Inside)
    with pytest.raises(ConfigError, match="whole episodes"):
        await policy.act([], [], deadline=soon())
    box = await FakeBackend().acquire(SPEC, deadline=soon())
    tools = tuple(ToolSpec(name=name, description="", parameters={}) for name in ("b", "c"))
    stay = Stay(sandbox=box, brief="", tools=tools, max_turns=1, agent_s=1, deadline=soon(), say=lambda _: None)
    with pytest.raises(ConfigError, match=r"own \(c\)"):
        await policy.stay(stay)
