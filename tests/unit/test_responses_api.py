"""How responses of OpenAI's Responses API are read, also of servers that imitate it, and what requests to it have."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from backend.model.failures.errors import ModelError
from backend.model.providers import PROFILES
from backend.model.requests.bodies import lower_output_limit, rejected_field
from backend.model.requests.turn_forms import TurnForm, render_turns
from backend.model.responses.frames import values_of
from backend.model.responses.reader import Piece, ResponseReader
from backend.model.responses_api import create_request, read_events
from tests.strict_provider.responses_rules import find_violations

Json = dict[str, Any]

USAGE = {"input_tokens": 7, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}}
COUNTS = {"input_tokens": 7, "output_tokens": 5, "reasoning_tokens": 2}
ARGUMENTS = '{"title": "milk"}'
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add_task", "arguments": ARGUMENTS}
OTHER = {**CALL, "id": "fc_2", "call_id": "call_2", "arguments": '{"title": "eggs"}'}
BEGUN = {**CALL, "arguments": ""}
HELLO = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}


def event(kind: str, **values: Any) -> Json:
    return {"type": f"response.{kind}", **values}


def text(*pieces: str, **more: Any) -> list[Json]:
    return [event("output_text.delta", delta=piece, **more) for piece in pieces]


def end(*output: Json, kind: str = "completed", **more: Any) -> Json:
    response = {"object": "response", "status": kind, "output": [*output], "usage": USAGE, "error": None, **more}
    return event(kind, response=response)


def item(index: int | None, value: Json, moment: str = "done") -> Json:
    return event(f"output_item.{moment}", item=value, **({} if index is None else {"output_index": index}))


def arguments(moment: str, index: int = 0, **values: Any) -> Json:
    return event(f"function_call_arguments.{moment}", output_index=index, **values)


async def _read(body: bytes) -> list[Piece]:
    async def sent() -> AsyncIterator[bytes]:
        yield body

    reader = ResponseReader()
    read = [piece async for value in read_events(values_of(sent())) for piece in reader.read_frame(value)]
    return [*read, reader.end()]


def read(body: bytes) -> Json:
    try:
        pieces = asyncio.run(_read(body))
    except ModelError as error:
        return {"error": error.code}
    last = pieces[-1]
    return {
        "text": "".join(piece.text for piece in pieces),
        "thought": "".join(piece.thought for piece in pieces),
        "calls": [(call.name, call.arguments) for call in last.calls],
        "finish": last.finish,
        "tokens": dict(last.usage),
        "replay": last.replay and last.replay["message"],
    }


def stream(*events: Json, done: str = "") -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode() + done.encode()


MILK, EGGS = ("add_task", ARGUMENTS), ("add_task", OTHER["arguments"])
ENCRYPTED = {**THOUGHT, "encrypted_content": "gAAA", "status": None}
LIMIT, FILTER = {"reason": "max_output_tokens"}, {"reason": "content_filter"}
# What servers send, and what is read of it.
SHOWN: dict[str, tuple[bytes, Json]] = {
    "as documented": (
        stream(
            *(event("created", response={"status": "in_progress", "output": []}), item(0, THOUGHT, "added")),
            *(event("reasoning_summary_text.delta", output_index=0, delta=part) for part in ("h", "m")),
            *(item(0, ENCRYPTED), *text("hel", "lo", output_index=1), item(1, {**HELLO, "phase": "commentary"})),
            *(
                item(2, BEGUN, "added"),
                arguments("delta", 2, delta=ARGUMENTS[:5]),
                arguments("delta", 2, delta=ARGUMENTS[5:]),
            ),
            *(arguments("done", 2, arguments=ARGUMENTS), item(2, CALL), end(ENCRYPTED, HELLO, CALL)),
        ),
        {
            "text": "hello",
            "thought": "hm",
            "calls": [MILK],
            "finish": "stop",
            "tokens": COUNTS,
            "replay": {
                "reasoning_items": [
                    {"type": "reasoning", "summary": THOUGHT["summary"], "encrypted_content": "gAAA"},
                    {"type": "message", "phase": "commentary"},
                    {"type": "function_call"},
                ]
            },
        },
    ),
    # lidge-jun/opencodex#4652
    "arguments that come at the end": (
        stream(item(0, BEGUN, "added"), arguments("done", arguments=ARGUMENTS), item(0, CALL), end(CALL)),
        {"calls": [MILK]},
    ),
    # NVIDIA-NeMo/Switchyard#777
    "all in the last event": (stream(end(THOUGHT, HELLO, CALL)), {"text": "hello", "thought": "hm", "calls": [MILK]}),
    # earendil-works/pi#9897
    "no item is said to be done": (
        stream(
            *text("hel", output_index=0),
            item(1, BEGUN, "added"),
            arguments("delta", 1, delta=ARGUMENTS[:4]),
            end(HELLO, CALL),
        ),
        {"text": "hel", "calls": [MILK]},
    ),
    # Oaklight/llm-rosetta#56
    "no indexes": (stream(*text("hel", "lo"), end()), {"text": "hello", "finish": "stop"}),
    "two calls without indexes": (stream(item(None, CALL), item(None, OTHER), end()), {"calls": [MILK, EGGS]}),
    "equal calls": (
        stream(item(0, CALL), item(1, {**CALL, "id": "fc_2", "call_id": "call_2"}), end()),
        {"calls": [MILK, MILK]},
    ),
    # leookun/cursor-byok#307
    "a call before the text": (
        stream(item(0, CALL), *text("hello", output_index=1), item(1, HELLO), end(CALL, HELLO)),
        {"text": "hello", "calls": [MILK]},
    ),
    # envoyproxy/ai-gateway#2184
    "over the output limit": (
        stream(*text("hel"), end(HELLO, kind="incomplete", incomplete_details=LIMIT)),
        {"text": "hel", "finish": "length", "tokens": COUNTS},
    ),
    "filtered": (
        stream(*text("hel"), end(HELLO, kind="incomplete", incomplete_details=FILTER)),
        {"text": "hel", "finish": "content_filter"},
    ),
    # jundot/omlx#2817
    "thoughts alone": (
        stream(item(0, THOUGHT), item(1, {**HELLO, "content": []}), end()),
        {"text": "", "thought": "hm", "finish": "stop"},
    ),
    "a refusal": (stream(event("refusal.delta", delta="No."), end()), {"text": "No."}),
    "a refusal at the end": (
        stream(item(0, {**HELLO, "content": [{"type": "refusal", "refusal": "No."}]}), end()),
        {"text": "No."},
    ),
    "reasoning as text": (
        stream(event("reasoning_text.delta", output_index=0, delta="hm"), *text("hello", output_index=1), end()),
        {"thought": "hm", "text": "hello"},
    ),
    "two parts of a summary": (
        stream(
            event("reasoning_summary_text.delta", output_index=0, delta="one"),
            event("reasoning_summary_part.added", output_index=0),
            event("reasoning_summary_text.delta", output_index=0, delta="two"),
            *(*text("hello", output_index=1), end()),
        ),
        {"thought": "one\n\ntwo"},
    ),
    "unknown events and [DONE]": (
        stream(
            event("queued"),
            {"type": "keepalive"},
            {"type": "codex.rate_limits"},
            *text("hi"),
            end(),
            done="data: [DONE]\n\n",
        ),
        {"text": "hi"},
    ),
    "not streamed": (json.dumps(end(THOUGHT, HELLO, CALL)["response"]).encode(), {"text": "hello", "calls": [MILK]}),
    "cut off": (stream(*text("hel")), {"error": "model_cut_off"}),
    # Wei-Shaw/sub2api#3038
    "failed": (stream(*text("hel"), end(kind="failed", error={"code": "server_error"})), {"error": "model_failed"}),
    "busy": (stream(end(kind="failed", error={"code": "rate_limit_exceeded"})), {"error": "model_busy"}),
    "error": (stream({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}), {"error": "model_busy"}),
    "nested error": (
        stream({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded"}}),
        {"error": "model_context_exceeded"},
    ),
    "failed without a reason": (stream(end(kind="failed")), {"error": "model_failed"}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_response(name: str) -> None:
    body, expected = SHOWN[name]
    shown = read(body)
    assert {key: shown.get(key) for key in expected} == expected


BODY: Json = {
    "model": "gpt-6.1-sol",
    "temperature": 0.7,
    "max_completion_tokens": 200_000,
    "reasoning_effort": "low",
    "reasoning_summary": "auto",
    "encrypted_reasoning": True,
}
# words → the field that is left out
REJECTIONS = {
    "Unsupported parameter: 'temperature' is not supported with this model.": "temperature",
    "Unsupported value: 'reasoning.effort' does not support 'low' with this model.": "reasoning_effort",
    # continuedev/continue#12047
    "Your organization must be verified to generate reasoning summaries.": "reasoning_summary",
    "Unsupported parameter: 'reasoning.summary' is not supported with this model.": "reasoning_summary",
    "Encrypted content is not supported with this model.": "encrypted_reasoning",
    "Unknown parameter: 'include'.": "encrypted_reasoning",
    "Unsupported parameter: 'max_output_tokens' is not supported.": "max_completion_tokens",
}


@pytest.mark.parametrize("words", REJECTIONS)
def test_field_that_is_rejected(words: str) -> None:
    assert rejected_field(BODY, words) == REJECTIONS[words]


def test_output_limit_is_lowered() -> None:
    words = "max_output_tokens is too large: 200000. This model supports at most 128000 completion tokens."
    assert rejected_field(BODY, words) is None
    lower = lower_output_limit(BODY, words)
    assert lower is not None
    assert lower["max_completion_tokens"] == 128_000


@pytest.mark.parametrize(
    ("model", "api", "effort"),
    [
        ("gpt-6.2-astra", "responses", "low"),
        ("gpt-6-luna", "responses", "low"),
        ("gpt-5.4-mini-2026-03-17", "responses", "low"),
        ("gpt-5.10", "responses", "low"),
        ("gpt-5.1-codex", "responses", "low"),
        ("gpt-5.2-pro", "responses", None),
        ("gpt-5.6-chat-latest", "chat", None),
        ("gpt-5-mini", "chat", None),
        ("gpt-5.2", "chat", None),
        ("gpt-4.1-mini", "chat", None),
        ("o3", "chat", None),
    ],
)
def test_api_of_a_model(model: str, api: str, effort: str | None) -> None:
    profile = PROFILES["openai"]
    assert profile.api_of(model) == api
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "temperature": 0.5, "max_tokens": 300}
    shaped = profile.shape(body, profile.api_of(model))
    assert shaped.get("reasoning_effort") == effort
    if api == "responses":
        assert [*find_violations(create_request(shaped), {})] == []


def test_turn_that_is_not_whole_goes_back_without_its_reasoning() -> None:
    """As each reasoning needs the item after it: of a long conversation, calls may be left out."""
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    kinds = [reasoning, {"type": "message", "phase": "commentary"}, reasoning, {"type": "function_call"}, reasoning]
    call = {"id": "call_1", "type": "function", "function": {"name": "add_task", "arguments": "{}"}}
    turn: Json = {"role": "assistant", "content": "I add it.", "tool_calls": [call]}
    replay = {"message": {"reasoning_items": kinds}, "calls": [{}]}
    output = {"role": "tool", "tool_call_id": "call_1", "content": "Done."}

    def kinds_of(*messages: Json) -> list[str]:
        request = create_request({"model": "gpt-6-luna", "messages": render_turns([*messages], TurnForm())})
        assert [*find_violations(request, {"gAAA": "gpt-6-luna"})] == []
        return [item["type"] for item in request["input"]]

    whole = ["reasoning", "message", "reasoning", "function_call", "function_call_output"]
    assert kinds_of({**turn, "replay": replay}, output) == whole
    assert kinds_of({"role": "assistant", "content": "I add it.", "replay": replay}) == ["message"]
    assert kinds_of({**turn, "content": None, "replay": replay}, output) == whole[2:]
    assert kinds_of(
        {**turn, "tool_calls": [call, {**call, "id": "call_2"}], "replay": replay},
        output,
        {**output, "tool_call_id": "call_2"},
    ) == [
        "message",
        *["function_call"] * 2,
        *["function_call_output"] * 2,
    ]
