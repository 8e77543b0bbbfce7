"""What lives as long as the process serves, for the routes of the new core."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from backend.api.chatkit.plain import PlainMessages
from backend.api.chatkit.server import TodoChatKitServer
from backend.api.frontends.service import FrontendService
from backend.api.interactions.service import InteractionService
from backend.cards.service import CardService
from backend.runs.service import RunService
from common.database import Database


@dataclass(frozen=True, slots=True)
class CoreServices:
    database: Database
    runs: RunService
    interactions: InteractionService
    frontends: FrontendService
    cards: CardService
    chatkit: TodoChatKitServer
    plain_messages: PlainMessages


async def get_core(request: Request) -> CoreServices:
    return request.app.state.core


Core = Annotated[CoreServices, Depends(get_core)]
