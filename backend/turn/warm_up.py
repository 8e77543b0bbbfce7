"""The first turn of a process, made up before anybody waits for one: late imports, schemas, statements."""

import asyncio
import importlib
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx2
from agents import RunConfig, Runner, function_tool
from sqlalchemy.exc import SQLAlchemyError

from backend.agents.assistant import create_assistant
from backend.conversation import reading, statements
from backend.conversation.acting import Acting
from backend.conversation.items import Said
from backend.conversation.model_input import budget
from backend.conversation.model_input.history import note
from backend.conversation.runs import inbox, leases, limits
from backend.conversation.runs.limits import Limits
from backend.conversation.store_adapter import PostgresStore
from backend.errors import BackendError
from backend.model.chat_model import ChatModel
from backend.model.providers import Endpoint
from backend.tools.tasks.tools import TaskTools
from backend.turn.log import Event, Started
from backend.turn.speech import Overheard, Speech
from service.database import Undone, new_id, pipelined, utc_now
from service.telemetry import metrics

logger = logging.getLogger(__name__)

_NOBODY = "todo-assistant/warm-up"
_CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "add_task", "arguments": "{}"}}
_HEAD = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "none"}
_USAGE = {**_HEAD, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


@function_tool
async def add_task() -> str:
    """Nothing: it stands in for the tools."""
    return "{}"


async def warm_up(endpoint: Endpoint, store: PostgresStore, tools: TaskTools, *, read: Callable[[Event], None]) -> None:
    """Run a turn with a model that is not there, and the statements of a turn of nobody, which leave nothing.

    `read` is given what the turn says, as a door reads it.
    """
    importlib.import_module("jsonschema")  # by the MCP client, with the first result of a tool
    said = Said(text="hello", body={"content": [{"type": "input_text", "text": "hello"}], "inference_options": {}})
    await _ask_database(store, said)
    await ask_tools(tools)
    profile = replace(endpoint.profile, tool_calls="streamed")  # as `_answer` does
    model = ChatModel(replace(endpoint, profile=profile), transport=httpx2.MockTransport(_answer))
    agent = create_assistant(model, model.settings(temperature=0, max_tokens=1), [])
    agent.tools.append(add_task)
    read(Started({"id": new_id("thr"), "created_at": utc_now()}, is_new=True, said=said))
    speech = Speech(read)
    run_config = RunConfig(tracing_disabled=True, model=Overheard(model, speech.hear))
    with metrics.unmetered():
        run = Runner.run_streamed(agent, "hello", run_config=run_config)
        async for _ in run.stream_events():
            pass
    await model.client.close()


async def _ask_database(store: PostgresStore, said: Said) -> None:
    """A database that is away or not migrated yet may come: then the first turn is a little later."""
    thread, run = new_id("thr"), new_id("run")
    acting = Acting(_NOBODY, run)
    with suppress(SQLAlchemyError, OSError, Undone):
        with suppress(BackendError):
            await store.load_thread(thread, acting)
        await budget.window(await store.history(thread, acting), tokens=1000).to_model_input()
        async with pipelined(store.engine, _NOBODY) as pipeline:
            await limits.check(pipeline, Limits(running=1), user_id=_NOBODY, is_new=True)
            await statements.send_conversation(pipeline, thread, user_id=_NOBODY, title=None)
            await leases.claim(pipeline, run, user_id=_NOBODY, conversation_id=thread, lease_seconds=1)
            await statements.send_beginning(pipeline, thread, [note(""), said], acting)
            await reading.send_recent(pipeline, thread, user_id=_NOBODY, run=run)
            await statements.send_items(pipeline, thread, [note("")], acting)
            await statements.send_last_items(pipeline, thread, [note("")], acting)
            ended = await inbox.end_if_empty(pipeline, run, user_id=_NOBODY, outcome="completed", usage=None)
            await ended.fetchone()  # PostgreSQL has done all of it
            raise Undone


async def ask_tools(tools: TaskTools) -> None:
    """They may come later than we, too, or be others than we know: /ready and the turns tell."""
    try:
        async with asyncio.timeout(1):
            await tools.refresh()
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
