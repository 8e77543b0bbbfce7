"""What `/chat` does: the turns of the run API, answered whole or as they go on."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from backend.api.frontends.ai_sdk import render_chunk
from backend.api.frontends.request import ChatRequest as Asked
from backend.api.frontends.schemas import Answered, ApprovalDecision
from backend.api.sse import EventStream, format_event
from backend.conversation import chats
from backend.conversation.acting import Acting
from backend.conversation.agents import story
from backend.conversation.runs import approvals, interactions
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.kept import Keyed
from backend.doors.chat import told
from backend.doors.chat.rendering import Rendering
from backend.doors.runs import once
from backend.doors.starting import Starting
from backend.errors import Busy, NotFound
from backend.turn.following.places import Place
from backend.turn.turn import Turn
from backend.turn.waiting.decisions import DecidedAlready
from service.database import pipelined

_DONE = format_event("[DONE]")
_HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_FAILED = "The answer was interrupted. Try again."
_STATUS = {"failed": 502, "interrupted": 503}  # of those that end so


@dataclass(frozen=True)
class Begun:
    """The run that a request has begun, or goes on with; its `turn`, where it was begun by this very request."""

    run_id: str
    turn: Turn | None
    decided: Collection[str] = frozenset()


@dataclass(frozen=True)
class ChatDoor:
    starting: Starting

    async def answer(self, asked: Asked, acting: Acting, keyed: Keyed | None) -> Answered | Response:
        """What came of it, once it has ended or waits. It goes on if nobody waits for that."""
        begun = await self._begun(asked, acting, keyed)
        found = await self._ended(begun, acting)
        shape = told.answered(found, asked.thread)
        if shape.status != "failed" or shape.answer in told.STAND_INS:
            return shape
        content = {"error": shape.reason or _FAILED, **shape.model_dump(by_alias=True)}
        return JSONResponse(content, status_code=_STATUS[found.outcome or "failed"])

    async def stream(self, asked: Asked, acting: Acting, keyed: Keyed | None, *, sdk: int) -> Response:
        """The same as it goes on. Who stops reading stops nothing but this."""
        place = self.starting.turns.following.place(acting.user_id)
        begun = await self._begun(asked, acting, keyed, followed=True)
        return self._streamed(begun, asked.thread, place, sdk)

    async def resume(self, thread: str, acting: Acting, *, sdk: int) -> Response:
        """The answer that a chat is writing or waits in, from its beginning; 204 where there is none."""
        chats.check(thread)
        chat = await self._find(thread, acting)
        if chat is None or chat.leaf_run_id is None:
            return Response(status_code=204)
        run = await interactions.find(self.starting.engine, chat, chat.leaf_run_id, user_id=acting.user_id)
        if run.status == "ended":
            return Response(status_code=204)
        place = self.starting.turns.following.place(acting.user_id)
        return self._streamed(Begun(run.id, None), thread, place, sdk)

    def _streamed(self, begun: Begun, thread: str | None, place: Place, sdk: int) -> EventStream:
        return EventStream(self._frames(begun, thread, place, sdk), _HEADERS)

    async def _ended(self, begun: Begun, acting: Acting) -> story.Story:
        if begun.turn is not None and begun.turn.task is not None:
            await asyncio.wait({begun.turn.task})
        found = await self._load(begun, acting)
        if found.status == "running":
            events = self.starting.turns.following.events(begun.run_id, acting.user_id, while_waiting=False)
            async with aclosing(events):
                async for _ in events:
                    pass
            found = await self._load(begun, acting)
        if found.status == "running":  # this process ends, and the turn is in another one
            raise Busy
        return found

    async def _load(self, begun: Begun, acting: Acting) -> story.Story:
        return await story.load(self.starting.engine, begun.run_id, user_id=acting.user_id)

    async def _frames(self, begun: Begun, thread: str | None, place: Place, sdk: int) -> AsyncIterator[bytes]:
        """From the beginning, or from where all that was decided is told of."""
        rendering = Rendering(begun.run_id, thread, decided=begun.decided)
        events = self.starting.turns.following.events(begun.run_id, place.user_id, while_waiting=False, place=place)
        with suppress(DBAPIError, PoolTimeout, OSError, NotFound):  # it goes on, or is deleted: `lose` says what next
            async with aclosing(events):
                async for numbered in events:
                    for chunk in rendering.chunks(numbered.event):
                        yield _event(render_chunk(chunk, sdk))
                    if rendering.is_over:
                        break
        if not rendering.is_over:
            for chunk in rendering.lose():
                yield _event(render_chunk(chunk, sdk))
        yield _DONE

    async def _begun(self, asked: Asked, acting: Acting, keyed: Keyed | None, *, followed: bool = False) -> Begun:
        if asked.decisions:
            assert asked.thread is not None, "`asked` lets no other through"
            return await self._decide(asked.thread, asked.decisions, acting)
        turns: list[Turn] = []

        async def begin() -> Turn:
            turns.append(await self._begin(asked, acting, keyed, followed=followed))
            return turns[0]

        run_id = await once.begun(self.starting.engine, keyed, begin, user_id=acting.user_id)
        return Begun(run_id, turns[0] if turns else None)

    async def _begin(self, asked: Asked, acting: Acting, keyed: Keyed | None, *, followed: bool) -> Turn:
        said = self.starting.said(asked.text)
        if asked.again and asked.thread is not None and (chat := await self._find(asked.thread, acting)) is not None:
            message_id = await chats.last_said(self.starting.engine, chat.id, said.text, user_id=acting.user_id)
            if message_id is not None:
                start = self.starting.start(acting, None, keyed, followed=followed)
                return await start(conversation_id=chat.id, instead_of=message_id)
        start = self.starting.start(acting, said, keyed, followed=followed)
        return await self.starting.begin(asked.thread, acting, start)

    async def _find(self, thread: str, acting: Acting) -> chats.Chat | None:
        return await chats.find(self.starting.engine, thread, user_id=acting.user_id)

    async def _decide(self, thread: str, decisions: Collection[ApprovalDecision], acting: Acting) -> Begun:
        """Each decision is of a call that one run of this chat has asked for; what was sent before changes nothing."""
        chat = await self.starting.chat(thread, acting)
        asked = await self._asked(chat.id, decisions, acting)
        run_id, turn = asked[0][1].run_id, None
        for decision, approval in asked:
            if approval.decision is None:
                _, turn = await self.starting.turns.decide(
                    self.starting.answers.resume,
                    approval.id,
                    approved=decision.approved,
                    reason=decision.reason,
                    user_id=acting.user_id,
                    conversation_id=chat.id,
                    run_id=run_id,
                    time_zone=acting.time_zone,
                    detached=True,
                )
        return Begun(run_id, turn, frozenset(one.id for one in decisions))

    async def _asked(
        self, conversation_id: str, decisions: Collection[ApprovalDecision], acting: Acting
    ) -> list[tuple[ApprovalDecision, Approval]]:
        """Raises `NotFound` for what was not asked there, and `DecidedAlready` for what was decided otherwise."""
        first = next(iter(decisions))
        async with pipelined(self.starting.engine, acting.user_id) as pipeline:
            found = await approvals.beside(pipeline, first.id, conversation_id=conversation_id, user_id=acting.user_id)
        there = {one.id: one for one in await approvals.read(found)}
        pairs: list[tuple[ApprovalDecision, Approval]] = []
        for decision in decisions:
            if (approval := there.get(decision.id)) is None:
                raise NotFound
            if approval.decision not in (None, "approved" if decision.approved else "refused"):
                raise DecidedAlready(approval)
            pairs.append((decision, approval))
        return pairs


def _event(chunk: dict[str, Any]) -> bytes:
    return format_event(json.dumps(chunk, ensure_ascii=False))
