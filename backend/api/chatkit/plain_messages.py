"""Plain messages to `POST /chatkit`, which are no requests of ChatKit's, for a program that has only curl."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from chatkit import types as ck

from backend.api.chatkit.requests import PlainMessage
from backend.api.interactions.service import InteractionService
from backend.api.messages import MessageTooLong, check_content, create_message
from backend.api.sse import EventStream, format_event
from backend.cards.approvals import as_question
from backend.cards.task_lists import render_list_text
from backend.conversations.conversations import check_chat_id
from backend.conversations.records import Entry, Event, Record, ToolCall
from backend.errors import BackendError, Busy, LimitReached, Overloaded
from backend.runs.live_run import LiveRun
from backend.runs.outcomes import CUT_OFF_CODES, Ending, sentence_of, sentence_of_notice
from common.ids import new_id


class OtherUser(BackendError):
    """This user_id is not your own. Leave it out: your sign-in says who you are."""

    code, status = "other_user", 403


async def answer_plain_message(
    interactions: InteractionService, body: PlainMessage, user_id: str, *, time_zone: str | None
) -> EventStream:
    """Starts a run and streams its answer; a reader who leaves stops it, as everywhere at this address.

    Raises `NotFound` and `InvalidRequest`; other rejections are sent as an event.
    """
    given = body.conversation_id if body.conversation_id != "" else None
    chat_id = None if given is None else str(given)
    if chat_id is not None:
        check_chat_id(chat_id)
    content = [ck.UserMessageTextContent(text=body.message)]
    try:
        check_content(content, most_chars=interactions.message_chars)
        message = create_message(new_id("msg"), content, moment=interactions.runs.moment(time_zone))
        live = await interactions.runs.start_in_chat(user_id, chat_id, message, is_detached=False)
    except (Busy, LimitReached, MessageTooLong, Overloaded) as error:
        return EventStream(_one(_frame({"type": "error", "message": str(error)})))
    conversation_id = live.run.conversation_id if given is None else given
    return EventStream(_frames(live, {"conversation_id": conversation_id, "user_id": user_id}))


@dataclass(slots=True)
class _Renderer:
    """The text of an answer as it grows, and what its end tells: calls that wait for approval, and a warning."""

    about: dict[str, Any]
    written: str | None = None  # the message that was written last
    waiting: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    records: list[Record] = field(default_factory=list[Record])  # for the list of tasks that cards would show
    warning: str | None = None
    has_failed: bool = False

    def render(self, event: Event) -> bytes:
        if not event.is_of_sub_agent and event.type in ("call_completed", "entry_completed"):
            assert isinstance(event.record, Entry | ToolCall)
            self.records.append(event.record)
        match event.type, event.record:
            case "entry_delta", Entry(kind="assistant_message") as entry if not event.is_of_sub_agent:
                before, self.written = self.written, entry.id
                return _delta(event.text if before in (None, entry.id) else f"\n\n{event.text}")
            case "approval_requested", ToolCall() as call:
                return self._ask(call, event)
            case "entry_completed", Entry(kind="notice") as notice if not event.is_of_sub_agent:
                return self._notice(notice)
            case "run_waiting" | "run_ended", _:
                return self._end(event)
            case _:
                return b""

    def _ask(self, call: ToolCall, event: Event) -> bytes:
        asked = {"tool_name": call.tool, "tool_input": call.arguments, "text": call.approval_text}
        self.waiting.append({"approval_id": call.id, "agent": event.sub_agent, **asked})
        text, before, self.written = as_question(call.approval_text or ""), self.written, call.id
        return _delta(f"\n\n{text}" if before else text)

    def _notice(self, notice: Entry) -> bytes:
        code = (notice.details or {})["code"]
        if code in CUT_OFF_CODES:
            self.warning = sentence_of_notice(notice)
            return b""
        self.has_failed = True
        return _frame({"type": "error", "message": sentence_of_notice(notice)})

    def _end(self, event: Event) -> bytes:
        assert event.run is not None
        if self.has_failed:
            return b""
        if event.run.status not in ("completed", "waiting"):
            return _frame({"type": "error", "message": sentence_of(event.run.error_code or event.run.status)})
        listed = render_list_text(self.records) if event.type == "run_ended" else ""
        text = _delta(f"\n\n{listed}" if self.written else listed) if listed else b""
        end = {**self.about, "interaction_id": event.run.id}
        end["status"] = "waiting_approval" if event.run.status == "waiting" else "completed"
        if self.waiting:
            end["approvals"] = self.waiting
        if self.warning:
            end["notice"] = self.warning
        return text + _frame({"type": "message_complete", **end})


async def _frames(live: LiveRun, about: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yields the frames of a run; stops the run when its reader leaves."""
    renderer = _Renderer(about)
    try:
        async for event in live.stream.read_events():
            if frame := renderer.render(event):
                yield frame
    finally:
        live.stop(Ending("cancelled", "cancelled"))


async def _one(frame: bytes) -> AsyncIterator[bytes]:
    yield frame


def _delta(text: str) -> bytes:
    return _frame({"type": "message_delta", "content": text})


def _frame(event: dict[str, Any]) -> bytes:
    return format_event(json.dumps(event, ensure_ascii=False))
