"""What lives as long as the process serves, for the routes."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from backend.api.calendar.service import CalendarService
from backend.api.chatkit.plain_messages import PlainMessages
from backend.api.chatkit.server import TodoChatKitServer
from backend.api.files.service import FilesService
from backend.api.frontends.service import FrontendService
from backend.api.interactions.service import InteractionService
from backend.api.tasks.service import TaskListService
from backend.cards.service import CardService
from backend.model.chat_model import ChatModel
from backend.runs.service import RunService
from backend.tools.connectors.connectors import Connectors
from backend.tools.task_tools import TaskTools
from backend.tools.workspace.files import FolderFiles
from common.database import Database
from common.rate_limit import RateLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`rate_limit` limits the requests of each user, `poll_limit` those that an open page repeats."""

    database: Database
    model: ChatModel
    tools: TaskTools
    folder_files: FolderFiles | None
    connectors: Connectors
    runs: RunService
    cards: CardService
    interactions: InteractionService
    frontends: FrontendService
    chatkit: TodoChatKitServer
    plain_messages: PlainMessages
    files: FilesService
    calendars: CalendarService
    task_list: TaskListService
    rate_limit: RateLimit
    poll_limit: RateLimit


async def get_services(request: Request) -> Services:
    """Returns the services of this process."""
    return request.app.state.services


AppServices = Annotated[Services, Depends(get_services)]
