"""The answer to a ChatKit request: JSON, or a stream of events that begins only when it is known that there is one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from chatkit.types import (
    ChatKitReq,
    ClientEffectEvent,
    ErrorEvent,
    ProgressUpdateEvent,
    StreamingReq,
    ThreadItem,
    ThreadItemReplacedEvent,
    ThreadsAddUserMessageReq,
    ThreadsCustomActionReq,
    ThreadStreamEvent,
    is_streaming_req,
)
from fastapi import Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from backend.api.rate_limit import check_rate
from backend.api.sse import EventStream, format_event
from backend.cards.approval_card import APPROVE, REFUSE
from backend.conversation.acting import Acting
from backend.conversation.rows import as_shown
from backend.conversation.runs.inbox import Mode
from backend.doors.chatkit import own
from backend.doors.chatkit.checks import MessageTooLong
from backend.doors.chatkit.rendering import Rendering
from backend.doors.chatkit.server import TodoChatServer
from backend.errors import BackendError, Busy, LimitReached, Overloaded
from backend.turn.following.places import Place
from backend.turn.inbox import NoRun
from backend.turn.lifecycle.endings import explain
from backend.turn.log import Event, Mark
from backend.turn.turn import Turn
from backend.turn.turns import Turns
from backend.turn.waiting import decisions
from backend.turn.waiting.decisions import DecidedAlready
from service.workers import Pace

Events = AsyncGenerator[Sequence[ThreadStreamEvent], None]
"""Those that can be told at the same time are sent together."""
INTERACTION = "todo.interaction"
_TRIES = 3  # an answer may begin or end between two looks
SLOW = ProgressUpdateEvent(icon="clock", text="This is taking longer than usual…")


@dataclass(frozen=True)
class ChatKitDoor:
    """How a request to `POST /chatkit` is answered."""

    server: TodoChatServer
    turns: Turns
    pace: Pace
    slow_seconds: float

    async def answer(self, request: ChatKitReq, acting: Acting) -> Response:
        if not is_streaming_req(request):
            check_rate(self.pace, acting.user_id)
            await self.server.check(request, acting)
            return Response(await self.server.answer(request, acting), media_type="application/json")
        beginning = asyncio.create_task(self._begin(request, acting))
        begun, _ = await asyncio.wait({beginning}, timeout=self.slow_seconds)
        return _event_stream(beginning.result() if begun else _late(beginning))

    async def _begin(self, request: StreamingReq, acting: Acting) -> Events:
        """The events of a request that can be answered; raises for one that cannot, where that is known before them."""
        try:
            check_rate(self.pace, acting.user_id)
            await self.server.check(request, acting)
            if isinstance(request, ThreadsCustomActionReq):
                if request.params.action.type in (APPROVE, REFUSE):
                    return await self._decide(request, acting)
                if request.params.action.type == own.FOLLOW:
                    return self._follow(request, self.turns.following.place(acting.user_id))
                if request.params.action.type not in own.TURNS:
                    return self._act(request, acting)
            if isinstance(request, ThreadsAddUserMessageReq) and (mode := own.while_running(request)) is not None:
                return await self._say_meanwhile(request, mode, acting)
            return self._read(await self.server.start(request, acting))
        except DecidedAlready as refusal:
            return _refusal(refusal, as_shown(refusal.approval.conversation_id, decisions.shown(refusal.approval)))
        except (Busy, LimitReached, MessageTooLong, Overloaded) as refusal:
            return _refusal(refusal)

    async def _decide(self, request: ThreadsCustomActionReq, acting: Acting) -> Events:
        """The rest of the turn; what the card says by now, while there are others to decide."""
        settled, turn = await self.server.decide(request, acting)
        if turn is not None:
            return self._read(turn)
        [decided] = settled.decided
        return _given([ThreadItemReplacedEvent(item=as_shown(decided.conversation_id, decisions.shown(decided)))])

    async def _say_meanwhile(self, request: ThreadsAddUserMessageReq, mode: Mode, acting: Acting) -> Events:
        """Of a message that the answer which is running reads, that it waits; else, its own answer."""
        for _ in range(_TRIES):
            with suppress(NoRun):
                return _given(await self.server.queue(request, mode, acting))
            with suppress(Busy):
                return self._read(await self.server.start(request, acting))
        raise Busy

    async def _act(self, request: ThreadsCustomActionReq, acting: Acting) -> Events:
        """Carries a click out whole, even if its reader leaves: the task, its cards and what the model is told change
        together.
        """
        acts = self.turns.in_background(self.server.act(request.params, acting))
        acted, _ = await asyncio.wait({acts}, timeout=self.slow_seconds)
        if not acted:
            yield [SLOW]
        yield await asyncio.shield(acts)

    async def _read(self, turn: Turn) -> Events:
        """The turn's log, rendered; `SLOW` once wherever nothing came for so long."""
        rendering = Rendering(turn.run.conversation_id)
        mark = Mark()
        known = not turn.detached  # one whose reader was not told which it is could not be stopped by them any more
        try:
            if turn.detached:
                yield [_interaction(turn.run.id)]
                known = True
            while True:
                try:
                    async with asyncio.timeout(self.slow_seconds):
                        events = await turn.log.after(mark)
                except TimeoutError:
                    yield [SLOW]
                    events = await turn.log.after(mark)
                if not events:
                    return
                rendered = (one for event in events for one in rendering.events(event))
                for first in rendered:  # which waits for no other
                    yield [first]
                    break
                if others := [*rendered]:
                    yield others
        finally:
            if not (turn.detached and known):
                turn.stop()  # a reader who leaves is ChatKit's way to say stop

    async def _follow(self, request: ThreadsCustomActionReq, place: Place) -> Events:
        """What the run of the conversation says, from its beginning to where it ends or waits; nothing without one."""
        thread_id = request.params.thread_id
        run_id = await self.turns.current(thread_id, user_id=place.user_id)
        if run_id is None:
            return
        yield [_interaction(run_id)]
        rendering = Rendering(thread_id)
        told = self.turns.following.events(run_id, place.user_id, while_waiting=False, place=place)
        async with aclosing(told):
            async for numbered in told:
                if told := [*rendering.events(numbered.event)]:
                    yield told


