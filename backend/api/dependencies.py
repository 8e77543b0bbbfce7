"""What routes need of a request: its checked body, the process's services, the authenticated user, and headers.

Dependencies are `async`, as FastAPI (0.165) calls others in a thread.
"""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json

from backend.accounts.oidc.sign_in import OidcSignIn
from backend.accounts.password_sign_in import PasswordSignIn
from backend.accounts.sessions import Sessions
from backend.accounts.tokens import PersonalTokens
from backend.alerts.service import AlertService
from backend.api.chatkit.server import TodoChatKitServer
from backend.api.errors import ScopeMissing, TooManyOpenResponses
from backend.api.identity import AuthenticatedUser
from backend.api.interactions.service import InteractionService
from backend.api.tasks.text_reader import TextReader
from backend.calendar.feed import Feeds
from backend.conversations import conversations
from backend.errors import InvalidRequest, TooManyAtOnce
from backend.model.chat_model import ChatModel
from backend.runs.service import RunService
from backend.schedules.scheduler import Scheduler
from backend.tools.connectors.connectors import Connectors
from backend.tools.task_tools import TaskTools
from backend.tools.workspace.files import FolderFiles
from backend.users.idempotency import IdempotencyKey, carry_out_once, check_key
from backend.users.limits import check_rate
from common import scopes
from common.clock import Clock
from common.database import Database
from common.fair_shares import FairQueue, QueueTimeout, Release, ShareExceeded, SimultaneousLimit
from common.server import json_body
from common.server.connection_owner import set_owner
from common.server.rate_limit import RateLimit
from english import DateOrder

IDEMPOTENCY_KEY, LAST_EVENT_ID = "Idempotency-Key", "Last-Event-ID"
_PUBLIC_VALUES = 20  # names and values of a body
_EVENT_ID = re.compile("[0-9]{1,19}")
_MAX_EVENT_ID = 2**63
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # an odd number of backslashes: the last is no character of the text
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_json(body: bytes, *, max_values: int = json_body.MAX_VALUES) -> None:
    """Raises `InvalidRequest` for a body that is too costly to parse, or has characters that are not storable."""
    if sentence := json_body.find_problem(body, max_values):
        raise InvalidRequest(sentence)
    if rb"\u0000" in body and _NUL.search(body):
        raise InvalidRequest("The text contains a NUL character. Remove it and send the text again.")
    if _SURROGATE.search(body) and _has_lone_surrogate(body):
        raise InvalidRequest(
            "The text contains half of a character, as where an emoji is cut in two. Remove it and send the text again."
        )


def _has_lone_surrogate(body: bytes) -> bool:
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):  # it is no JSON
        return False
    return False


class _JsonRequest(Request):
    async def json(self) -> Any:
        return from_json(await self.body())  # unlike Python's own parser, it rejects deep values


class UserRoute(APIRoute):
    """Authenticates the user, checks the scopes of a token, waits for the user's turn, then checks the body.

    FastAPI (0.165) would parse the body before any dependency. A turn ends before a response is sent, and so before an
    event stream begins. The body is read before the turn, as it may be slow, unless the route reads a PUT as a stream.
    """

    max_values: ClassVar[int] = json_body.MAX_VALUES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle_checked = super().get_route_handler()

        async def handle(request: Request) -> Response:
            state = request.app.state
            if self.body_field is not None:
                _declare_json(request)
                request = _JsonRequest(request.scope, request.receive)
            services: Services = state.services
            user = request.state.user = await self.authenticate(request, services)
            set_owner(request.scope, user.user_id)
            check_scope(user.sign_in.scopes, f"{request.method} {self.path_format}")
            if self.body_field is not None or request.method != "PUT":
                await request.body()
            async with take_turn(services.requests, user.user_id) as request.state.end_turn:
                if self.body_field is not None:
                    check_json(await request.body(), max_values=self.max_values)
                return await handle_checked(request)

        return handle

    async def authenticate(self, request: Request, services: "Services") -> AuthenticatedUser:
        return await request.app.state.identity.authenticate(request, services.sessions)


def check_scope(granted: frozenset[str], route: str) -> None:
    """Raises `ScopeMissing` if what needs a scope that was not granted, or has no row in the table of scopes."""
    needed = scopes.BACKEND.get(route)
    if not scopes.includes(granted, needed):
        raise ScopeMissing(scopes.explain_missing(needed))


async def require_scope(request: Request) -> None:
    """Rejects requests to a route that authenticates nobody if the table of scopes does not say that it is public."""
    route = request.scope["route"]
    if not isinstance(route, UserRoute):
        check_scope(frozenset(), f"{request.method} {route.path_format}")


