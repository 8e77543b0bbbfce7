"""What lives as long as the process, for every door."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.doors.chat.door import ChatDoor
from backend.doors.chatkit.plain import PlainDoor
from backend.doors.chatkit.stream import ChatKitDoor
from backend.doors.runs.door import RunsDoor
from backend.model.chat_model import ChatModel
from backend.tools.tasks.tools import TaskTools
from backend.turn.afterwards.summaries import Summaries
from backend.turn.inbox import Inbox
from backend.turn.turns import Turns


@dataclass(frozen=True)
class Parts:
    engine: AsyncEngine
    model: ChatModel
    tools: TaskTools
    turns: Turns
    inbox: Inbox
    chatkit: ChatKitDoor
    plain: PlainDoor
    runs: RunsDoor
    chat: ChatDoor
    summaries: Summaries


async def parts_of(request: Request) -> Parts:
    """Those of the process that was asked."""
    return request.app.state.parts


Services = Annotated[Parts, Depends(parts_of)]
