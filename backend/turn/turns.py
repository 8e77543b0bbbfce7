"""The turns of this process: each in its own task, with the lease on its conversation, and exactly one outcome."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.items import Said
from backend.conversation.runs import events, inbox, leases
from backend.conversation.runs.kept import Keyed
from backend.conversation.runs.limits import Limits
from backend.errors import Busy
from backend.model.choices import AS_SET, Choice
from backend.runs.admission import AdmissionControl
from backend.turn import reports
from backend.turn.following.reader import Following
from backend.turn.lifecycle import endings
from backend.turn.lifecycle.beginning import Beginnings
from backend.turn.lifecycle.course import Course, failure_of
from backend.turn.lifecycle.heartbeat import Heartbeat
from backend.turn.log import Event
from backend.turn.run import Run
from backend.turn.turn import Turn, Work
from backend.turn.waiting import decisions
from backend.turn.waiting.decisions import Lease, Settled
from service.clock import Clock, real
from service.database import new_id, pipelined, transaction
from service.telemetry import traces

T = TypeVar("T")


class Turns:
    """The turns of this process. Its leases are rows of `runs`, kept by a heartbeat."""

    def __init__(
        self,
        engine: AsyncEngine,
        limits: Limits,
        *,
        heartbeat_seconds: float,
        lease_seconds: float,
        longest_seconds: float = 600,
        beats: AsyncEngine | None = None,
        worker: str | None = None,
        room: AdmissionControl | None = None,
        clock: Clock = real,
        time_zone: str = "UTC",
    ) -> None:
        """`longest_seconds` is how long a turn may take.

        `clock` and `time_zone`, of people whose clients name none, are for the notes of what day and time it is.
        """
        self._engine = engine
        self._limits = limits
        self._lease_seconds = lease_seconds
        self._room = room or AdmissionControl()
        lease = Lease(lease_seconds, worker)
        self._beginnings = Beginnings(engine, limits, lease, clock, time_zone, self._room.start_seconds)
        self._course = Course(engine, lease_seconds, longest_seconds, self.in_background, self._all_published)
        self._running: dict[str, Turn] = {}
        self.following = Following(engine, self._follow)
        self._heartbeat = Heartbeat(
            beats or engine,
            self._running,
            Turn.stop,
            Turn.hear,
            self._publish,
            {events.EVENTS_CHANNEL: lambda run_ids: self.following.heard(run_ids.split())},
            every_seconds=heartbeat_seconds,
            lease_seconds=lease_seconds,
        )
        self._services: list[asyncio.Task[None]] = []
        self._background: set[asyncio.Future[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shutting_down = False

    async def __aenter__(self) -> "Turns":
        self._loop = asyncio.get_running_loop()
        kept = (self._heartbeat.run(), self.following.publisher.run(), self._room.watch())
        self._services = [asyncio.create_task(service) for service in kept]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._interrupt_all()
        ending = [turn.task for turn in self._running.values() if turn.task]
        if ending:
            await asyncio.wait(ending, timeout=self._lease_seconds)
        leftover = [*ending, *self._services, *self._background]
        for task in leftover:
            task.cancel()
        await asyncio.gather(*leftover, return_exceptions=True)
        await self.following.publisher.finish()

    async def start(
        self,
        work: Work,
        *,
        user_id: str,
        conversation_id: str | None,
        said: Said | None = None,
        instead_of: str | None = None,
        time_zone: str | None = None,
        detached: bool = False,
        followed: bool = False,
        name: str | None = None,
        left: str | None = None,
        keyed: Keyed | None = None,
        allowed: tuple[str, ...] = (),
        choice: Choice = AS_SET,
    ) -> Turn:
        """Take the lease, store what was said and run `work` in a task of its own.

        A conversation id of None makes a new conversation. Raises `Busy` while another turn holds the lease, `NotFound`
        when there is no such conversation or message, `LimitReached` over a limit and `Overloaded` where the process
        has no room for more, with nothing stored. `instead_of` is the id of a message that is shown: it is answered
        again, or, where something was said, changed into that, and what followed it is another version from then on.
        `time_zone` is the one that the person's client names. One that is `followed` is published from its beginning.
        `name` is what a new conversation is called, `left` the id of the one that it was begun in place of, and `keyed`
        the request that is kept with the run: where a name or a key is there already, nothing is begun
        (`chats.name_is_taken`, `kept.is_repeated`). The tools in `allowed` are not asked about.
        """
        run = Run(
            new_id("run"),
            user_id,
            conversation_id or new_id("thr"),
            is_new=conversation_id is None,
            name=name,
            left=left,
            keyed=keyed,
            allowed=allowed,
            said=said,
            message_id=said.id if said else instead_of,
            instead_of=instead_of,
            choice=choice,
            time_zone=time_zone,
        )
        turn = Turn(run, detached=detached)
        with self._room.admit(running=len(self._running)):
            try:
                opened = await self._beginnings.open(turn, followed=followed)
            except DBAPIError as error:
                if error.connection_invalidated:  # its COMMIT may have arrived all the same
                    turn.ending = endings.failed(failure_of(error))
                    self._course.record_later(turn, "failed")
                raise
            if not opened:
                raise Busy
            await self._launch(turn, work, followed=followed)
        return turn

    async def decide(
        self,
        work: Work,
        approval_id: str,
        *,
        approved: bool,
        always: bool = False,
        user_id: str,
        conversation_id: str,
        run_id: str | None = None,
        reason: str | None = None,
        time_zone: str | None = None,
        detached: bool = False,
    ) -> tuple[Settled, Turn | None]:
        """Store what the person decided of a call; the last decision of a run lets `work` go on with it in a turn.

        What is approved for `always` is not asked again in the conversation, if it may be allowed so.

        Raises `NotFound` for what was never asked of this person in this conversation (and run), `DecidedAlready` for
        what is decided, and `LimitReached`, with nothing stored.
        """
        settled = await decisions.decide(
            self._engine,
            approval_id,
            "approved" if approved else "refused",
            reason=reason,
            always=always,
            user_id=user_id,
            conversation_id=conversation_id,
            run_id=run_id,
            lease=self._beginnings.lease,
            most_running=self._limits.running,
        )
        if settled.resumed is None:
            return settled, None
        turn = await self._resume(
            work, settled, settled.resumed, user_id=user_id, time_zone=time_zone, detached=detached
        )
        return settled, turn

    async def overtake(
        self, work: Work, said: Said, *, user_id: str, conversation_id: str, run_id: str | None = None
    ) -> Turn | None:
        """Refuse what the conversation's run (or this one) waits for, and let `work` go on with it in a detached turn.

        What was said instead is in its inbox. None where no run waits; raises `LimitReached`, with nothing stored.
        """
        settled = await decisions.overtake(
            self._engine,
            said,
            user_id=user_id,
            conversation_id=conversation_id,
            run_id=run_id,
            lease=self._beginnings.lease,
            most_running=self._limits.running,
        )
        if settled is None or settled.resumed is None:
            return None
        return await self._resume(work, settled, settled.resumed, user_id=user_id, time_zone=None, detached=True)

    async def _resume(
        self,
        work: Work,
        settled: Settled,
        row: dict[str, Any],
        *,
        user_id: str,
        time_zone: str | None,
        detached: bool,
    ) -> Turn:
        """The turn of a run that waited, of whose last step all is decided."""
        [(run_id, conversation_id)] = {(one.run_id, one.conversation_id) for one in settled.asked}
        usage, message_id, followed, told = (row.pop(name) for name in ("usage", "message_id", "followed", "told"))
        used = usage or {}
        run = Run(
            run_id,
            user_id,
            conversation_id,
            told=told,
            message_id=message_id,
            choice=Choice(used.get("model"), used.get("temperature")),
            time_zone=time_zone,
        )
        turn = Turn(run, detached=detached, usage=usage, counted=used)
        turn.unmade = settled.asked  # until the calls are taken up
        self._beginnings.begin(turn, row, self._beginnings.clock())
        for approval in settled.decided:
            for event in decisions.decided_events(approval):
                turn.say(event)
        turn.log.begin_here()
        await self._launch(turn, work, followed=followed)
        return turn

    async def _launch(self, turn: Turn, work: Work, *, followed: bool) -> None:
        self._running[turn.run.id] = turn
        if followed:
            self._publish(turn)
        reports.RUNNING.inc()
        turn.task = asyncio.create_task(self._run(turn, work), name=turn.run.id)
        await asyncio.sleep(0)  # a task cancelled before its first step would never record its end
        if self._shutting_down:
            turn.stop("interrupted")

    def hear(self, run_id: str) -> None:
        """Something may have been said to a run, if it is one of this process."""
        if (turn := self._running.get(run_id)) is not None:
            turn.hear()

    def _follow(self, run_id: str) -> None:
        """Publish the run, if it is in this process."""
        if (turn := self._running.get(run_id)) is not None:
            self._publish(turn)

    def _publish(self, turn: Turn) -> None:
        self.following.publisher.follow(turn.run, turn.log, lambda: turn.outcome)

    def _all_published(self, turn: Turn, then: Sequence[Event]) -> Sequence[tuple[int, str]]:
        self._publish(turn)
        return self.following.publisher.all_of(turn.log, then)

    async def current(self, conversation_id: str, *, user_id: str) -> str | None:
        """The id of the conversation's run that is running or waiting, in whichever process."""
        async with pipelined(self._engine, user_id) as pipeline:
            found = await leases.current(pipeline, user_id=user_id, conversation_id=conversation_id)
        row = await found.fetchone()
        return row["id"] if row else None

    async def request_stop(self, run_id: str, *, conversation_id: str, user_id: str) -> bool:
        """Ask a run to stop, in whichever process it runs; one that waits ends at once. False if it has ended."""
        return await self._ask_to_stop(conversation_id, user_id, run_id) is not None

    async def stop_conversation(self, conversation_id: str, *, user_id: str) -> bool:
        """Stop the conversation's turn, in whichever process it runs, and wait until it has ended.

        One that waits for its person ends at once, and what it asked is refused. Returns False when there was none.
        Waits for no longer than a dead process keeps its lease.
        """
        run_id = await self._ask_to_stop(conversation_id, user_id)
        if run_id is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(self._lease_seconds):
                while await self._still_running(run_id, user_id):
                    await asyncio.sleep(0.02)
        return True

    async def _ask_to_stop(self, conversation_id: str, user_id: str, run_id: str | None = None) -> str | None:
        """The id of the conversation's run, which is asked to stop; one that waited has ended."""
        whose = {"user_id": user_id, "conversation_id": conversation_id, "run_id": run_id}
        for _ in range(2):  # one that waited may have gone on just now
            async with transaction(self._engine, user_id) as session:
                stopped = await leases.request_stop(session, **whose)
            if stopped is not None:
                return stopped
            async with pipelined(self._engine, user_id) as pipeline:
                refused = await decisions.refuse(pipeline, reason=decisions.STOPPED, **whose)
                if refused:
                    await inbox.drop_all(pipeline, **{**whose, "run_id": refused[0].run_id})
            if refused:
                reports.waiting_ended(refused[0].run_id, conversation_id, user_id)
                return refused[0].run_id
        return None

    async def finish_background_work(self) -> None:
        """Wait for what turns have left to be done after their outcome."""
        await asyncio.gather(*self._background)

    @property
    def count(self) -> int:
        """How many run now."""
        return len(self._running)

    def shut_down(self) -> None:
        """Begin to end every turn; may be called from a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._interrupt_all)

    def _interrupt_all(self) -> None:
        self._shutting_down = True
        self.following.leave()
        for turn in list(self._running.values()):
            turn.stop("interrupted")

    async def _still_running(self, run_id: str, user_id: str) -> bool:
        async with transaction(self._engine, user_id) as session:
            return await leases.is_running(session, run_id, user_id=user_id)

    async def _run(self, turn: Turn, work: Work) -> None:
        run = turn.run
        with traces.span("turn", {"todo.run": run.id, "todo.conversation": run.conversation_id}):
            try:
                await self._course.run(turn, work)
            finally:
                if self._running.get(run.id) is turn:  # a run that waited may have gone on already
                    del self._running[run.id]
                reports.RUNNING.dec()
                turn.log.close()
                turn.task = None  # its context holds the turn: neither would be freed before a collection
                for job in turn.afterwards if turn.outcome else ():
                    self.in_background(job())

    def in_background(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Do it to its end, whoever waits for that, unless the process ends."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
