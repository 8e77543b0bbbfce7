"""The scripted endpoint does what the tests of the services ask it for."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from openai import APIConnectionError, AsyncOpenAI, AsyncStream, RateLimitError
from openai.types.chat import ChatCompletionChunk

from tests.scripted_model import ScriptedModel, serve_scripted_model

Chunks = AsyncStream[ChatCompletionChunk]


@pytest_asyncio.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with serve_scripted_model() as model:
        yield model


@pytest_asyncio.fixture
async def openai(model: ScriptedModel) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=model.openai_base_url, api_key="secret", max_retries=0) as client:
        yield client


async def ask(openai: AsyncOpenAI, text: str = "hello", **options: Any) -> Chunks:
    messages: Any = [{"role": "user", "content": text}]
    return await openai.chat.completions.create(model="any", messages=messages, stream=True, **options)


async def deltas(stream: Chunks) -> list[dict[str, Any]]:
    """What the chunks carry, without the first, which only has the role."""
    return [chunk.choices[0].delta.model_dump(exclude_none=True) async for chunk in stream if chunk.choices][1:]


async def text_of(stream: Chunks) -> str:
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def received(stream: Chunks, into: list[ChatCompletionChunk]) -> None:
    async for chunk in stream:
        into.append(chunk)  # noqa: PERF401 -- what came before the error is wanted


async def test_steps_are_used_up_in_order_then_the_rules_answer(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"text": "one"}, {"text": "two"})
    answers = [await text_of(await ask(openai)) for _ in range(3)]
    assert answers[:2] == ["one", "two"]
    assert answers[2].startswith("Hello!")


async def test_a_step_waits_for_its_words(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"when": "milk", "text": "about milk"}, {"text": "anything"})
    assert await text_of(await ask(openai, "eggs")) == "anything"
    assert await text_of(await ask(openai, "the milk")) == "about milk"


async def test_text_and_arguments_are_cut_into_pieces(model: ScriptedModel, openai: AsyncOpenAI):
    call = {"name": "add_task", "arguments": {"title": "x"}, "id": "1"}
    await model.script({"text": "abcde", "tool_calls": [call], "chunk_chars": 2})
    assert await deltas(await ask(openai)) == [
        {"content": "ab"},
        {"content": "cd"},
        {"content": "e"},
        {
            "tool_calls": [
                {"index": 0, "id": "1", "type": "function", "function": {"name": "add_task", "arguments": ""}}
            ]
        },
        *(
            {"tool_calls": [{"index": 0, "function": {"arguments": p}}]}
            for p in ('{"', "ti", "tl", 'e"', ": ", '"x', '"}')
        ),
        {},
    ]


async def test_tool_calls_with_odd_ids_and_arguments(model: ScriptedModel, openai: AsyncOpenAI):
    calls = [
        {"name": "a", "arguments": "{broken", "id": None},
        {"name": "b", "id": "same"},
        {"name": "c", "id": "same"},
    ]
    await model.script({"tool_calls": calls}, {"tool_calls": [{"name": "d"}]})
    completion = await openai.chat.completions.create(model="any", messages=[{"role": "user", "content": "x"}])
    got = completion.choices[0].message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in got if call.type == "function"] == [
        (None, "{broken"),
        ("same", "{}"),
        ("same", "{}"),
    ]
    completion = await openai.chat.completions.create(model="any", messages=[{"role": "user", "content": "x"}])
    assert (completion.choices[0].message.tool_calls or [])[0].id.startswith("call_")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_reasoning_comes_before_the_text(model: ScriptedModel, openai: AsyncOpenAI, field: str):
    await model.script({"reasoning": "hmm", "reasoning_field": field, "text": "yes"})
    assert await deltas(await ask(openai)) == [{field: "hmm"}, {"content": "yes"}, {}]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({}, "stop"),
        ({"tool_calls": [{"name": "a"}]}, "tool_calls"),
        ({"finish_reason": "content_filter"}, "content_filter"),
        ({"finish_reason": None}, None),
    ],
)
async def test_finish_reason(model: ScriptedModel, openai: AsyncOpenAI, step: dict[str, Any], reason: str | None):
    await model.script({"text": "x", **step})
    reasons = [chunk.choices[0].finish_reason async for chunk in await ask(openai)]
    assert reasons[-1] == reason


async def test_usage(model: ScriptedModel, openai: AsyncOpenAI):
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    await model.script({"text": "x", "usage": usage}, {"text": "x", "usage": None}, {"text": "x"})
    asked: Any = {"stream_options": {"include_usage": True}}
    got = [[chunk.usage async for chunk in await ask(openai, **asked)][-1] for _ in range(3)]
    assert got[0]
    assert got[0].model_dump(exclude_none=True) == usage
    assert got[1] is None
    assert got[2]
    assert got[2].completion_tokens == 1


async def test_an_http_error(model: ScriptedModel, openai: AsyncOpenAI):
    body = {"message": "Slow down.", "type": "too_many_requests_error", "code": "request_quota_exceeded"}
    await model.script({"status": 429, "body": body, "headers": {"Retry-After": "2"}}, {"status": 503, "body": "down"})
    with pytest.raises(RateLimitError) as caught:
        await ask(openai)
    assert caught.value.response.json() == body
    assert caught.value.response.headers["retry-after"] == "2"
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{model.openai_base_url}/chat/completions", json={"messages": [{"role": "user"}]})
    assert (response.status_code, response.text) == (503, "down")


async def test_raw_frames_are_sent_verbatim(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"raw": [": ping\n\n", "data: {broken\n\n"]})
    with pytest.raises(json.JSONDecodeError):
        await text_of(await ask(openai))


async def test_a_cut_connection_is_an_error_after_the_frames(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"text": "abcdef", "chunk_chars": 1, "cut_after": 3}, {"cut_after": 0})
    chunks: list[ChatCompletionChunk] = []
    with pytest.raises(APIConnectionError):
        await received(await ask(openai), chunks)
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["", "a", "b"]
    with pytest.raises(APIConnectionError):
        await text_of(await ask(openai))
    assert [request["outcome"] for request in await model.finished_requests()] == ["aborted", "aborted"]


async def test_a_clean_end_without_a_finish_reason(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"text": "abcdef", "chunk_chars": 1, "eof_after": 3})
    chunks = [chunk async for chunk in await ask(openai)]
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["", "a", "b"]
    assert not any(chunk.choices[0].finish_reason for chunk in chunks)
    assert (await model.finished_requests())[0]["outcome"] == "completed"


async def test_delays(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"text": "ab", "chunk_chars": 1, "delay": 0.05, "token_delay": 0.02})
    started = time.monotonic()
    await text_of(await ask(openai))
    assert time.monotonic() - started >= 0.05 + 3 * 0.02  # role, a, b, end and [DONE]; the last is not waited for


@pytest.mark.parametrize(
    "step",
    [
        {"text": "a", "hang": True},
        {"text": "a b c", "token_delay": 60},
        {"text": "a", "delay": 60},
    ],
)
async def test_a_client_that_leaves_is_noticed(model: ScriptedModel, step: dict[str, Any]):
    await model.script(step)
    url = f"{model.openai_base_url}/chat/completions"
    body = {"stream": True, "messages": [{"role": "user", "content": "x"}]}
    async with httpx2.AsyncClient() as client:
        asking = asyncio.create_task(client.post(url, json=body))
        assert [request["outcome"] for request in await model.received_requests(1)] == ["open"]
        left_at = time.time()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    request = (await model.finished_requests())[0]
    assert request["outcome"] == "client_closed"
    assert 0 <= request["finished_at"] - left_at < 1


async def test_the_server_stops_at_once_with_open_streams():
    async with serve_scripted_model() as model:
        await model.script({"text": "a", "hang": True})
        async with httpx2.AsyncClient(base_url=model.openai_base_url) as client:
            body = {"stream": True, "messages": [{"role": "user", "content": "x"}]}
            asking = asyncio.create_task(client.post("/chat/completions", json=body))
            await model.received_requests(1)
            started = time.monotonic()
            await model.stop()
            assert time.monotonic() - started < 3
            with pytest.raises(httpx2.TransportError):
                await asking


async def test_requests_are_recorded_without_the_secret(model: ScriptedModel, openai: AsyncOpenAI):
    await text_of(await ask(openai, "hello", temperature=0.7))
    await text_of(await ask(openai, "again"))
    first, second = await model.finished_requests()
    assert (first["n"], second["n"]) == (1, 2)
    assert first["body"] == {
        "model": "any",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "temperature": 0.7,
    }
    assert first["headers"]["authorization"] == "Bearer"
    assert first["received_at"] <= first["finished_at"] <= second["finished_at"]


async def test_reset_forgets_steps_and_requests(model: ScriptedModel, openai: AsyncOpenAI):
    await model.script({"text": "one"}, {"text": "two"})
    await text_of(await ask(openai))
    await model.reset()
    assert await model.requests() == []
    assert (await text_of(await ask(openai))).startswith("Hello!")


async def test_a_misspelt_step_is_refused(model: ScriptedModel):
    with pytest.raises(httpx2.HTTPStatusError):
        await model.script({"txt": "one"})
