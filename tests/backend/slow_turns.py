"""Turns that take long enough to be looked at, left or ended in the middle."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.backend.conftest import Rows
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel

SLOW = {"text": "one two three four five six seven eight nine ten", "chunk_chars": 4, "token_delay": 0.1}


async def read_text(events: Any, *, at_least: int) -> str:
    """Read the stream until so many characters of the answer have come."""
    text = ""
    async for event in events:
        if event["type"] == "thread.item.updated" and "delta" in event["update"]:
            text += event["update"]["delta"]
            if len(text) >= at_least:
                break
    return text


def leave_running(rows: Rows, thread: str, *, silent: str, lease: float = 60) -> None:
    """What a process that died leaves, so long after its last heartbeat: a run with this lease in seconds."""
    rows(
        "INSERT INTO runs (id, conversation_id, user_id, status, heartbeat_at, lease_seconds) "
        "VALUES ('run_dead', %s, 'local', 'running', now() - %s::interval, %s)",
        thread,
        silent,
        lease,
    )


@asynccontextmanager
async def adding(chat: ChatKit, model: ScriptedModel, rows: Rows, *titles: str) -> AsyncIterator[Any]:
    """The events of a turn whose first tool has begun and waits until `rows("COMMIT")` lets it at the tasks."""
    await model.script({"tool_calls": [{"name": "add_task", "arguments": {"title": title}} for title in titles]})
    rows("BEGIN")
    rows("LOCK TABLE tasks")
    async with chat.open("threads.create", input=user_input(f"add {', '.join(titles)}")) as events:
        async for event in events:
            if event["type"] == "progress_update":
                break
        yield events
