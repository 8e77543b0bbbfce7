"""The turns of this process: each in its own task, with the lease on its conversation, and exactly one outcome."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import profiles, reading, statements
from backend.conversation.errors import BackendError, Busy, LeaseLost, NotFound
from backend.conversation.items import Ending, Hidden, Item, Said, Thought
from backend.conversation.model_input import history
from backend.conversation.runs import events, inbox, leases, limits
from backend.conversation.runs.abandoned import Abandoned
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.kept import Keyed, keep_with_run
from backend.conversation.runs.leases import Outcome
from backend.conversation.runs.limits import Limits
from backend.turn import endings, outcomes, reports, versions
from backend.turn.endings import explain
from backend.turn.following.reader import Following
from backend.turn.heartbeat import Heartbeat
from backend.turn.log import Done, Event, Failed, Log, Started
from backend.turn.recorder import Calls
from backend.turn.run import Ended, Run
from backend.turn.waiting import decisions
from backend.turn.waiting.decisions import Lease, Settled
from service.clock import Clock, real, wall_time
from service.database import Pipeline, new_id, pipelined, transaction
from service.telemetry import traces

logger = logging.getLogger(__name__)

_STEPS_OF_A_READER = 5
"""Of the event loop, until who waits for the beginning has been sent it; then work may take the processor."""


class TookTooLong(BackendError):
    """This answer took too long and was ended. What was done so far is kept: say what is still to be done."""

    allow_retry = True


@dataclass(eq=False)
class Turn:
    """A running turn: what it is, what it says, and its private life.

    `on_end` runs before the outcome is written, `afterwards` when the lease is free again. The items of `closing` are
    stored with the outcome, and only then told of; `ending`, stored after them, says what kept the answer from its end.
    What is `asked` before calls are made lets the run wait instead of ending. One that is `detached` goes on when its
    reader leaves. Of its `usage`, `counted` was used before the run waited. `outcome` is how it ended, None where its
    run waits. `go_on` answers what was said meanwhile, once the answer has come to its end; `has_news` tells that the
    model may have something to read before that.
    """

    run: Run
    log: Log = field(default_factory=Log)
    closing: list[Item] = field(default_factory=list[Item])
    ending: Ending | None = None
    asked: Sequence[Approval] = ()
    on_end: AsyncExitStack = field(default_factory=AsyncExitStack)
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])
    detached: bool = False
    go_on: "Work | None" = None
    has_news: bool = False
    note_of_now: Callable[[], Hidden] = lambda: history.note("")
    usage: dict[str, Any] | None = None
    counted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stopping: Outcome | None = None
    stop_next: Outcome | None = None
    outcome: Outcome | None = None
    finishing: bool = False
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.calls = Calls(self.run.acting, self.run.message_id or self.run.id, batch=self.run.id)

    def say(self, event: Event) -> None:
        self.ending = endings.told(event) or self.ending
        self.log.append(event)

    def use(self, model: str, **counted: int) -> None:
        """Add what was used: `requests`, `input_tokens` and `output_tokens`."""
        used = self.usage or {}
        self.usage = {**used, "model": model, **{name: used.get(name, 0) + more for name, more in counted.items()}}

    def ended(self, outcome: Outcome) -> Ended:
        log = self.log
        return Ended(outcome, self.usage, self.counted, self.calls.made, log.began, log.first_event_after)


Work = Callable[[Turn], Awaitable[None]]


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
        clock: Clock = real,
        time_zone: str = "UTC",
    ) -> None:
        """`longest_seconds` is how long a turn may take.

        `clock` and `time_zone`, of people whose clients name none, are for the notes of what day and time it is.
        """
        self._engine = engine
        self._clock = clock
        self._time_zone = time_zone
        self._worker = worker
        self._limits = limits
        self._lease_seconds = lease_seconds
        self._longest_seconds = longest_seconds
        self._running: dict[str, Turn] = {}
        self.following = Following(engine, self._follow)
        self._heartbeat = Heartbeat(
            beats or engine,
            self._running,
            self.stop,
            _hear,
            self._publish,
            {events.EVENTS_CHANNEL: lambda run_ids: self.following.heard(run_ids.split())},
            every_seconds=heartbeat_seconds,
            lease_seconds=lease_seconds,
        )
        self._keeper: asyncio.Task[None] | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shutting_down = False

    async def __aenter__(self) -> "Turns":
        self._loop = asyncio.get_running_loop()
        self._keeper = asyncio.create_task(self._heartbeat.run())
        self._publishing = asyncio.create_task(self.following.publisher.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._interrupt_all()
        ending = [turn.task for turn in self._running.values() if turn.task]
        if ending:
            await asyncio.wait(ending, timeout=self._lease_seconds)
        services = [task for task in (self._keeper, self._publishing) if task]
        leftover = [*ending, *services, *self._background]
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
        keyed: Keyed | None = None,
    ) -> Turn:
        """Take the lease, store what was said and run `work` in a task of its own.

        A conversation id of None makes a new conversation. Raises `Busy` while another turn holds the lease, `NotFound`
        when there is no such conversation or message and `LimitReached` over a limit, with nothing stored. `instead_of`
        is the id of a message that is shown: it is answered again, or, where something was said, changed into that, and
        what followed it is another version from then on. `time_zone` is the one that the person's client names. One
        that is `followed` is published from its beginning. `name` is what a new conversation is called, and `keyed` the
        request that is kept with the run: where either is there already, nothing is begun (`chats.name_is_taken`,
        `kept.is_repeated`).
        """
        run = Run(
            new_id("run"),
            user_id,
            conversation_id or new_id("thr"),
            is_new=conversation_id is None,
            name=name,
            keyed=keyed,
            said=said,
            message_id=said.id if said else instead_of,
            instead_of=instead_of,
            time_zone=time_zone,
        )
        turn = Turn(run, detached=detached)
        try:
            opened = await self._open(turn, followed) or await self._open(turn, followed, take_over=True)
        except DBAPIError as error:
            if error.connection_invalidated:  # its COMMIT may have arrived all the same
                turn.ending = endings.failed(_failure(error))
                self._record_later(turn, "failed")
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
        user_id: str,
        conversation_id: str,
        run_id: str | None = None,
        reason: str | None = None,
        time_zone: str | None = None,
        detached: bool = False,
    ) -> tuple[Settled, Turn | None]:
        """Store what the person decided of a call; the last decision of a run lets `work` go on with it in a turn.

        Raises `NotFound` for what was never asked of this person in this conversation (and run), `DecidedAlready` for
        what is decided, and `LimitReached`, with nothing stored.
        """
        settled = await decisions.decide(
            self._engine,
            approval_id,
            "approved" if approved else "refused",
            reason=reason,
            user_id=user_id,
            conversation_id=conversation_id,
            run_id=run_id,
            lease=Lease(self._lease_seconds, self._worker),
            most_running=self._limits.running,
        )
        if settled.resumed is None:
            return settled, None
        turn = await self._resume(
            work, settled.approvals, settled.resumed, user_id=user_id, time_zone=time_zone, detached=detached
        )
        return settled, turn

    async def overtake(
        self, work: Work, said: Said, *, user_id: str, conversation_id: str, run_id: str | None = None
    ) -> Turn | None:
        """Refuse what the conversation's run (or this one) waits for, and let `work` go on with it in a detached turn.

        What was said instead is in its inbox. None where no run waits; raises `LimitReached`, with nothing stored.
        """
        overtaken = await decisions.overtake(
            self._engine,
            said,
            user_id=user_id,
            conversation_id=conversation_id,
            run_id=run_id,
            lease=Lease(self._lease_seconds, self._worker),
            most_running=self._limits.running,
        )
        if overtaken is None:
            return None
        asked, row = overtaken
        return await self._resume(work, asked, row, user_id=user_id, time_zone=None, detached=True)

    async def _resume(
        self,
        work: Work,
        asked: Sequence[Approval],
        row: dict[str, Any],
        *,
        user_id: str,
        time_zone: str | None,
        detached: bool,
    ) -> Turn:
        """The turn of a run that waited, of whose last step all that was `asked` is decided."""
        [(run_id, conversation_id)] = {(one.run_id, one.conversation_id) for one in asked}
        usage, message_id, followed = row.pop("usage"), row.pop("message_id"), row.pop("followed")
        run = Run(run_id, user_id, conversation_id, resumed=True, message_id=message_id, time_zone=time_zone)
        turn = Turn(run, detached=detached, usage=usage, counted=usage or {})
        self._begin(turn, row, self._clock())
        for approval in asked:
            for event in decisions.decided_events(approval):
                turn.say(event)
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
            self.stop(turn, "interrupted")

    async def _open(self, turn: Turn, followed: bool, *, take_over: bool = False) -> bool:
        """Take the lease, store the message and read what comes before it, in one transaction.

        Returns False when somebody else holds the lease. To `take_over` is to end a run that nobody leads any more, and
        to refuse what a run waits for: the person wrote something else instead.
        """
        run = turn.run
        owner, conversation = {"user_id": run.user_id}, {"conversation_id": run.conversation_id}
        now = self._clock()
        ended = sent = None
        refused: Sequence[Approval] = ()
        async with pipelined(self._engine, run.user_id) as pipeline:
            await limits.check(pipeline, self._limits, is_new=run.is_new, **owner)
            if run.is_new:
                title = history.title_from(run.said.text) if run.said else None
                await statements.send_conversation(pipeline, run.conversation_id, title=title, name=run.name, **owner)
            if take_over:
                refused = await decisions.refuse(pipeline, run.conversation_id, reason=decisions.INSTEAD, **owner)
                ended = await leases.take_over(pipeline, **conversation, **owner)
            claimed = await leases.claim(
                pipeline,
                run.id,
                lease_seconds=self._lease_seconds,
                worker=self._worker,
                message_id=run.message_id,
                followed=followed,
                **conversation,
                **owner,
            )
            if run.keyed is not None:
                await keep_with_run(pipeline, run.keyed, run_id=run.id, **owner)
            if run.time_zone is not None:
                await profiles.send_time_zone(pipeline, run.time_zone, run.acting)
            if run.said is not None or run.instead_of is not None:
                await self._send_beginning(pipeline, run, now)
                sent = await reading.send_recent(pipeline, run.conversation_id, user_id=run.user_id, run=run.id)
        if ended is not None and (taken_from := await ended.fetchone()) is not None:
            reports.turn_abandoned(Abandoned(taken_from["id"], run.conversation_id, run.user_id))
        row = await claimed.fetchone()
        if row is None:
            raise NotFound
        if row.pop("claimed") is None:
            return False
        turn.run = replace(run, recent=await sent.recent() if sent is not None else None)
        self._begin(turn, row, now)
        for approval in refused:
            for event in decisions.decided_events(approval, not_made=True):
                turn.say(event)
        if refused:
            reports.waiting_ended(refused[0].run_id, run.conversation_id, run.user_id)
        return True

    async def _send_beginning(self, pipeline: Pipeline, run: Run, now: datetime) -> None:
        """Store what was said below a note of the day and time; for another version, in place of what it replaces."""
        begun = [history.now_note(now, run.time_zone or self._time_zone), *([run.said] if run.said else [])]
        if run.instead_of is not None:
            begun += await versions.begin_instead(pipeline, run, run.instead_of)
        await statements.send_beginning(pipeline, run.conversation_id, begun, run.acting)

    def _begin(self, turn: Turn, row: dict[str, Any], now: datetime) -> None:
        """The turn holds its lease: `row` is that of its conversation, with what is kept of the person."""
        run, kept, calendar = turn.run, row.pop("time_zone"), row.pop("calendar")
        zone = run.time_zone or kept
        here = zone or self._time_zone
        turn.run = replace(run, time_zone=zone, wall_time=wall_time(now, here))
        turn.note_of_now = lambda: history.now_note(self._clock(), here, calendar=calendar)
        turn.calls.time_zone = zone
        turn.say(Started(row, run.is_new, run.said))

    def stop(self, turn: Turn, outcome: Outcome = "cancelled") -> None:
        """End the turn soon: shown text is saved, a tool in flight is recorded.

        A second stop changes nothing. One that finds the turn writing down its end is for what may follow that.
        """
        if turn.stopping is not None or turn.task is None:
            return
        if turn.finishing:
            turn.stop_next = turn.stop_next or outcome
            return
        turn.stopping = outcome
        turn.task.cancel()

    def hear(self, run_id: str) -> None:
        """Something may have been said to a run, if it is one of this process."""
        if (turn := self._running.get(run_id)) is not None:
            _hear(turn)

    def _follow(self, run_id: str) -> None:
        """Publish the run, if it is in this process."""
        if (turn := self._running.get(run_id)) is not None:
            self._publish(turn)

    def _publish(self, turn: Turn) -> None:
        self.following.publisher.follow(turn.run, turn.log, lambda: turn.outcome)

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
        run = turn.run
        with traces.span("turn", {"todo.run": run.id, "todo.conversation": run.conversation_id}):
            outcome: Outcome | None = None
            try:
                while True:
                    outcome = await self._work(turn, work)
                    if outcome == "completed" and turn.asked:
                        outcome = await self._wait(turn)
                    turn.outcome = outcome
                    if outcome is None or await self._end(turn, outcome):
                        break
                    assert turn.go_on is not None
                    work = turn.go_on
                    self._begin_again(turn)
            finally:
                if self._running.get(run.id) is turn:  # a run that waited may have gone on already
                    del self._running[run.id]
                reports.RUNNING.dec()
                turn.log.close()
                for job in turn.afterwards if outcome else ():
                    self._in_background(job())

    async def _wait(self, turn: Turn) -> Outcome | None:
        """Let the run wait for what is asked. Where it cannot, its calls are not made; then returns how it ends."""
        run = turn.run
        try:
            if await decisions.wait(self._engine, run.acting, turn.asked, usage=turn.usage):
                reports.turn_waits(run, turn.usage or {}, turn.counted, calls=len(turn.asked))
                for approval in turn.asked:
                    for event in decisions.asked_events(approval):
                        turn.say(event)
                return None
        except Exception as error:  # noqa: BLE001 - as in `_end`: the conversation must be free again
            turn.say(_failure(error))
            outcome: Outcome = "failed"
        else:
            turn.ending = endings.cut("cancelled")
            outcome = "cancelled"
        turn.closing = [decisions.output(approval, history.NOT_MADE) for approval in turn.asked]
        return outcome

    def _begin_again(self, turn: Turn) -> None:
        """What was said before is stored, and told."""
        turn.closing, turn.ending, turn.outcome, turn.finishing = [], None, None, False
        if turn.stop_next is not None:
            self.stop(turn, turn.stop_next)

    async def _work(self, turn: Turn, work: Work) -> Outcome:
        try:
            async with turn.on_end:
                try:
                    for _ in range(_STEPS_OF_A_READER):
                        await asyncio.sleep(0)
                    await self._in_time(work(turn))
                finally:
                    turn.finishing = True
        except asyncio.CancelledError:
            outcome = turn.stopping or "interrupted"
            if outcome == "interrupted":
                turn.say(Failed(endings.INTERRUPTED, allow_retry=True))
            turn.ending = endings.cut(outcome)
            return outcome
        except Exception as error:  # noqa: BLE001 - the edge of the turn: it must end with an outcome
            turn.say(_failure(error))
            return "failed"
        return "completed"

    async def _in_time(self, work: Awaitable[None]) -> None:
        limit = asyncio.timeout(self._longest_seconds)
        try:
            async with limit:
                await work
        except TimeoutError:
            if limit.expired():
                raise TookTooLong from None
            raise

    async def _end(self, turn: Turn, outcome: Outcome) -> bool:
        """Write down the end; returns False when there is more to answer: then only what was left to store is written.

        An answer that did not come to its end is followed by none: what waits stays, or is dropped with a stop.
        """
        run, ended = turn.run, turn.ended(outcome)
        left = [*turn.closing, *([turn.ending] if turn.ending else [])]
        failure: Failed | None = None
        has_ended = True
        try:
            goes_on = outcome == "completed" and turn.go_on is not None
            recorded = await outcomes.record(self._engine, run, ended, left, if_read=goes_on)
            has_ended = recorded != "unread"
            if recorded == "lost":
                turn.outcome = "interrupted"
                failure = _failure(LeaseLost())
        except Exception as error:  # noqa: BLE001 - whatever it is, the conversation must be free again
            logger.error("turn %s: its outcome %s could not be recorded yet", run.id, outcome)
            failure = _failure(error)  # whose line has the error, without the texts that a database quotes
            away = isinstance(error, OperationalError | InterfaceError | PoolTimeout | OSError)
            # What can be written later is kept for then; what is refused must not hold the conversation.
            alone = replace(ended, outcome="failed") if turn.closing else ended
            why = [turn.ending or endings.failed(failure)] if turn.closing or turn.ending else []
            if away or not await outcomes.record_alone(self._engine, run, alone, why):
                self._record_later(turn, outcome)
        for item in turn.closing:
            if not isinstance(item, Thought | Hidden):  # of a thought the log told when it ended
                turn.say(Done(item))
        if failure is not None and turn.closing:
            turn.say(failure)
        return has_ended

    def _record_later(self, turn: Turn, outcome: Outcome) -> None:
        left = [*turn.closing, *([turn.ending] if turn.ending else [])]
        within = self._lease_seconds
        self._in_background(
            outcomes.record_later(self._engine, turn.run, turn.ended(outcome), left, within_seconds=within)
        )

    def _in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _hear(turn: Turn) -> None:
    turn.has_news = True


def _failure(error: Exception) -> Failed:
    explanation = explain(error)
    return Failed(explanation.message, explanation.allow_retry)
