"""How a turn begins: with the lease on its conversation, what was said and what came before it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import reading, statements
from backend.conversation.model_input import history
from backend.conversation.runs import leases, limits
from backend.conversation.runs.abandoned import Abandoned
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.kept import keep_with_run
from backend.conversation.runs.limits import Limits
from backend.errors import NotFound, Overloaded
from backend.turn import reports, versions
from backend.turn.log import Replaced, Started
from backend.turn.run import Run
from backend.turn.turn import Turn
from backend.turn.waiting import decisions
from backend.turn.waiting.decisions import Lease
from service.clock import Clock, wall_time
from service.database import Pipeline, pipelined


@dataclass(frozen=True)
class Beginnings:
    """`clock` and `time_zone`, of people whose clients name none, are for the notes of what day and time it is."""

    engine: AsyncEngine
    limits: Limits
    lease: Lease
    clock: Clock
    time_zone: str
    begun_within: float | None = None
    """Seconds that a connection of the pool is waited for; None for as long as the pool does."""

    async def open(self, turn: Turn, *, followed: bool) -> bool:
        """Take the lease, store the message and read what comes before it; False when somebody else holds the lease.

        Raises `Overloaded` where no connection is free soon.
        """
        try:
            return await self._try(turn, followed=followed, take_over=False) or await self._try(
                turn, followed=followed, take_over=True
            )
        except PoolTimeout as error:
            raise Overloaded from error

    async def _try(self, turn: Turn, *, followed: bool, take_over: bool) -> bool:
        """In one transaction. To `take_over` is to end a run that nobody leads any more, and to refuse what a run waits
        for: the person wrote something else instead.
        """
        run = turn.run
        owner, conversation = {"user_id": run.user_id}, {"conversation_id": run.conversation_id}
        now = self.clock()
        ended = sent = None
        refused: Sequence[Approval] = ()
        async with pipelined(self.engine, run.user_id, within=self.begun_within) as pipeline:
            await limits.check(pipeline, self.limits, is_new=run.is_new, **owner)
            if run.is_new:
                title = history.title_from(run.said.text) if run.said else None
                made = {"title": title, "name": run.name, "left": run.left}
                await statements.send_conversation(pipeline, run.conversation_id, **made, **owner)
            if take_over:
                await leases.lock_conversation(pipeline, **conversation, **owner)
                refused = await decisions.refuse(pipeline, run.conversation_id, reason=decisions.INSTEAD, **owner)
                ended = await leases.take_over(pipeline, **conversation, **owner)
            claimed = await leases.claim(
                pipeline,
                run.id,
                lease_seconds=self.lease.seconds,
                worker=self.lease.worker,
                message_id=run.message_id,
                followed=followed,
                **conversation,
                **owner,
            )
            await keep_with_run(pipeline, run.keyed, run_id=run.id, **owner)
            if run.time_zone is not None:
                await statements.send_time_zone(pipeline, run.time_zone, run.acting)
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
        turn.sent = sent  # taken apart when its reader has been told that it has begun
        self.begin(turn, row, now)
        for approval in refused:  # that they are refused is told by their own run
            turn.say(Replaced(decisions.shown(approval, not_made=True)))
        if refused:
            reports.waiting_ended(refused[0].run_id, run.conversation_id, run.user_id)
        return True

    async def _send_beginning(self, pipeline: Pipeline, run: Run, now: datetime) -> None:
        """Store what was said below a note of the day and time; for another version, in place of what it replaces."""
        begun = [history.now_note(now, run.time_zone or self.time_zone), *([run.said] if run.said else [])]
        if run.instead_of is not None:
            begun += await versions.begin_instead(pipeline, run, run.instead_of)
        await statements.send_beginning(pipeline, run.conversation_id, begun, run.acting)

    def begin(self, turn: Turn, row: dict[str, Any], now: datetime) -> None:
        """The turn holds its lease: `row` is that of its conversation, with what is kept of the person."""
        run, kept, calendar = turn.run, row.pop("time_zone"), row.pop("calendar")
        turn.memory = row.pop("memory") or ""
        zone = run.time_zone or kept
        here = zone or self.time_zone
        turn.run = replace(run, time_zone=zone, wall_time=wall_time(now, here))
        turn.note_of_now = lambda: history.now_note(self.clock(), here, calendar=calendar)
        turn.calls.time_zone = zone
        turn.say(Started(row, run.is_new, run.said))
