"""Answers that are left in the middle, and what a conversation shows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.chatkit_client import Answer, text_of
from tests.support.users import User
from todo_client.chatkit import user_input

Json = dict[str, Any]

HANGS: Json = {"text": "one two three four", "eof_after": 4, "hang": True}
"""An answer that says something and never ends; its run must be stopped, or its model reset."""
FOLLOW: Json = {"type": "follow", "payload": {}}


async def start_run(user: User, chat: str, text: str, *, until: str = "interaction_started") -> str:
    """The id of an interaction whose stream was left at the first event of this name."""
    run = ""
    async with user.runs.interact(chat, text) as events:
        async for event in events:
            run = run or event.data["interaction_id"]
            if event.name == until:
                break
    return run


async def thread_of(user: User, chat: str) -> str:
    """ChatKit's id of the chat of this name."""
    return next(one["id"] for one in (await user.runs.get_chats(limit=100))["chats"] if one["name"] == chat)


async def shown_texts(user: User, thread: str) -> list[str]:
    """What the user and the assistant said, as ChatKit lists it."""
    return [text_of(item) for item in await user.chatkit.items(thread) if item["type"].endswith("message")]


async def user_items(user: User, thread: str) -> list[Json]:
    return [item for item in await user.chatkit.items(thread) if item["type"] == "user_message"]


async def follow(user: User, thread: str) -> Answer:
    """The running answer from its beginning, as the page reads it after a reload; not held to ChatKit's order."""
    async with user.chatkit.open("threads.custom_action", thread_id=thread, action=FOLLOW) as events:
        return Answer([event async for event in events])


@asynccontextmanager
async def open_answer(user: User, text: str, thread: str | None = None) -> AsyncIterator[Answer]:
    """An answer in ChatKit once its first words are there; whole after the block, if nothing stops it."""
    answer = Answer()
    kind = "threads.add_user_message" if thread else "threads.create"
    where: Json = {"thread_id": thread} if thread else {}
    async with user.chatkit.open(kind, input=user_input(text), **where) as events:
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
