"""`GET` and `PUT /memory`: what a person wants remembered, which they alone write."""

import re

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, StrictStr

from backend.conversation import profiles
from backend.conversation.errors import BackendError, InvalidRequest
from backend.conversation.model_input import memory
from backend.doors.identity import Identity
from backend.doors.parts import Parts, parts_of
from backend.doors.runs.asked import asked_by, read

_TAG = re.compile(r'\s*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)')  # RFC 9110, section 8.8.3


class NoVersion(BackendError):
    """Send as If-Match the ETag of the memory that you read, so that nobody's change is lost; * replaces any."""


class Changed(BackendError):
    """Your memory was changed meanwhile: read it again, and send your change with the ETag that it has now."""


class MemoryTooLong(BackendError):
    """A memory has at most 65,536 bytes of text: shorten it."""


class Memory(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: StrictStr


def remembered(identity: Identity) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/memory")
    async def get(request: Request) -> Response:
        acting, parts = await asked_by(request, identity), parts_of(request)
        return _shown(await profiles.memory(parts.engine, acting.user_id), parts)

    @router.put("/memory")
    async def put(request: Request) -> Response:
        acting, parts = await asked_by(request, identity), parts_of(request)
        text, versions = (await read(request, Memory)).text, _versions(request.headers.getlist("if-match"))
        if len(text.encode()) > memory.LONGEST:
            raise MemoryTooLong
        if not await profiles.set_memory(parts.engine, acting.user_id, text, versions=versions):
            raise Changed
        return _shown(text, parts)

    return router


def _versions(given: list[str]) -> list[str] | None:
    """The versions that may be replaced; None for any.

    A tag is of the text itself, so a weak one is as good: proxies that pack an answer make it weak.
    """
    if not given:
        raise NoVersion
    header = ",".join(given).strip()
    if header == "*":
        return None
    tags, position = list[str](), 0
    while position < len(header) or not tags:
        found = _TAG.match(header, position)  # a search would take the square of the header's length
        if found is None:
            raise InvalidRequest('If-Match is * or ETags as they were sent, such as "0123abcd".')
        tags.append(found[1].removeprefix("W/")[1:-1])
        position = found.end()
    return tags


def _shown(text: str, parts: Parts) -> Response:
    """With how much of it the assistant reads."""
    found = memory.read(text, tokens=parts.model.endpoint.profile.history_tokens)
    headers = {"ETag": f'"{profiles.version_of(text)}"', "Cache-Control": "no-store"}
    return JSONResponse({"text": text, "lines": found.lines, "lines_read": found.lines_read}, headers=headers)
