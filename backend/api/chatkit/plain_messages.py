"""Plain messages to `POST /chatkit`, for a program that has only curl, and their answers."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from backend.api.chatkit.events import explain_error
from backend.api.chatkit.requests import PlainMessage
from backend.api.dependencies import Services, check_owner
from backend.api.event_renderer import EventRenderer
from backend.api.identity import AuthenticatedUser
from backend.api.interactions.events import Question, changes_of
from backend.api.messages import MessageTooLong
from backend.api.sse import EventStream, format_event
from backend.cards.approvals import as_question
from backend.cards.task_lists import render_list_text
from backend.conversations.conversations import check_chat_id
from backend.conversations.records import Entry, Event, Record, Run, ToolCall
from backend.errors import Busy, LimitReached, Overloaded
from backend.runs.live_run import LiveRun
from backend.runs.outcomes import CUT_OFF_CODES, Ending, sentence_of, sentence_of_notice
from common.changes import CORRECTION

Frame = dict[str, Any]


async def answer_plain_message(services: Services, body: PlainMessage, user: AuthenticatedUser) -> EventStream:
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
        return EventStream(_yield_frame(_render_error(str(error))))
    conversation_id = live.run.conversation_id if given is None else given
    renderer = PlainRenderer(
        {"conversation_id": conversation_id, "user_id": user.user_id, "interaction_id": live.run.id}
    )
    return EventStream(_stream(services, live, renderer, user))


async def _stream(
    services: Services, live: LiveRun, renderer: "PlainRenderer", user: AuthenticatedUser
) -> AsyncIterator[bytes]:
    events = services.runs.streams.follow(live.run.user_id, live.run.id, while_waiting=False)
    try:
        async for frame in renderer.encode_stream(events):
            yield frame
    finally:
        if not user.sign_in.is_over:
            live.stop(Ending("cancelled", "cancelled"))


async def _yield_frame(frame: Frame) -> AsyncIterator[bytes]:
    yield format_event(frame)


def _render_error(sentence: str) -> Frame:
    return {"type": "error", "message": sentence}


class PlainRenderer(EventRenderer[Frame]):
    """Renders an answer as text; the last frame has the fields of `about`, its changes, pending approvals, and a
    warning.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        super().__init__()
        self._end = about
        self._written: str | None = None  # the part of the answer that was written last
        self._waiting: list[dict[str, Any]] = []
        self._records: list[Record] = []
        self._has_failed = False

    async def handle(self, event: Event) -> Iterable[Frame]:
        match event.type, event.record:
            case "approval_requested", ToolCall() as call:
                self._waiting.append(Question.of_call(call, event.sub_agent).model_dump())
                return self._write(call.id, as_question(call.approval_text or ""))
            case _ if event.sub_agent is not None:
                return ()
            case "entry_delta" | "entry_completed", Entry(kind="assistant_message") as entry:
                text = self.take_text(entry, event)
                self._records += [entry] if event.type == "entry_completed" else []
                return self._write(entry.id, text)
            case "entry_withdrawn", Entry(id=part) if part == self._written:
                return self._write(f"{part}:correction", CORRECTION)
            case "entry_completed", Entry(kind="notice", details=details) as notice if details:
                return self._handle_notice(notice, details["code"])
            case ("entry_completed", Entry() as record) | ("call_completed", ToolCall() as record):
                if not (isinstance(record, ToolCall) and record.state == "rejected"):
                    self._records.append(record)
                return ()
            case "run_waiting", _:
                return [self._complete("waiting_approval", event.run)]
            case "run_ended", _ if event.run is not None and not self._has_failed:
                text = await render_list_text(self._records) if event.run.status == "completed" else ""
                return self._handle_end(event.run, text)
            case _:
                return ()

    def _handle_notice(self, notice: Entry, code: str) -> Iterator[Frame]:
        if code in CUT_OFF_CODES:
            before = self._end.get("notice")
            self._end["notice"] = " ".join(filter(None, [before, sentence_of_notice(notice)]))
        else:
            self._has_failed = True
            yield _render_error(sentence_of_notice(notice))

    def _handle_end(self, run: Run, list_text: str) -> Iterator[Frame]:
        if run.status != "completed":
            yield _render_error(sentence_of(run.error_code or run.status))
            return
        yield from self._write(f"{run.id}:list", list_text)
        yield self._complete("completed", run)

    def _complete(self, status: str, run: Run | None) -> Frame:
        approvals = {"approvals": self._waiting} if self._waiting else {}
        return {"type": "message_complete", **self._end, "status": status, **changes_of(run), **approvals}

    def _write(self, part: str, text: str) -> Iterator[Frame]:
        if text:
            before, self._written = self._written, part
            yield {"type": "message_delta", "content": text if before in (None, part) else f"\n\n{text}"}

    def on_error(self, error: Exception) -> Iterable[Frame]:
        return [_render_error(explain_error(error).message or "")]

    def encode(self, rendered: Frame) -> bytes:
        return format_event(rendered)
