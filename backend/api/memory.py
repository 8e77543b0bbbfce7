"""`/memory`: what the user wants remembered, which they alone write."""

import re

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, StrictStr

from backend.api.dependencies import AppServices, LimitedUser, Once, Services, UserRoute, check_owner
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.context import memory
from backend.conversations import conversations
from backend.errors import BackendError, InvalidRequest
from backend.users import profiles

_TAG = re.compile('(?:W/)?"([^"]*)"')


class NoVersion(BackendError):
    """Send the ETag of the memory that you read as If-Match, so that no change is lost. * replaces any version."""

    code, status = "no_version", 428


class MemoryChanged(BackendError):
    """The memory has changed since you read it. Read it again and send your change with its new ETag."""

    code, status = "memory_changed", 412


class MemoryTooLong(BackendError):
    """The memory can have up to 65,536 bytes of text. Shorten it."""

    code, status = "memory_too_long", 413


class MemoryBody(RequestBody):
    text: StrictStr


class AddedMemory(MemoryBody):
    text: StrictStr = Field(min_length=1)
    chat_id: str | None = None


class ShownMemory(BaseModel):
    text: str
    lines: int
    lines_read: int


_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "The ETag of the memory that you read, or `*` for any.",
    "schema": {"type": "string"},
}

router = APIRouter(route_class=UserRoute)


@router.get("/memory")
async def get_memory(services: AppServices, user: LimitedUser, response: Response) -> ShownMemory:
    return _show(await profiles.load_memory(services.database, user.user_id), services, response)


@router.put("/memory", responses=errors(412, 428), openapi_extra={"parameters": [_IF_MATCH]})
async def set_memory(
    request: Request, services: AppServices, user: LimitedUser, body: MemoryBody, response: Response
) -> ShownMemory:
    versions = _parse_if_match(request.headers.getlist("if-match"))
    _check_size(body)
    if not await profiles.set_memory(services.database, user.user_id, body.text, versions=versions):
        raise MemoryChanged
    return _show(body.text, services, response)


@router.post("/memory", responses=errors(404, 409))
async def add_to_memory(services: AppServices, user: LimitedUser, body: AddedMemory, once: Once) -> ShownMemory:
    """Adds lines at the end; with `chat_id`, the log of that chat has a command `/memory`."""

    async def add() -> ShownMemory:
        _check_size(body)
        await check_owner(services.database, user, body.chat_id)
        chat = await services.interactions.find(user.user_id, body.chat_id) if body.chat_id is not None else None
        text = await profiles.add_to_memory(services.database, user.user_id, body.text, most=memory.MAX_BYTES)
        if text is None:
            raise MemoryTooLong
        shown = _render(text, services)
        if chat is not None:
            result = shown.model_dump(exclude={"text"})
            await conversations.add_command(services.database, user.user_id, chat.id, f"/memory {body.text}", result)
        return shown

    return await once(add)


def _check_size(body: MemoryBody) -> None:
    if len(body.text.encode()) > memory.MAX_BYTES:
        raise MemoryTooLong


def _parse_if_match(headers: list[str]) -> list[str] | None:
    """Returns the versions that may be replaced; None for any.

    Raises `NoVersion` without the header, and `InvalidRequest`. A tag is of the text itself, so a weak one is as good:
    proxies that compress a response make it weak.
    """
    if not headers:
        raise NoVersion
    header = ",".join(headers).strip()
    if header == "*":
        return None
    tags = [_TAG.fullmatch(part.strip()) for part in header.split(",")]
    if not all(tags):
        raise InvalidRequest('If-Match must be * or ETags as the server sent them, like "0123abcd".')
    return [tag[1] for tag in tags if tag]


def _show(text: str, services: Services, response: Response) -> ShownMemory:
    response.headers["ETag"] = f'"{profiles.version_of(text)}"'
    response.headers["Cache-Control"] = "no-store"
    return _render(text, services)


def _render(text: str, services: Services) -> ShownMemory:
    found = memory.render_memory(text, tokens=services.model.endpoint.profile.history_tokens)
    return ShownMemory(text=text, lines=found.lines, lines_read=found.lines_read)
