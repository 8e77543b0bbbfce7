"""What a request of the run API asks for: its body, its headers, who asks."""

import hashlib
import re
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from backend.conversation.acting import Acting
from backend.conversation.errors import InvalidRequest
from backend.conversation.runs.kept import Keyed
from backend.doors.chatkit import body
from backend.doors.chatkit.stream import check_pace
from backend.doors.identity import Identity
from backend.doors.parts import parts_of
from backend.doors.time_zone import time_zone_of
from service.workers import json_body

KEY, LAST_EVENT = "Idempotency-Key", "Last-Event-ID"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_MOST_EVENTS = 2**63

Asked = TypeVar("Asked", bound=BaseModel)


async def asked_by(request: Request, identity: Identity) -> Acting:
    """Who asks; raises `Unauthorized`, and `LimitReached` for one who asks too fast."""
    parts = parts_of(request)
    user_id = await identity.user_of(request, parts.engine)
    check_pace(parts.pace, user_id)
    return Acting(user_id, time_zone=time_zone_of(request))


async def read(request: Request, shape: type[Asked], *, most: int = json_body.MOST_VALUES) -> Asked:
    """The request's body in this shape, of at most so many values.

    Raises `InvalidRequest` with a sentence that says what is wrong with it.
    """
    given = await request.body()
    body.check(given, most=most)
    try:
        return shape.model_validate_json(given)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] == "json_invalid":
            raise InvalidRequest("The body is not JSON: send an object with the fields of this request.") from None
        place = ".".join(str(part) for part in problem["loc"])
        where = f" at {place}" if place else ""
        raise InvalidRequest(f"The request is not valid{where}: {problem['msg']}.") from None


def key_of(request: Request) -> str | None:
    """The key that makes a request harmless when it is sent again; raises `InvalidRequest` for what can be none."""
    key = request.headers.get(KEY)
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidRequest(f"An {KEY} has 1 to 255 visible characters of ASCII: send another.")
    return key


async def keyed(request: Request) -> Keyed | None:
    """The request under its key, if it has one; it is the same for the same path and the same body."""
    key = key_of(request)
    if key is None:
        return None
    what = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return Keyed(key, hashlib.sha256(what).digest())


def last_event(request: Request) -> int:
    """The number of the event after which the reader goes on; 0 for all of them."""
    given = request.headers.get(LAST_EVENT, "0")
    if not (given.isascii() and given.isdigit() and len(given) <= 19 and int(given) < _MOST_EVENTS):
        raise InvalidRequest(
            f"{LAST_EVENT} is a whole number below 2^63: send the `id` of the last event that you read."
        )
    return int(given)
