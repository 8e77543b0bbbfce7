import json
from datetime import datetime
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from openai.types.chat import ChatCompletionChunk

from offline_model.language import text

TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("add_task", "list_tasks", "complete_task", "update_task", "delete_task")
]


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def streamed(openai: AsyncOpenAI, text: str, **options: Any) -> list[ChatCompletionChunk]:
    stream = await openai.chat.completions.create(model="any", messages=user(text), stream=True, **options)
    return [chunk async for chunk in stream]


async def test_an_answer_in_one_piece(openai: AsyncOpenAI):
    completion = await openai.chat.completions.create(model="any", messages=user("hello"), tools=TOOLS)
    assert completion.object == "chat.completion"
    assert completion.model == "any"
    choice = completion.choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content
    assert choice.message.content.startswith("Hello!")
    usage = completion.usage
    assert usage
    assert usage.prompt_tokens > 100
    assert usage.completion_tokens > 10
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


TODAY = "Mon 2026-11-23"


@pytest.fixture
def machine_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what day it is where no message says what the user's clock shows."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Clock":
            return cls(2026, 11, 23, 23, 59)

    monkeypatch.setattr(text, "datetime", Clock)


@pytest.mark.usefixtures("machine_clock")
async def test_tool_calls_have_unique_ids(openai: AsyncOpenAI):
    ids = set()
    for _ in range(2):
        completion = await openai.chat.completions.create(model="any", messages=user("add x today and y"), tools=TOOLS)
        choice = completion.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content is None
        calls = choice.message.tool_calls or []
        assert [json.loads(call.function.arguments) for call in calls if call.type == "function"] == [
            {"title": "x", "due": TODAY},
            {"title": "y"},
        ]
        ids |= {call.id for call in calls}
    assert len(ids) == 4


async def test_a_stream_of_text(openai: AsyncOpenAI):
    chunks = await streamed(openai, "hello", tools=TOOLS)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert [delta.role for delta in deltas] == ["assistant"] + [None] * (len(deltas) - 1)
    assert len(chunks) > 10
    assert "".join(delta.content or "" for delta in deltas).startswith("Hello! I am the offline model")
    assert [chunk.choices[0].finish_reason for chunk in chunks][-2:] == [None, "stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert not any(chunk.usage for chunk in chunks)


@pytest.mark.usefixtures("machine_clock")
async def test_a_stream_of_tool_calls(openai: AsyncOpenAI):
    async with openai.chat.completions.stream(model="any", messages=user("add x today and y"), tools=TOOLS) as stream:
        completion = await stream.get_final_completion()
    calls = completion.choices[0].message.tool_calls or []
    assert completion.choices[0].finish_reason == "tool_calls"
    assert [(call.function.name, json.loads(call.function.arguments)) for call in calls] == [
        ("add_task", {"title": "x", "due": TODAY}),
        ("add_task", {"title": "y"}),
    ]
    assert len({call.id for call in calls}) == 2


async def test_usage_in_a_stream_comes_last_and_only_on_request(openai: AsyncOpenAI):
    chunks = await streamed(openai, "hello", stream_options={"include_usage": True})
    assert not any(chunk.usage for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens > 10


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_the_token_limit_cuts_the_answer(openai: AsyncOpenAI, name: str):
    chunks = await streamed(openai, "hello", **{name: 3})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello! I am"
    assert chunks[-1].choices[0].finish_reason == "length"


async def test_only_tools_that_are_offered_are_called(openai: AsyncOpenAI):
    completion = await openai.chat.completions.create(model="any", messages=user("add milk"), tools=TOOLS[1:])
    assert completion.choices[0].finish_reason == "stop"
    assert "add_task" in (completion.choices[0].message.content or "")


async def test_content_may_be_a_list_of_parts(openai: AsyncOpenAI):
    messages: Any = [
        {"role": "developer", "content": [{"type": "text", "text": "You keep tasks."}]},
        {"role": "user", "content": [{"type": "text", "text": "add"}, {"type": "text", "text": "milk"}]},
    ]
    completion = await openai.chat.completions.create(model="any", messages=messages, tools=TOOLS)
    calls = completion.choices[0].message.tool_calls or []
    assert [call.function.arguments for call in calls if call.type == "function"] == ['{"title": "milk"}']


async def test_models(openai: AsyncOpenAI):
    assert [entry.id async for entry in openai.models.list()] == ["offline-rules"]


async def test_health(url: str):
    async with httpx2.AsyncClient() as client:
        assert (await client.get(f"{url}/health")).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *[(body, 400) for body in (b"{", b"[" * 1_000, b"[]", b"{}", b'{"messages": []}')],
        (b'{"messages": [{"role": "robot"}]}', 400),
        (b'{"messages": [{"role": "user", "content": 7}]}', 400),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', 400),
        (b'{"messages": [{"role": "user"}], "max_tokens": 0}', 400),
        (b"[" * 100_001, 413),
    ],
    ids=range(10),
)
async def test_a_body_that_cannot_be_read(url: str, body: bytes, status: int):
    async with httpx2.AsyncClient() as client:
        headers = {"content-type": "application/json"}
        response = await client.post(f"{url}/v1/chat/completions", content=body, headers=headers)
    assert response.status_code == status
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


async def test_a_client_reads_errors(openai: AsyncOpenAI):
    with pytest.raises(BadRequestError, match="messages"):
        await openai.chat.completions.create(model="any", messages=[])
    with pytest.raises(NotFoundError, match="There is nothing at /v1/embeddings\\."):
        await openai.embeddings.create(model="any", input="x", encoding_format="float")


async def test_a_method_that_a_path_does_not_have(url: str):
    async with httpx2.AsyncClient() as client:
        response = await client.get(f"{url}/v1/chat/completions")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["error"]["message"] == "GET is not allowed at /v1/chat/completions. Use POST."


@pytest.mark.parametrize("path", ["/script", "/requests"])
async def test_nobody_can_script_it_or_read_what_it_was_asked(url: str, path: str):
    async with httpx2.AsyncClient(base_url=url) as client:
        assert (await client.post(path, json={"steps": []})).status_code == 404
        assert (await client.get(path)).status_code == 404
