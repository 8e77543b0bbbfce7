"""The first turn of a process, made up before anybody waits for one: late imports, schemas, statements."""

import asyncio
import importlib
import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
from agents import RunConfig, Runner, function_tool
from chatkit.types import (
    InferenceOptions,
    Page,
    Thread,
    ThreadCreatedEvent,
    ThreadItemDoneEvent,
    ThreadMetadata,
    ThreadStreamEvent,
    UserMessageItem,
    UserMessageTextContent,
)
from sqlalchemy.exc import SQLAlchemyError

from backend import budget, leases
from backend.assistant import create_assistant
from backend.errors import BackendError
from backend.events import ThreadEvents
from backend.history import note
from backend.identity import RequestContext
from backend.model import ChatModel
from backend.providers import Endpoint
from backend.store_adapter import PostgresStore
from backend.task_tools import USER, TaskTools
from backend.turns import Turn
from database import new_id, pipelined, utc_now

logger = logging.getLogger(__name__)

_NOBODY = "todo-assistant/warm-up"
_CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "add_task", "arguments": "{}"}}
_HEAD = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "none"}
_USAGE = {**_HEAD, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


@function_tool
async def add_task() -> str:
    """Nothing: it stands in for the tools."""
    return "{}"


async def warm_up(endpoint: Endpoint, store: PostgresStore, tools: TaskTools) -> None:
    """Run a turn with a model that is not there, and the statements of a turn of nobody, which find nothing."""
    importlib.import_module("jsonschema")  # by the MCP client, with the first result of a tool
    await _ask_database(store)
    await _ask_tools(tools)
    model = ChatModel(endpoint, transport=httpx2.MockTransport(_answer))
    agent = create_assistant(model, [], temperature=0, max_tokens=1)
    agent.tools.append(add_task)
    for first_event in _first_events():
        _rendered(first_event)
    events = ThreadEvents(new_id("thr"))
    run = Runner.run_streamed(agent, "hello", run_config=RunConfig(tracing_disabled=True))
    async for event in run.stream_events():
        for thread_event in events.map(event):
            _rendered(thread_event)
    await model.client.close()


def _first_events() -> Iterator[ThreadStreamEvent]:
    """What a person is sent before the model is asked."""
    thread_id, now = new_id("thr"), utc_now()
    yield ThreadCreatedEvent(thread=Thread(id=thread_id, created_at=now, items=Page()))
    said = UserMessageItem(
        id=new_id("msg"),
        thread_id=thread_id,
        created_at=now,
        content=[UserMessageTextContent(text="hello")],
        inference_options=InferenceOptions(),
    )
    yield ThreadItemDoneEvent(item=said)


def _rendered(event: ThreadStreamEvent) -> str:
    return event.model_dump_json(by_alias=True, exclude_none=True)


async def _ask_database(store: PostgresStore) -> None:
    """A database that is away or not migrated yet may come: then the first turn is a little later."""
    nobody, thread = RequestContext(_NOBODY), new_id("thr")
    with suppress(SQLAlchemyError, OSError):
        with suppress(BackendError):
            await store.load_thread(thread, nobody)
        await budget.window(await store.history(thread, nobody), tokens=1000).to_model_input()
        async with pipelined(store.engine, _NOBODY) as pipeline:
            await leases.claim(pipeline, new_id("run"), user_id=_NOBODY, conversation_id=thread)
            await leases.end(pipeline, new_id("run"), user_id=_NOBODY, outcome="completed", usage=None)
        turn = Turn(new_id("run"), ThreadMetadata(id=thread, created_at=utc_now()), _NOBODY)
        with suppress(BackendError):
            await store.write(thread, [note(thread, "")], RequestContext(_NOBODY, turn))


async def _ask_tools(tools: TaskTools) -> None:
    """They may come later than we, too, or be others than we know: /ready and the turns tell."""
    try:
        async with asyncio.timeout(1):
            await tools.prepare()
            await tools.call_tool("list_tasks", {"limit": 1}, {USER: _NOBODY})
    except Exception as error:  # noqa: BLE001 - whatever answers there, the process starts
        logger.info("the first turn will be a little later: %s", type(error).__name__)


def _answer(request: httpx2.Request) -> httpx2.Response:
    """A tool call, then, once it has an output, a word."""
    answered = json.loads(request.content)["messages"][-1]["role"] == "tool"
    delta = {"content": "word"} if answered else {"tool_calls": [_CALL]}
    chunks = [_chunk(delta), _chunk({}, "stop" if answered else "tool_calls"), _USAGE]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body.encode())


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {**_HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
