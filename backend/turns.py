"""One turn of the assistant: its own task, the lease on its conversation, stop, and exactly one outcome."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from chatkit.types import (
    ErrorEvent,
    ThreadMetadata,
    ThreadStreamEvent,
    UserMessageInput,
    UserMessageItem,
)
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend import history, leases, outcomes, reading, reports, statements
from backend.errors import Busy, LeaseLost, NotFound, explain
from backend.heartbeat import Heartbeat
from backend.identity import RequestContext
from backend.leases import Limits, Outcome
from backend.reading import Recent
from backend.rows import to_thread
from database import new_id, pipelined, transaction, utc_now
from telemetry import traces

logger = logging.getLogger(__name__)

_INTERRUPTED = "The server had to end this answer. What was done so far is kept; try again in a moment."


@dataclass(eq=False)
class Turn:
    """A running turn.

    `events` ends with None. `message` was stored when it began, and what the model is to read came with it as `recent`.
    `on_end` runs before the outcome is written, `afterwards` when the lease is free again. The items of `closing` are
    stored with the outcome, and only then told of.
    """

    run_id: str
    thread: ThreadMetadata
    user_id: str
    is_new: bool = False  # this turn made the conversation
    message: UserMessageItem | None = None
    recent: Recent | None = None
    closing: list[ThreadStreamEvent] = field(default_factory=list)
    events: asyncio.Queue[ThreadStreamEvent | None] = field(default_factory=asyncio.Queue)
    on_end: AsyncExitStack = field(default_factory=AsyncExitStack)
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    call_keys: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    tool_calls: int = 0
    began: float = field(default_factory=time.perf_counter)
    first_event_after: float | None = None  # seconds
    stopping: Outcome | None = None
    finishing: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def conversation_id(self) -> str:
        return self.thread.id

    def emit(self, event: ThreadStreamEvent) -> None:
        if self.first_event_after is None:
            self.first_event_after = time.perf_counter() - self.began
        self.events.put_nowait(event)


Work = Callable[[Turn], AsyncIterator[ThreadStreamEvent]]


class Turns:
    """The turns of this process. Its leases are rows of `runs`, kept by a heartbeat."""

    def __init__(self, engine: AsyncEngine, limits: Limits, *, heartbeat_seconds: float, lease_seconds: float) -> None:
        self._engine = engine
        self._limits = limits
        self._lease_seconds = lease_seconds
        self._running: dict[str, Turn] = {}
        self._heartbeat = Heartbeat(
            engine, self._running.keys(), self._stop_run, every_seconds=heartbeat_seconds, lease_seconds=lease_seconds
        )
        self._keeper: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shutting_down = False

    async def __aenter__(self) -> "Turns":
        self._loop = asyncio.get_running_loop()
        self._keeper = asyncio.create_task(self._heartbeat.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._interrupt_all()
        ending = [turn.task for turn in self._running.values() if turn.task]
        if ending:
            await asyncio.wait(ending, timeout=self._lease_seconds)
        leftover = [*ending, *([self._keeper] if self._keeper else []), *self._background]
        for task in leftover:
            task.cancel()
        await asyncio.gather(*leftover, return_exceptions=True)

    async def start(
        self, work: Work, *, user_id: str, conversation_id: str | None, said: UserMessageInput | None = None
    ) -> Turn:
        """Take the lease, store what was said and run `work` in a task of its own.

        A conversation id of None makes a new conversation. Raises `Busy` while another turn holds the lease, `NotFound`
        when there is no such conversation and `LimitReached` over a limit, with nothing stored.
        """
        thread = ThreadMetadata(id=conversation_id or new_id("thr"), created_at=utc_now())
        turn = Turn(new_id("run"), thread, user_id, is_new=conversation_id is None)
        if said is not None:
            turn.message = _message(said, thread.id)
            thread.title = history.title_from(history.user_text(turn.message))
        try:
            opened = await self._open(turn) or await self._open(turn, take_over=True)
        except DBAPIError as error:
            if error.connection_invalidated:  # its COMMIT may have arrived all the same
                self._record_later(turn, "failed")
            raise
        if not opened:
            raise Busy
        self._running[turn.run_id] = turn
        reports.RUNNING.inc()
        turn.task = asyncio.create_task(self._run(turn, work), name=turn.run_id)
        await asyncio.sleep(0)  # a task cancelled before its first step would never record its end
        if self._shutting_down:
            self.stop(turn, "interrupted")
        return turn

    async def _open(self, turn: Turn, *, take_over: bool = False) -> bool:
        """Take the lease, store the message and read what comes before it, in one transaction.

        Returns False when somebody else holds the lease.
        """
        owner = {"user_id": turn.user_id}
        ended = sent = None
        async with pipelined(self._engine, turn.user_id) as pipeline:
            await leases.check(pipeline, self._limits, **owner)
            if turn.is_new:
                await statements.send_conversation(pipeline, turn.conversation_id, title=turn.thread.title, **owner)
            if take_over:
                seconds = self._lease_seconds
                ended = await leases.take_over(
                    pipeline, conversation_id=turn.conversation_id, lease_seconds=seconds, **owner
                )
            claimed = await leases.claim(pipeline, turn.run_id, conversation_id=turn.conversation_id, **owner)
            if turn.message is not None:
                context = RequestContext(turn.user_id, turn)
                await statements.send_items(pipeline, turn.conversation_id, [turn.message], context)
                sent = await reading.send_recent(pipeline, turn.conversation_id, user_id=turn.user_id)
        if ended is not None and (taken_from := await ended.fetchone()) is not None:
            reports.turn_abandoned(taken_from["id"], conversation_id=turn.conversation_id, **owner)
        row = await claimed.fetchone()
        if row is None:
            raise NotFound
        if row.pop("claimed") is None:
            return False
        turn.thread = to_thread(row)
        turn.recent = await sent.recent() if sent is not None else None
        return True

    def stop(self, turn: Turn, outcome: Outcome = "cancelled") -> None:
        """End the turn soon: shown text is saved, a tool in flight is recorded.

        A second stop changes nothing, nor does one that finds the turn writing down its end.
        """
        if turn.stopping is None and turn.task is not None and not turn.finishing:
            turn.stopping = outcome
            turn.task.cancel()

    def _stop_run(self, run_id: str, outcome: Outcome) -> None:
        if (turn := self._running.get(run_id)) is not None:
            self.stop(turn, outcome)

    async def stop_conversation(self, conversation_id: str, *, user_id: str) -> bool:
        """Stop the conversation's turn, in whichever process it runs, and wait until it has ended.

        Returns False when no turn was running. Waits for no longer than a dead process keeps its lease.
        """
        async with transaction(self._engine, user_id) as session:
            run_id = await leases.request_stop(session, user_id=user_id, conversation_id=conversation_id)
        if run_id is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(self._lease_seconds):
                while await self._still_running(run_id, user_id):
                    await asyncio.sleep(0.02)
        return True

    async def finish_background_work(self) -> None:
        """Wait for what turns have left to be done after their outcome."""
        await asyncio.gather(*self._background)

    def shut_down(self) -> None:
        """Begin to end every turn; may be called from a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._interrupt_all)

    def _interrupt_all(self) -> None:
        self._shutting_down = True
        for turn in list(self._running.values()):
            self.stop(turn, "interrupted")

    async def _still_running(self, run_id: str, user_id: str) -> bool:
        async with transaction(self._engine, user_id) as session:
            return await leases.is_running(session, run_id, user_id=user_id)

    async def _run(self, turn: Turn, work: Work) -> None:
        with traces.span("turn", {"todo.run": turn.run_id, "todo.conversation": turn.conversation_id}):
            await self._work(turn, work)

    async def _work(self, turn: Turn, work: Work) -> None:
        outcome: Outcome = "completed"
        try:
            async with turn.on_end:
                try:
                    async for event in work(turn):
                        if isinstance(event, ErrorEvent):
                            outcome = "failed"
                        turn.emit(event)
                finally:
                    turn.finishing = True
        except asyncio.CancelledError:
            outcome = turn.stopping or "interrupted"
            if outcome == "interrupted":
                turn.emit(ErrorEvent(message=_INTERRUPTED, allow_retry=True))
        except Exception as error:  # noqa: BLE001 - the edge of the turn: it must end with an outcome
            explanation = explain(error)
            if outcome != "failed":  # the person was told of nothing yet
                turn.emit(ErrorEvent(message=explanation.message, allow_retry=explanation.allow_retry))
            outcome = "failed"
        finally:
            await self._end(turn, outcome)
            del self._running[turn.run_id]
            reports.RUNNING.dec()
            turn.events.put_nowait(None)
            for job in turn.afterwards:
                self._in_background(job())

    async def _end(self, turn: Turn, outcome: Outcome) -> None:
        problem = None
        try:
            if not await outcomes.record(self._engine, turn, outcome):
                problem = explain(LeaseLost())
        except Exception as error:  # noqa: BLE001 - whatever it is, the conversation must be free again
            logger.error("turn %s: its outcome %s could not be recorded yet", turn.run_id, outcome)
            problem = explain(error)  # whose line has the error, without the texts that a database quotes
            away = isinstance(error, OperationalError | InterfaceError | PoolTimeout | OSError)
            # What can be written later is kept for then; what is refused must not hold the conversation.
            refused = bool(turn.closing) and not away and await outcomes.record_failure(self._engine, turn)
            if not refused:
                self._record_later(turn, outcome)
        for event in turn.closing:
            turn.emit(event)
        if turn.closing and problem is not None:
            turn.emit(ErrorEvent(message=problem.message, allow_retry=problem.allow_retry))

    def _record_later(self, turn: Turn, outcome: Outcome) -> None:
        self._in_background(outcomes.record_later(self._engine, turn, outcome, within_seconds=self._lease_seconds))

    def _in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _message(said: UserMessageInput, thread_id: str) -> UserMessageItem:
    return UserMessageItem(
        id=new_id("msg"),
        thread_id=thread_id,
        created_at=utc_now(),
        content=said.content,
        quoted_text=said.quoted_text,
        inference_options=said.inference_options,
    )