def _interaction(run_id: str) -> ClientEffectEvent:
    """Tells the page which run it is: to stop it, as it goes on when the page is left."""
    return ClientEffectEvent(name=INTERACTION, data={"interaction_id": run_id})


async def _late(beginning: asyncio.Task[Events]) -> Events:
    """The events of a request whose answer had to begin before it was known whether it can be answered."""
    yield [SLOW]
    try:
        events = await asyncio.shield(beginning)
    except asyncio.CancelledError:
        beginning.add_done_callback(lambda _: asyncio.ensure_future(_leave(beginning)))
        raise
    except Exception as error:  # noqa: BLE001 - the edge of the stream: the person is told
        explanation = explain(error)
        yield [ErrorEvent(message=explanation.message, allow_retry=explanation.allow_retry)]
        return
    async with aclosing(events):
        async for told in events:
            yield told


async def _leave(beginning: asyncio.Task[Events]) -> None:
    """Who asked is gone: begin to read, so that the end of the reading stops the turn."""
    with suppress(BackendError, DBAPIError, PoolTimeout, asyncio.CancelledError):
        async with aclosing(beginning.result()) as events:
            async for _ in events:
                break


def _refusal(error: BackendError, now: ThreadItem | None = None) -> Events:
    """Why it was refused, after what is shown `now`, where that is why."""
    shown = [] if now is None else [ThreadItemReplacedEvent(item=now)]
    return _given([*shown, ErrorEvent(message=str(error), allow_retry=error.allow_retry)])


async def _given(events: Sequence[ThreadStreamEvent]) -> Events:
    yield events


def reader() -> Callable[[Event], None]:
    """Renders what it is given, for nobody."""
    rendering = Rendering("thr_0")

    def read(event: Event) -> None:
        for one in rendering.events(event):
            _frame(one)

    return read


def _frame(event: ThreadStreamEvent) -> bytes:
    return format_event(event.model_dump_json(by_alias=True, exclude_none=True, context={"exclude_metadata": True}))


def _event_stream(events: Events) -> EventStream:
    async def frames() -> AsyncIterator[bytes]:
        async with aclosing(events):
            async for told in events:
                yield b"".join(map(_frame, told))

    return EventStream(frames())
