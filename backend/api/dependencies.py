"""What routes need of a request: the process's services, the user who sends it, and its headers.

They are `async`, as FastAPI (0.165) calls other dependencies in a thread.
"""

import hashlib
import logging
import re
from functools import lru_cache
from typing import Annotated

from fastapi import Depends, Header, Request, Response

from backend.api.edge import TIME_ZONE_HEADER
from backend.api.identity import AuthenticatedUser
from backend.api.rate_limit import check_rate
from backend.api.services import AppServices
from backend.conversations import conversations
from backend.errors import InvalidRequest
from backend.users import idempotency
from common.clock import find_zone
from common.database import Database

IDEMPOTENCY_KEY, LAST_EVENT_ID = "Idempotency-Key", "Last-Event-ID"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_MAX_EVENT_ID = 2**63
_CHARS_IN_A_LINE = 20

logger = logging.getLogger(__name__)


async def authenticate(request: Request) -> str:
    """Returns the user's id; the local user's with AUTH_MODE=none.

    Raises `Unauthorized`, also for an invalid bearer token beside a valid cookie, and `ForeignOrigin` for a cookie sent
    from another site.
    """
    return await request.app.state.identity.find_user_id(request, request.app.state.services.database)


UserId = Annotated[str, Depends(authenticate)]


async def get_user(request: Request, user_id: UserId) -> AuthenticatedUser:
    """Returns the user, with the time zone that the request names; raises as `authenticate`."""
    identity = request.app.state.identity
    is_owner = identity.is_owner(request)
    is_guest = identity.has_owner and not is_owner
    return AuthenticatedUser(user_id, time_zone=_find_time_zone(request), is_owner=is_owner, is_guest=is_guest)


User = Annotated[AuthenticatedUser, Depends(get_user)]


def _find_time_zone(request: Request) -> str | None:
    """Returns the time zone that the request names; None if there is none or it is unknown, which is logged."""
    name = request.headers.get(TIME_ZONE_HEADER, "")
    if name and find_zone(name) is None:
        _warn_of_time_zone(name[:_CHARS_IN_A_LINE])
        return None
    return name or None


@lru_cache(maxsize=100)  # a client that is wrong is so with each request
def _warn_of_time_zone(beginning: str) -> None:
    """Logs an unknown time zone, each only once."""
    logger.warning("a request's %s is not known and not used; it begins %r", TIME_ZONE_HEADER, beginning)


async def get_limited_user(user: User, services: AppServices) -> AuthenticatedUser:
    """Returns the user and counts the request. Raises `LimitReached` for a user who sends too many."""
    check_rate(services.rate_limit, user.user_id)
    return user


LimitedUser = Annotated[AuthenticatedUser, Depends(get_limited_user)]


async def get_owner(request: Request, user: LimitedUser, services: AppServices) -> AuthenticatedUser:
    """Returns the user of a request that changes the conversation in its path, or reads its files.

    Raises `OwnerOnly`.
    """
    await check_owner(services.database, user, request.path_params["chat_id"])
    return user


async def check_owner(database: Database, user: AuthenticatedUser, chat_id: str | None) -> None:
    """Raises `OwnerOnly` for a guest, where a conversation works in a directory of the owner's."""
    if user.is_guest and chat_id is not None:
        await conversations.check_owner(database, user.user_id, chat_id)


Owner = Annotated[AuthenticatedUser, Depends(get_owner)]


async def get_polling_user(user: User, services: AppServices) -> AuthenticatedUser:
    """Returns the user of a request that an open page sends every second and a half; these are counted apart.

    Raises `LimitReached`.
    """
    check_rate(services.poll_limit, user.user_id)
    return user


PollingUser = Annotated[AuthenticatedUser, Depends(get_polling_user)]


async def get_idempotency_key(
    key: Annotated[
        str | None,
        Header(alias=IDEMPOTENCY_KEY, description="The same request with the same key is done once in 24 hours."),
    ] = None,
) -> str | None:
    """Returns the idempotency key in the header. Raises `InvalidRequest` for an invalid one."""
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidRequest(f"{IDEMPOTENCY_KEY} must have 1 to 255 visible ASCII characters.")
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
    digits = "0" if sent is None else sent
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and int(digits) < _MAX_EVENT_ID):
        raise InvalidRequest(
            f"{LAST_EVENT_ID} must be a whole number below 2^63. Send the `id` of the last event that you read."
        )
    return int(digits)


LastEventId = Annotated[int, Depends(get_last_event_id)]


async def forbid_caching(response: Response) -> None:
    """Sets the header by which nobody stores the response."""
    response.headers["Cache-Control"] = "no-store"
