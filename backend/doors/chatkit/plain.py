"""A message to `POST /chatkit` that is none of ChatKit's requests, and its answer, for a program that has only curl."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Response

from backend.conversation import chats
from backend.conversation.acting import Acting
from backend.conversation.errors import BackendError, Busy, LimitReached, Overloaded
from backend.conversation.items import Thought
from backend.doors.chatkit.body import Plain
from backend.doors.chatkit.checks import MessageTooLong
from backend.doors.chatkit.stream import check_pace
from backend.doors.starting import Starting
from backend.doors.streamed import Streamed
from backend.tools.consent.card import question
from backend.turn import log
from backend.turn.lifecycle import endings
from backend.turn.turn import Turn
from service.workers import Pace

_PULSE_SECONDS = 10.0
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class SomebodyElse(BackendError):
    """This user_id is not yours: leave it out, for it is told from your sign-in."""


@dataclass(frozen=True)
class PlainDoor:
    starting: Starting
    pace: Pace

    async def answer(self, asked: Plain, acting: Acting) -> Response:
        """The answer as it is given; who stops reading stops it, as everywhere at this path."""
        check_pace(self.pace, acting.user_id)
        if asked.user_id is not None and str(asked.user_id) != acting.user_id:
            raise SomebodyElse
        given = asked.conversation_id if asked.conversation_id != "" else None
        name = None if given is None else str(given)
        if name is not None:
            chats.check(name)
        try:
            start = self.starting.start(acting, self.starting.said(asked.message), detached=False)
            turn = await self.starting.begin(name, acting, start)
        except (Busy, LimitReached, MessageTooLong, Overloaded) as refusal:
            return _event_stream(_refusal(refusal))
        return _event_stream(_frames(turn, turn.run.conversation_id if given is None else given))


@dataclass
class _Rendering:
    """Text that grows; what was asked, and what else is to be told at the end."""

    thoughts: set[str] = field(default_factory=set[str])
    place: tuple[str, int] | None = None
    asked: list[log.Asked] = field(default_factory=list[log.Asked])
    notice: str | None = None
    failed: bool = False

    def frame(self, event: log.Event) -> bytes:
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

    def end(self, turn: Turn, conversation_id: int | str) -> bytes:
        if self.failed:
            return b""
        if turn.outcome not in (None, "completed"):
            return _frame({"type": "error", "message": endings.cut(turn.outcome).sentence})
        done: dict[str, Any] = {"conversation_id": conversation_id, "interaction_id": turn.run.id}
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


async def _frames(turn: Turn, conversation_id: int | str) -> AsyncIterator[bytes]:
    rendering, mark = _Rendering(), log.Mark()
    try:
        while True:
            try:
                async with asyncio.timeout(_PULSE_SECONDS):
                    events = await turn.log.after(mark)
            except TimeoutError:
                yield b": ping\n\n"
                continue
            if not events:
                break
            if told := b"".join(map(rendering.frame, events)):
                yield told
        yield rendering.end(turn, conversation_id)
    finally:
        turn.stop()


async def _refusal(error: BackendError) -> AsyncIterator[bytes]:
    yield _frame({"type": "error", "message": str(error)})


def _delta(text: str) -> bytes:
    return _frame({"type": "message_delta", "content": text})


def _frame(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _event_stream(frames: AsyncIterator[bytes]) -> Streamed:
    return Streamed(frames, media_type="text/event-stream", headers=_HEADERS)
