"""How a run ended, and what it had left to store: written in one transaction, now or when the database is back."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import statements
from backend.conversation.acting import Acting
from backend.conversation.items import Item
from backend.conversation.runs import inbox, leases
from backend.conversation.runs.abandoned import Abandoned
from backend.conversation.runs.approvals import Approval
from backend.turn import reports
from backend.turn.lifecycle import endings
from backend.turn.log import Event
from backend.turn.run import Ended, Run
from backend.turn.waiting import decisions
from backend.turn.waiting.agents import Stopped
from service.database import pipelined, system_transaction, transaction

Recorded = Literal["ended", "unread", "lost"]


def _nobody(event: Event) -> None:
    """Is told of it: the turn is over."""


async def record(
    engine: AsyncEngine,
    run: Run,
    ended: Ended,
    items: Sequence[Item],
    *,
    unmade: Sequence[Approval] = (),
    tell: Callable[[Event], None] = _nobody,
    if_read: bool = False,
) -> Recorded:
    """Write the outcome, and with it the items; "lost" when the lease is.

    The calls that are `unmade` have outputs that say so, and the agents that asked for some are ended, as is told. With
    `if_read`, a run to which something was said that nobody read goes on: only the items are written, "unread".
    """
    held = None
    stopped: Sequence[Stopped] = ()
    where = {"user_id": run.user_id, "conversation_id": run.conversation_id}
    async with pipelined(engine, run.user_id) as pipeline:
        if unmade:
            left, stopped = await decisions.leave_unmade(pipeline, run.conversation_id, unmade, run.acting)
            items = [*left, *items]
        if if_read and items:
            held = await statements.send_last_items(pipeline, run.conversation_id, items, run.acting)
        elif if_read:
            held = await inbox.lock(pipeline, run.id, user_id=run.user_id)
        elif items:
            await statements.send_items(pipeline, run.conversation_id, items, run.acting)
        end = inbox.end_if_empty if if_read else leases.end
        done = await end(pipeline, run.id, user_id=run.user_id, outcome=ended.outcome, usage=ended.usage)
        if ended.outcome == "cancelled":
            await inbox.drop_all(pipeline, run_id=run.id, **where)
    if await done.fetchone() is not None:
        for one in stopped:
            for event in one.events():
                tell(event)
        reports.turn_ended(run, ended)
        return "ended"
    return "unread" if held is not None and await held.fetchone() is not None else "lost"


async def record_alone(engine: AsyncEngine, run: Run, ended: Ended, why: Sequence[Item]) -> bool:
    """End the run with `why` in place of what it had left to store, or at least end it; False if neither can be."""
    for items in (why, ()):
        with suppress(DBAPIError, PoolTimeout, OSError):
            await record(engine, run, ended, items)
            return True
    return False


async def record_later(
    engine: AsyncEngine,
    run: Run,
    ended: Ended,
    items: Sequence[Item],
    *,
    unmade: Sequence[Approval],
    if_read: bool,
    within_seconds: float,
) -> None:
    """Free the conversation as soon as the database is back; when it stays away, the lease runs out by itself.

    With `if_read`, a run to which something was said that nobody read was interrupted: its turn goes on no more.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(within_seconds):
            while True:
                await asyncio.sleep(0.1)
                with suppress(DBAPIError, PoolTimeout, OSError):
                    recorded = await record(engine, run, ended, items, unmade=unmade, if_read=if_read)
                    if recorded == "unread":
                        cut = replace(ended, outcome="interrupted")
                        recorded = await record(engine, run, cut, [endings.cut("interrupted")])
                    if recorded == "lost" and await _was_recorded(engine, run, ended):
                        reports.turn_ended(run, ended)
                    return


async def _was_recorded(engine: AsyncEngine, run: Run, ended: Ended) -> bool:
    """Whether an earlier attempt had written the outcome, and only the answer to its COMMIT was lost."""
    if ended.outcome == "interrupted" and ended.usage is None:  # as whoever takes a lease over writes, and tells of
        return False
    async with transaction(engine, run.user_id) as session:
        return await leases.ended_with(session, run.id, user_id=run.user_id, outcome=ended.outcome, usage=ended.usage)


async def count(engine: AsyncEngine, ended: Acting, usage: Mapping[str, int]) -> None:
    """Add what was used after a run's end to its usage."""
    reports.count_tokens(usage)
    async with transaction(engine, ended.user_id) as session:
        await leases.add_usage(session, ended.run_id, user_id=ended.user_id, usage=usage)


async def end_stale(engine: AsyncEngine, ours: Collection[str]) -> None:
    """End the runs of processes that are gone, say so in their conversations, and in the log.

    `ours` are the runs of this process, which is there, however late it is with a beat.
    """
    async with system_transaction(engine) as session:
        found = await leases.stale(session)
    for run in found:
        if run.run_id in ours:
            continue
        with suppress(DBAPIError, PoolTimeout, OSError):  # the next sweep finds it again
            await end_abandoned(engine, run)


async def end_abandoned(engine: AsyncEngine, run: Abandoned) -> None:
    """End a run, if its heartbeat has stopped."""
    async with pipelined(engine, run.user_id) as pipeline:
        ended = await leases.end_stale(pipeline, run)
    if await ended.fetchone() is not None:
        reports.turn_abandoned(run)
