"""A message to `POST /chatkit` that is none of ChatKit's requests, and its answer, for a program that has only curl."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Response

from backend.api.rate_limit import check_rate
from backend.api.sse import EventStream, format_event
from backend.cards.approval_card import question
from backend.conversation import chats
from backend.conversation.acting import Acting
from backend.conversation.items import Thought
from backend.doors.chatkit.body import Plain
from backend.doors.chatkit.checks import MessageTooLong
from backend.doors.starting import Starting
from backend.doors.task_list_text import TaskListText
from backend.errors import BackendError, Busy, LimitReached, Overloaded
from backend.turn import log
from backend.turn.lifecycle import endings
from backend.turn.turn import Turn
from service.workers import Pace


class SomebodyElse(BackendError):
    """This user_id is not your own. Leave it out: your sign-in says who you are."""

    code, status = "other_user", 403


@dataclass(frozen=True)
class PlainDoor:
    starting: Starting
    pace: Pace

    async def answer(self, asked: Plain, acting: Acting) -> Response:
        """The answer as it is given; who stops reading stops it, as everywhere at this path."""
        check_rate(self.pace, acting.user_id)
        if asked.user_id not in (None, "") and str(asked.user_id) != acting.user_id:
            raise SomebodyElse
        given = asked.conversation_id if asked.conversation_id != "" else None
        name = None if given is None else str(given)
        if name is not None:
            chats.check(name)
        try:
            start = self.starting.start(acting, self.starting.said(asked.message), detached=False)
            turn = await self.starting.begin(name, acting, start)
        except (Busy, LimitReached, MessageTooLong, Overloaded) as refusal:
            return EventStream(_refusal(refusal))
        about = {"conversation_id": turn.run.conversation_id if given is None else given, "user_id": acting.user_id}
        return EventStream(_frames(turn, about))


@dataclass
class _Rendering:
    """Text that grows; what was asked, and what else is to be told at the end."""

    thoughts: set[str] = field(default_factory=set[str])
    place: tuple[str, int] | None = None
    asked: list[log.Asked] = field(default_factory=list[log.Asked])
    lists: TaskListText = field(default_factory=TaskListText)
    notice: str | None = None
    failed: bool = False

    def frame(self, event: log.Event) -> bytes:
        if listed := self.lists.read(event):
            return _delta(f"\n\n{listed}" if self.place else listed)
        match event:
            case log.Begun(item=Thought(id=item_id)):
                self.thoughts.add(item_id)
            case log.Grown(item_id=item_id, part=part, text=text) if item_id not in self.thoughts:
                before, self.place = self.place, (item_id, part)
                return _delta(text if before in (None, self.place) else f"\n\n{text}")
            case log.Asked():
                self.asked.append(event)
            case log.Notice(text=text):
                self.notice = text
            case log.Failed(message=message):
                self.failed = True
                return _frame({"type": "error", "message": message})
            case _:
                pass
        return b""

    def end(self, turn: Turn, about: dict[str, int | str]) -> bytes:
        if self.failed:
            return b""
        if turn.outcome not in (None, "completed"):
            return _frame({"type": "error", "message": endings.cut(turn.outcome).sentence})
        done: dict[str, Any] = {**about, "interaction_id": turn.run.id}
        status = "waiting_approval" if self.asked else "completed"
        asked = [
            {
                "approval_id": one.approval_id,
                "agent": one.agent,
                "tool_name": one.tool,
                "tool_input": one.arguments,
                "text": one.text,
            }
            for one in self.asked
        ]
        more = {**({"approvals": asked} if asked else {}), **({"notice": self.notice} if self.notice else {})}
        words = "\n\n".join(question(one.text) for one in self.asked)
        told = _delta(f"\n\n{words}" if self.place else words) if words else b""
        return told + _frame({"type": "message_complete", **done, "status": status, **more})


async def _frames(turn: Turn, about: dict[str, int | str]) -> AsyncIterator[bytes]:
    rendering, mark = _Rendering(), log.Mark()
    try:
        while events := await turn.log.after(mark):
            if told := b"".join(map(rendering.frame, events)):
                yield told
        yield rendering.end(turn, about)
    finally:
        turn.stop()


async def _refusal(error: BackendError) -> AsyncIterator[bytes]:
    yield _frame({"type": "error", "message": str(error)})


def _delta(text: str) -> bytes:
    return _frame({"type": "message_delta", "content": text})


def _frame(event: dict[str, Any]) -> bytes:
    return format_event(json.dumps(event, ensure_ascii=False))
