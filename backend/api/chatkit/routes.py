"""`POST /chatkit`: ChatKit's protocol, and plain messages, for a program that has only curl."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from chatkit.server import StreamingResult
from fastapi import APIRouter, Request, Response

from backend.api.chatkit.requests import PlainMessage, RequestContext, parse_plain_message
from backend.api.dependencies import AppServices, LimitedUser, Services, UserRoute, check_json, check_owner
from backend.api.frontends.chunks import ChunkRenderer
from backend.api.identity import AuthenticatedUser
from backend.api.interactions.render import render_question
from backend.api.messages import MessageTooLong
from backend.api.openapi import errors
from backend.api.sse import MEDIA_TYPE, EventStream, format_event
from backend.cards.approvals import as_question
from backend.conversations.conversations import check_chat_id
from backend.conversations.records import Entry, Event, ToolCall
from backend.errors import BackendError, Busy, LimitReached, Overloaded
from backend.runs.live_run import LiveRun
from backend.runs.outcomes import Ending, sentence_of, sentence_of_notice

_REQUEST = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}, "params": {"type": "object"}, "metadata": {"type": "object"}},
    "description": "A request of the protocol of openai-chatkit, such as `threads.create`.",
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"anyOf": [_REQUEST, PlainMessage.model_json_schema()]}}},
    }
}
_EVENT = {"type": "object", "required": ["data"], "properties": {"data": {"type": "string", "description": "JSON."}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The protocol's response, or its events, which also tell of limits and of failed answers.",
        "content": {"application/json": {"schema": {"type": "object"}}, MEDIA_TYPE: {"schema": _EVENT}},
    }
}

router = APIRouter(route_class=UserRoute)


class OtherUser(BackendError):
    """This user_id is not your own. Leave it out: your sign-in says who you are."""

    code, status = "other_user", 403


@router.post("/chatkit", response_class=Response, responses=_RESPONSES | errors(404, 409), openapi_extra=_BODY)
async def process(request: Request, services: AppServices, user: LimitedUser) -> Response:
    body = await request.body()
    check_json(body)
    if (message := parse_plain_message(body)) is not None:
        # Without sign-in there is one user, whatever the body says.
        is_other = message.user_id not in (None, "") and str(message.user_id) != user.user_id
        if is_other and request.app.state.identity.required:
            raise OtherUser
        return await _answer_plain_message(services, message, user)
    context = RequestContext(user.user_id, user.time_zone, user.is_guest)
    result = await services.chatkit.process(body, context)
    if isinstance(result, StreamingResult):
        return EventStream(result)
    return Response(result.json, media_type="application/json")


async def _answer_plain_message(services: Services, body: PlainMessage, user: AuthenticatedUser) -> EventStream:
    """Starts a run and streams its answer; a reader who leaves stops it, as everywhere at this address.

    Raises `NotFound`, `OwnerOnly` and `InvalidRequest`; other rejections are sent as an event.
    """
    given = body.conversation_id if body.conversation_id != "" else None
    chat_id = None if given is None else str(given)
    if chat_id is not None:
        check_chat_id(chat_id)
    await check_owner(services.database, user, chat_id)
    try:
        message = await services.interactions.create_message(user.user_id, body.message, user.time_zone)
        live = await services.runs.start_in_chat(user.user_id, chat_id, message)
    except (Busy, LimitReached, MessageTooLong, Overloaded) as error:
        return EventStream(_yield_frame(format_event({"type": "error", "message": str(error)})))
    conversation_id = live.run.conversation_id if given is None else given
    return EventStream(_stream_frames(live, {"conversation_id": conversation_id, "user_id": user.user_id}))


class _Renderer:
    """Renders the chunks of the AI SDK as frames: text, and at the end what waits for approval, and a warning."""

    def __init__(self, run_id: str, about: dict[str, Any]) -> None:
        self._chunks = ChunkRenderer(run_id)
        self._end = {**about, "interaction_id": run_id}
        self._written: str | None = None  # the part of the answer that was written last
        self._waiting: list[dict[str, Any]] = []
        self._has_failed = False

    def render(self, event: Event) -> Iterator[bytes]:
        if event.type == "approval_requested" and isinstance(call := event.record, ToolCall):
            self._waiting.append(render_question(call, event.sub_agent).model_dump())
            yield self._write(call.id, as_question(call.approval_text or ""))
        for chunk in self._chunks.render(event):
            match chunk:
                case {"type": "text-delta", "id": part, "delta": text}:
                    yield self._write(part, text)
                case {"type": "data-notice", "data": {"text": text}}:
                    self._end["notice"] = text
                case {"type": "error" | "abort"} if isinstance(event.record, Entry):
                    yield self._fail(sentence_of_notice(event.record))
                case {"type": "finish", "finishReason": "error"} if not self._has_failed and event.run is not None:
                    yield self._fail(sentence_of(event.run.error_code or event.run.status))
                case {"type": "finish", "finishReason": reason} if not self._has_failed:
                    approvals = {"approvals": self._waiting} if self._waiting else {}
                    self._end["status"] = "waiting_approval" if reason == "tool-calls" else "completed"
                    yield format_event({"type": "message_complete", **self._end, **approvals})
                case _:
                    pass

    def _write(self, part: str, text: str) -> bytes:
        before, self._written = self._written, part
        return format_event({"type": "message_delta", "content": text if before in (None, part) else f"\n\n{text}"})

    def _fail(self, sentence: str) -> bytes:
        self._has_failed = True
        return format_event({"type": "error", "message": sentence})


async def _stream_frames(live: LiveRun, about: dict[str, Any]) -> AsyncIterator[bytes]:
    renderer = _Renderer(live.run.id, about)
    try:
        async for event in live.stream.read_events():
            for frame in renderer.render(event):
                yield frame
    finally:
        live.stop(Ending("cancelled", "cancelled"))


async def _yield_frame(frame: bytes) -> AsyncIterator[bytes]:
    yield frame
