"""Starts, follows and abandons answers, and lists what a conversation shows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.chatkit_client import Answer, text_of
from tests.support.users import User
from todo_client.chatkit import user_input

Json = dict[str, Any]

HANGS: Json = {"text": "one two three four", "eof_after": 4, "hang": True}
"""A response that hangs after some text; its run must be stopped, or its model reset."""
FOLLOW: Json = {"type": "follow", "payload": {}}


async def start_run(
    user: User, chat: str, text: str, *, until: str = "interaction_started", key: str | None = None
) -> str:
    """Starts an interaction and disconnects after the first event of this name; returns its id."""
    run = ""
    async with user.runs.interact(chat, text, key=key) as events:
        async for event in events:
            run = run or event.data["interaction_id"]
            if event.name == until:
                break
    return run


async def find_thread(user: User, chat: str) -> str:
    """Returns ChatKit's id of the chat with this name."""
    return next(one["chat_id"] for one in (await user.runs.get_chats(limit=100))["chats"] if one["name"] == chat)


async def list_texts(user: User, thread: str) -> list[str]:
    """Returns the messages of the user and the assistant in ChatKit."""
    return [text_of(item) for item in await user.chatkit.items(thread) if item["type"].endswith("message")]


async def list_user_items(user: User, thread: str) -> list[Json]:
    return [item for item in await user.chatkit.items(thread) if item["type"] == "user_message"]


async def follow(user: User, thread: str) -> Answer:
    """Reads the running answer from its start, as the page does after a reload; does not check ChatKit's order."""
    async with user.chatkit.open("threads.custom_action", thread_id=thread, action=FOLLOW) as events:
        return Answer([event async for event in events])


@asynccontextmanager
async def open_answer(user: User, text: str, thread: str | None = None) -> AsyncIterator[Answer]:
    """Sends a message in ChatKit; yields the answer when it has some text, and reads the rest after the block."""
    answer = Answer()
    kind = "threads.add_user_message" if thread else "threads.create"
    params: Json = {"thread_id": thread} if thread else {}
    async with user.chatkit.open(kind, input=user_input(text), **params) as events:
        async for event in events:
            answer.events.append(event)
            if event["type"] == "thread.item.updated" and "delta" in event["update"]:
                break
        reading = asyncio.create_task(_read(events, answer))
        yield answer
        await reading


async def _read(events: AsyncIterator[Json], answer: Answer) -> None:
    async for event in events:
        answer.events.append(event)
