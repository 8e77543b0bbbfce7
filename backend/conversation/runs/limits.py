"""How many turns and conversations one person may have, counted in the transaction that begins a turn.

What a person asks is a row of `runs`, whether it begins a turn or is told to one that is running, and stays counted
when its conversation is deleted.
"""

from dataclasses import dataclass

from sqlalchemy import bindparam, func, literal, select

from backend.conversation.runs.leases import CONVERSATIONS, RUNNING, RUNS
from backend.errors import LimitReached
from service.database import Pipeline, Statement

_AN_HOUR = 3600  # seconds
_OWNER = bindparam("owner")
# One at a time per person, or two processes would both see the last free place.
ONE_BY_ONE = Statement(select(func.pg_advisory_xact_lock(func.hashtextextended(_OWNER, 0))))


def _count() -> Statement:
    """Two scans of few rows, by the partial index and of the last minute, instead of one of all that the person had."""
    mine = RUNS.c.user_id == _OWNER
    running = select(func.count()).where(mine, RUNS.c.status == RUNNING).scalar_subquery()
    wait = func.ceil(60 - func.extract("epoch", func.now() - func.min(RUNS.c.started_at)))
    counted = select(running.label("running"), func.count().label("started"), func.coalesce(wait, 0).label("seconds"))
    return Statement(counted.where(mine, RUNS.c.started_at > func.now() - func.make_interval(0, 0, 0, 0, 0, 1)))


def _kept() -> Statement:
    """What is stored of a person, counted no further than the limits; 0 for one that is not limited."""
    mine = (RUNS.c.user_id == _OWNER, RUNS.c.started_at > func.now() - func.make_interval(0, 0, 0, 1))
    runs = select(literal(1)).where(*mine).limit(bindparam("per_day")).subquery()
    conversations = select(literal(1)).where(CONVERSATIONS.c.user_id == _OWNER).limit(bindparam("most")).subquery()
    return Statement(
        select(
            select(func.count()).select_from(runs).scalar_subquery().label("today"),
            select(func.count()).select_from(conversations).scalar_subquery().label("conversations"),
        )
    )


_COUNT, _KEPT = _count(), _kept()


@dataclass(frozen=True)
class Limits:
    """How many turns and conversations one person may have, None for any number."""

    per_minute: int | None = None
    running: int | None = None
    per_day: int | None = None
    conversations: int | None = None


async def check(pipeline: Pipeline, limits: Limits, *, user_id: str, is_new: bool) -> None:
    """Raise `LimitReached` when one more turn or message of this person would be over a limit, with what to do.

    `is_new` tells that it begins a conversation.
    """
    if limits == Limits():
        return
    await pipeline.send(ONE_BY_ONE, owner=user_id)
    counting = await pipeline.send(_COUNT, owner=user_id)
    keeping = await pipeline.send(
        _KEPT, owner=user_id, per_day=limits.per_day or 0, most=limits.conversations or 0 if is_new else 0
    )
    counted, kept = await counting.fetchone(), await keeping.fetchone()
    assert counted is not None
    assert kept is not None
    if limits.running is not None and counted["running"] >= limits.running:
        raise LimitReached(
            f"Only {limits.running} of your answers can be written at once. Wait until one is finished, then try again."
        )
    if limits.per_minute is not None and counted["started"] >= limits.per_minute:
        raise LimitReached(
            f"You have sent {counted['started']} messages in a minute, and the limit is {limits.per_minute}. "
            f"Try again in {int(counted['seconds'])} seconds.",
            retry_seconds=int(counted["seconds"]),
        )
    if limits.per_day is not None and kept["today"] >= limits.per_day:
        raise LimitReached(
            f"You have reached the limit of {limits.per_day:,} messages a day. Try again later.", retry_seconds=_AN_HOUR
        )
    if is_new and limits.conversations is not None and kept["conversations"] >= limits.conversations:
        raise LimitReached(
            f"You have reached the limit of {limits.conversations:,} conversations. "
            "Continue one of them, or delete some.",
            retry_seconds=_AN_HOUR,
        )
