"""What routes need of a request: the process's services, the user, whom `UserRoute` has authenticated, and its headers.

They are `async`, as FastAPI (0.165) calls other dependencies in a thread.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request, Response

from backend.api.chatkit.server import TodoChatKitServer
from backend.api.idempotency import check_key
from backend.api.identity import AuthenticatedUser
from backend.api.interactions.service import InteractionService
from backend.api.tasks.service import TaskListService
from backend.calendar.feed import Feeds
from backend.conversations import conversations
from backend.errors import InvalidRequest
from backend.model.chat_model import ChatModel
from backend.runs.service import RunService
from backend.tools.connectors.connectors import Connectors
from backend.tools.task_tools import TaskTools
from backend.tools.workspace.files import FolderFiles
from backend.users import idempotency
from backend.users.limits import check_rate
from common.database import Database
from common.server.rate_limit import RateLimit

IDEMPOTENCY_KEY, LAST_EVENT_ID = "Idempotency-Key", "Last-Event-ID"
_EVENT_ID = re.compile("[0-9]{1,19}")
_MAX_EVENT_ID = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`rate_limit` limits the requests of each user, `poll_limit` those that an open page repeats."""

    database: Database
    model: ChatModel
    tools: TaskTools
    folder_files: FolderFiles | None
    connectors: Connectors
    runs: RunService
    interactions: InteractionService
    chatkit: TodoChatKitServer
    calendars: Feeds
    task_list: TaskListService
    rate_limit: RateLimit
    poll_limit: RateLimit
    calendar_limit: RateLimit
    backend_url: str | None
    """Where users reach the backend; None: where the request reached it."""


async def get_services(request: Request) -> Services:
    return request.app.state.services


AppServices = Annotated[Services, Depends(get_services)]


async def get_limited_user(request: Request, services: AppServices) -> AuthenticatedUser:
    check_rate(services.rate_limit, request.state.user.user_id)
    return request.state.user


LimitedUser = Annotated[AuthenticatedUser, Depends(get_limited_user)]


async def get_owner(request: Request, user: LimitedUser, services: AppServices) -> AuthenticatedUser:
    """Raises `OwnerOnly` for a guest's request to a conversation in a directory of the owner's."""
    await check_owner(services.database, user, request.path_params["chat_id"])
    return user


async def check_owner(database: Database, user: AuthenticatedUser, chat_id: str | None) -> None:
    if user.is_guest and chat_id is not None:
        await conversations.check_owner(database, user.user_id, chat_id)


Owner = Annotated[AuthenticatedUser, Depends(get_owner)]


async def get_polling_user(request: Request, services: AppServices) -> AuthenticatedUser:
    """Counts what an open page sends every second and a half apart from other requests."""
    check_rate(services.poll_limit, request.state.user.user_id)
    return request.state.user


PollingUser = Annotated[AuthenticatedUser, Depends(get_polling_user)]


async def get_idempotency_key(
    key: Annotated[
        str | None,
        Header(alias=IDEMPOTENCY_KEY, description="The same request with the same key is done once in 24 hours."),
    ] = None,
) -> str | None:
    if key is not None:
        check_key(key, IDEMPOTENCY_KEY)
    return key


IdempotencyKey = Annotated[str | None, Depends(get_idempotency_key)]


async def get_keyed_request(request: Request, key: IdempotencyKey) -> idempotency.IdempotencyKey | None:
    """Returns the idempotency key with a hash of the request's method, path and body; None without a key."""
    if key is None:
        return None
    what = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return idempotency.IdempotencyKey(key, hashlib.sha256(what).digest())


KeyedRequest = Annotated[idempotency.IdempotencyKey | None, Depends(get_keyed_request)]


async def get_last_event_id(
    sent: Annotated[
        str | None, Header(alias=LAST_EVENT_ID, description="The `id` of the last event that you read.")
    ] = None,
) -> int:
    """Returns the number of the event after which the reader goes on; 0 for all events. Raises `InvalidRequest`."""
    if sent is None:
        return 0
    if not _EVENT_ID.fullmatch(sent) or int(sent) >= _MAX_EVENT_ID:
        raise InvalidRequest(
            f"{LAST_EVENT_ID} must be a whole number below 2^63. Send the `id` of the last event that you read."
        )
    return int(sent)


LastEventId = Annotated[int, Depends(get_last_event_id)]


async def forbid_caching(response: Response) -> None:
    response.headers["Cache-Control"] = "no-store"
