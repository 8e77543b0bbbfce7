"""How a turn ended, and what it had left to store: written in one transaction, now or when the database is back."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from chatkit.types import ThreadItem, ThreadItemDoneEvent
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend import leases, reports, statements
from backend.identity import RequestContext
from backend.leases import Outcome
from database import pipelined, transaction

if TYPE_CHECKING:
    from backend.turns import Turn


async def record(
    engine: AsyncEngine, turn: "Turn", outcome: Outcome, *, items: Sequence[ThreadItem] | None = None
) -> bool:
    """Write the outcome, and with it the items, by default those of `turn.closing`; False when the lease was lost."""
    if items is None:
        items = [event.item for event in turn.closing if isinstance(event, ThreadItemDoneEvent)]
    async with pipelined(engine, turn.user_id) as pipeline:
        if items:
            context = RequestContext(turn.user_id, turn)
            await statements.send_items(pipeline, turn.conversation_id, items, context)
        ended = await leases.end(pipeline, turn.run_id, user_id=turn.user_id, outcome=outcome, usage=turn.usage)
    recorded = await ended.fetchone() is not None
    if recorded:
        reports.turn_ended(turn, outcome)
    return recorded


async def record_failure(engine: AsyncEngine, turn: "Turn") -> bool:
    """End the turn without what it had left to store; False when that could not be written either."""
    with suppress(DBAPIError, PoolTimeout, OSError):
        await record(engine, turn, "failed", items=())
        return True
    return False


async def record_later(engine: AsyncEngine, turn: "Turn", outcome: Outcome, *, within_seconds: float) -> None:
    """Free the conversation as soon as the database is back; when it stays away, the lease runs out by itself."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_seconds):
            while True:
                await asyncio.sleep(0.1)
                with suppress(DBAPIError, PoolTimeout, OSError):
                    if not await record(engine, turn, outcome) and await _was_recorded(engine, turn, outcome):
                        reports.turn_ended(turn, outcome)
                    return


async def _was_recorded(engine: AsyncEngine, turn: "Turn", outcome: Outcome) -> bool:
    """Whether an earlier attempt had written the outcome, and only the answer to its COMMIT was lost."""
    if outcome == "interrupted":  # which whoever takes a lease over writes too, and tells of
        return False
    async with transaction(engine, turn.user_id) as session:
        return await leases.outcome_of(session, turn.run_id, user_id=turn.user_id) == outcome
