"""People: each has one conversation after the other, over connections of their own."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.chaos.conversation import Conversation
from tests.chaos.doors.chatkit import ChatKitDoor
from tests.chaos.doors.runs import RunsDoor
from tests.chaos.plays import Plays
from tests.chaos.record import Record
from tests.chatkit_client import ChatKit
from todo_client.runs import Runs

_SILENCE_SECONDS = 15  # after which a client takes its connection for lost


@asynccontextmanager
async def person(
    url: str, record: Record, chance: random.Random, number: int, play: type[Plays]
) -> AsyncIterator[Callable[[], Awaitable[Plays]]]:
    """Begins a new conversation whenever it is called."""
    async with ChatKit(url) as chat, Runs(url, timeout=_SILENCE_SECONDS) as runs:
        chatkit, api = ChatKitDoor(chat, record, chance), RunsDoor(runs, record, chance)
        begun = 0

        async def begin() -> Plays:
            nonlocal begun
            begun += 1
            conversation = Conversation(chatkit, api, record, chance, f"chat-{number}-{begun}")
            plays = play(conversation, record, chance, number)
            await plays.begin()
            return plays

        yield begin
