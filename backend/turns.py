"""One turn of the assistant: its own task, the lease on its conversation, stop, and exactly one outcome."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from chatkit.types import ErrorEvent, ThreadStreamEvent
from sqlalchemy import func, literal, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from backend.errors import Busy, NotFound, explain
from backend.models import Conversation, Run
from database import new_id, system_transaction, transaction

logger = logging.getLogger(__name__)

_INTERRUPTED = "The server had to end this answer. What was done so far is kept; try again in a moment."

Outcome = Literal["completed", "failed", "cancelled", "interrupted"]


@dataclass(eq=False)
class Turn:
    """A running turn; `events` ends with None. The keys of its tool calls are filled in by the recorder."""

    run_id: str
    conversation_id: str
    user_id: str
    events: asyncio.Queue[ThreadStreamEvent | None] = field(default_factory=asyncio.Queue)
    call_keys: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    tool_calls: int = 0
    on_end: AsyncExitStack = field(default_factory=AsyncExitStack)
    stopping: Outcome | None = None
    task: asyncio.Task[None] | None = None

    def emit(self, event: ThreadStreamEvent) -> None:
        self.events.put_nowait(event)


Work = Callable[[Turn], AsyncIterator[ThreadStreamEvent]]


class Turns:
    """The turns of this process. Its leases are rows of `runs`, kept by a heartbeat."""

    def __init__(self, engine: AsyncEngine, *, heartbeat_seconds: float, lease_seconds: float) -> None:
        self._engine = engine
        self._heartbeat_seconds = heartbeat_seconds
        self._lease_seconds = lease_seconds
        self._running: dict[str, Turn] = {}
        self._heart: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> "Turns":
        self._loop = asyncio.get_running_loop()
        self._heart = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_all()
        if self._heart is not None:
            self._heart.cancel()
            with suppress(asyncio.CancelledError):
                await self._heart

    async def start(self, work: Work, *, user_id: str, conversation_id: str | None) -> Turn:
        """Take the lease and run `work` in a task of its own; a conversation id of None makes a new conversation.

        Raises `Busy`, with nothing stored, while another turn holds the lease.
        """
        run_id = new_id("run")
        async with transaction(self._engine, user_id) as session:
            if conversation_id is None:
                conversation_id = new_id("thr")
                session.add(Conversation(id=conversation_id, user_id=user_id, status={"type": "active"}))
                await session.flush()
            await self._take_lease(session, run_id, user_id, conversation_id)
        turn = Turn(run_id=run_id, conversation_id=conversation_id, user_id=user_id)
        self._running[run_id] = turn
        turn.task = asyncio.create_task(self._run(turn, work), name=run_id)
        await asyncio.sleep(0)  # a task cancelled before its first step would never record its end
        return turn

    def stop(self, turn: Turn, outcome: Outcome = "cancelled") -> None:
        """End the turn soon: shown text is saved, a tool in flight is recorded. A second stop changes nothing."""
        if turn.stopping is None and turn.task is not None and not turn.task.done():
            turn.stopping = outcome
            turn.task.cancel()

    def shut_down(self) -> None:
        """Begin to end every turn; may be called from a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._interrupt_all)

    async def stop_all(self) -> None:
        """End every turn and wait until each has its outcome."""
        self._interrupt_all()
        await asyncio.gather(*(turn.task for turn in self._running.values() if turn.task))

    def _interrupt_all(self) -> None:
        for turn in list(self._running.values()):
            self.stop(turn, "interrupted")

    async def _take_lease(self, session: AsyncSession, run_id: str, user_id: str, conversation_id: str) -> None:
        owned = select(literal(run_id), col(Conversation.id), col(Conversation.user_id), literal("running")).where(
            col(Conversation.id) == conversation_id, col(Conversation.user_id) == user_id
        )
        claim = (
            insert(Run)
            .from_select(["id", "conversation_id", "user_id", "status"], owned)
            .on_conflict_do_nothing(
                index_elements=["conversation_id"], index_where=col(Run.status).in_(["running", "waiting"])
            )
            .returning(col(Run.id))
        )
        if (await session.exec(claim)).first() is not None:
            return
        stale = (
            update(Run)
            .where(
                col(Run.conversation_id) == conversation_id,
                col(Run.user_id) == user_id,
                col(Run.status) == "running",
                col(Run.heartbeat_at) < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, self._lease_seconds),
            )
            .values(status="ended", outcome="interrupted", ended_at=func.now())
            .returning(col(Run.id))
        )
        taken = (await session.exec(stale)).scalar()
        if taken is None or (await session.exec(claim)).first() is None:
            raise Busy if (await session.exec(owned)).first() else NotFound
        logger.warning("turn %s took over from %s, whose process is gone", run_id, taken)

    async def _run(self, turn: Turn, work: Work) -> None:
        outcome: Outcome = "completed"
        try:
            async with turn.on_end:
                async for event in work(turn):
                    if isinstance(event, ErrorEvent):
                        outcome = "failed"
                    turn.emit(event)
        except asyncio.CancelledError:
            outcome = turn.stopping or "interrupted"
            if outcome == "interrupted":
                turn.emit(ErrorEvent(message=_INTERRUPTED, allow_retry=True))
        except Exception as error:  # noqa: BLE001 - the edge of the turn: it must end with an outcome
            outcome = "failed"
            explanation = explain(error)
            turn.emit(ErrorEvent(message=explanation.message, allow_retry=explanation.allow_retry))
        finally:
            await self._end(turn, outcome)
            del self._running[turn.run_id]
            turn.events.put_nowait(None)

    async def _end(self, turn: Turn, outcome: Outcome) -> None:
        ended = (
            update(Run)
            .where(col(Run.id) == turn.run_id, col(Run.user_id) == turn.user_id, col(Run.status) == "running")
            .values(status="ended", outcome=outcome, ended_at=func.now(), usage=turn.usage)
            .returning(col(Run.id))
        )
        try:
            async with transaction(self._engine, turn.user_id) as session:
                recorded = (await session.exec(ended)).scalar() is not None
        except Exception:
            # The lease runs out by itself, and whoever takes it over records "interrupted".
            logger.exception("turn %s: its outcome %s could not be recorded", turn.run_id, outcome)
            return
        logger.info(
            "turn %s %s conversation=%s tool_calls=%d%s",
            turn.run_id,
            outcome if recorded else "taken over",
            turn.conversation_id,
            turn.tool_calls,
            "" if turn.tool_calls or outcome != "completed" else " answered without a tool call",
        )

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            if self._running:
                try:
                    await self._beat_once()
                except Exception:
                    logger.exception("heartbeat failed")

    async def _beat_once(self) -> None:
        beat = (
            update(Run)
            .where(col(Run.id).in_(list(self._running)), col(Run.status) == "running")
            .values(heartbeat_at=func.now())
            .returning(col(Run.id), col(Run.stop_requested))
        )
        async with system_transaction(self._engine) as session:
            alive = {row.id: row.stop_requested for row in await session.exec(beat)}
        for run_id, turn in list(self._running.items()):
            if run_id not in alive:
                self.stop(turn, "interrupted")
            elif alive[run_id]:
                self.stop(turn)
