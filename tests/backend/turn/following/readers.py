"""What a reader of a run was told."""

from contextlib import aclosing
from typing import Any

from backend.turn.following.publisher import Numbered
from backend.turn.following.reader import Following
from backend.turn.log import Grown
from tests.chatkit_client import ChatKit


def following(chat: ChatKit) -> Following:
    """Of the process that the client talks to."""
    return chat.app.state.parts.turns.following  # pyright: ignore[reportAttributeAccessIssue]


async def read(
    following: Following, run_id: str, after: int = 0, *, user: str = "local", most: int | None = None, **how: Any
) -> list[Numbered]:
    """The events after a number, to the end or so many."""
    told: list[Numbered] = []
    async with aclosing(following.events(run_id, user, after, **how)) as events:
        async for numbered in events:
            if numbered is not None:
                told.append(numbered)
            if len(told) == most:
                break
    return told


def text_of(events: list[Numbered]) -> str:
    """What grew, piece by piece."""
    return "".join(event.text for _, event in events if isinstance(event, Grown))