class PublicRoute(APIRoute):
    """Checks the body of a request whose user is not known."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle_checked = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if self.body_field is not None:
                _declare_json(request)
                request = _JsonRequest(request.scope, request.receive)
                if body := await request.body():
                    check_json(body, max_values=_PUBLIC_VALUES)
            return await handle_checked(request)

        return handle


def _declare_json(request: Request) -> None:
    """Declares the body as JSON, as FastAPI parses nothing else. `Edge` requires that of POST and PATCH only."""
    headers = [header for header in request.scope["headers"] if header[0] != b"content-type"]
    request.scope["headers"] = [*headers, (b"content-type", b"application/json")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`rate_limit` limits the requests of each user, `poll_limit` those that an open page repeats.

    `sign_in_limit` limits the sessions that a user begins, `link_limit` the links that an address takes, and
    `provider_limit` the requests of a network for which the identity provider is asked, or the first password hashed.
    `alert_test_limit` limits the test notifications of a user, `alert_proof_limit` what devices of a network confirm.
    """

    database: Database
    alerts: AlertService
    sessions: Sessions
    passwords: PasswordSignIn | None
    """None unless AUTH_MODE is password."""
    oidc: OidcSignIn | None
    """None unless AUTH_MODE is oidc."""
    personal_tokens: PersonalTokens | None
    """None without sign-in."""
    model: ChatModel
    tools: TaskTools
    folder_files: FolderFiles | None
    connectors: Connectors
    runs: RunService
    scheduler: Scheduler
    interactions: InteractionService
    chatkit: TodoChatKitServer
    calendars: Feeds
    text_reader: TextReader
    clock: Clock
    time_zone: str
    """The zone of users who name none."""
    date_order: DateOrder | None
    rate_limit: RateLimit
    poll_limit: RateLimit
    calendar_limit: RateLimit
    sign_in_limit: RateLimit
    link_limit: RateLimit
    provider_limit: RateLimit
    alert_test_limit: RateLimit
    alert_proof_limit: RateLimit
    requests: FairQueue
    """The requests that are worked on at the same time."""
    open_responses: SimultaneousLimit
    backend_url: str | None
    """Where users reach the backend; None: where the request reached it."""


@asynccontextmanager
async def take_turn(requests: FairQueue, user_id: str) -> AsyncIterator[Release]:
    """Waits until one more request of the user may be worked on. Raises `TooManyAtOnce`."""
    try:
        release = await requests.take(user_id)
    except (ShareExceeded, QueueTimeout):
        raise TooManyAtOnce from None
    try:
        yield release
    finally:
        release()


async def get_end_of_turn(request: Request) -> Release:
    """Returns what a route calls before it waits long: the request then counts no longer as one that is worked on."""
    return request.state.end_turn


EndTurn = Annotated[Release, Depends(get_end_of_turn)]


async def get_services(request: Request) -> Services:
    return request.app.state.services


AppServices = Annotated[Services, Depends(get_services)]


@contextmanager
def hold_response(services: Services, user_id: str) -> Iterator[None]:
    """Counts one more open response of the user until the block ends. Raises `TooManyOpenResponses`."""
    try:
        release = services.open_responses.take(user_id)
    except ShareExceeded:
        raise TooManyOpenResponses from None
    try:
        yield
    finally:
        release()


async def get_limited_user(request: Request, services: AppServices) -> AsyncIterator[AuthenticatedUser]:
    """Counts the response as open until it is sent, when FastAPI ends a dependency that yields."""
    check_rate(services.rate_limit, request.state.user.user_id)
    with hold_response(services, request.state.user.user_id):
        yield request.state.user


LimitedUser = Annotated[AuthenticatedUser, Depends(get_limited_user)]


async def get_page_user(user: LimitedUser) -> AuthenticatedUser:
    """Raises `ScopeMissing` for a request with a token in place of the cookie; without sign-in there is neither."""
    if user.sign_in.can_end and not user.sign_in.is_by_page:
        raise ScopeMissing(scopes.explain_missing(scopes.ALL))
    return user


PageUser = Annotated[AuthenticatedUser, Depends(get_page_user)]
"""For what no token may do, also not one of an identity provider, such as making tokens."""


async def get_owner(request: Request, user: LimitedUser, services: AppServices) -> AuthenticatedUser:
    """Raises `OwnerOnly` for a guest's request to a conversation in a directory of the owner's."""
    await check_owner(services.database, user, request.path_params["chat_id"])
    return user


async def check_owner(database: Database, user: AuthenticatedUser, chat_id: str | None) -> None:
    if user.is_guest and chat_id is not None:
        await conversations.check_owner(database, user.user_id, chat_id)


Owner = Annotated[AuthenticatedUser, Depends(get_owner)]


async def get_polling_user(request: Request, services: AppServices) -> AsyncIterator[AuthenticatedUser]:
    """Counts what an open page sends every second and a half apart from other requests."""
    check_rate(services.poll_limit, request.state.user.user_id)
    with hold_response(services, request.state.user.user_id):
        yield request.state.user


PollingUser = Annotated[AuthenticatedUser, Depends(get_polling_user)]


async def get_idempotency_key(
    request: Request,
    key: Annotated[
        str | None,
        Header(alias=IDEMPOTENCY_KEY, description="The same request with the same key is done once, for some days."),
    ] = None,
) -> IdempotencyKey | None:
    """Returns the idempotency key with a hash of the request's method, path and body; None without a key."""
    if key is None:
        return None
    check_key(key, IDEMPOTENCY_KEY)
    what = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return IdempotencyKey(key, hashlib.sha256(what).digest())


KeyedRequest = Annotated[IdempotencyKey | None, Depends(get_idempotency_key)]
Act = Callable[[], Awaitable[BaseModel]]


async def get_once(
    request: Request, services: AppServices, user: LimitedUser, key: KeyedRequest
) -> Callable[[Act], Awaitable[Any]]:
    """Returns a function that carries out a request once for its key; a repetition gets the stored response."""
    status = request.scope["route"].status_code or 200
    return lambda act: carry_out_once(services.database, user.user_id, key, act, status)


Once = Annotated[Callable[[Act], Awaitable[Any]], Depends(get_once)]


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
