"""The statements of `runs`: one row per conversation is running or waiting, and each run ends once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ColumnElement,
    Float,
    Text,
    Update,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import col
from sqlmodel.ext.asyncio.session import AsyncSession

from backend.errors import LeaseLost, LimitReached
from backend.models import Conversation, Run
from database import Pipeline, Statement
from database.pipeline import Result

Outcome = Literal["completed", "failed", "cancelled", "interrupted"]

STOP_CHANNEL = "todo_stop"
# In words: a prepared statement's parameters would not match the partial index.
_LEASED = text("status IN ('running', 'waiting')")
_RUNNING = literal_column("'running'")
RUNS, CONVERSATIONS = Run.metadata.tables["runs"], Conversation.metadata.tables["conversations"]
_RUN, _OWNER, _THREAD = bindparam("run"), bindparam("owner"), bindparam("thread")
_MINE = (RUNS.c.id == _RUN, RUNS.c.user_id == _OWNER, RUNS.c.status == _RUNNING)

HELD = select(RUNS.c.id).where(*_MINE).with_for_update(read=True)
"""The run, if it holds its lease; parameters `run` and `owner`. The lease is then kept to the transaction's end."""


def _claim() -> Statement:
    """The conversation, and in `claimed` the run's id if the lease was free; nothing for one that is not there."""
    owned = select(CONVERSATIONS).where(CONVERSATIONS.c.id == _THREAD, CONVERSATIONS.c.user_id == _OWNER).cte("owned")
    run = select(bindparam("run", type_=Text), owned.c.id, owned.c.user_id, literal("running"))
    claimed = (
        insert(RUNS)
        .from_select(["id", "conversation_id", "user_id", "status"], run)
        .on_conflict_do_nothing(index_elements=["conversation_id"], index_where=_LEASED)
        .returning(RUNS.c.id)
        .cte("claimed")
    )
    return Statement(select(owned, claimed.c.id.label("claimed")).join_from(owned, claimed, true(), isouter=True))


_CLAIM = _claim()
_END = Statement(
    update(RUNS)
    .where(*_MINE)
    .values(
        status=literal("ended"), outcome=bindparam("how"), usage=bindparam("used", type_=JSONB), ended_at=func.now()
    )
    .returning(RUNS.c.id)
)
_TAKE_OVER = Statement(
    update(RUNS)
    .where(
        RUNS.c.conversation_id == _THREAD,
        RUNS.c.user_id == _OWNER,
        RUNS.c.status == _RUNNING,
        RUNS.c.heartbeat_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, bindparam("seconds", type_=Float)),
    )
    .values(status=literal("ended"), outcome=literal("interrupted"), ended_at=func.now())
    .returning(RUNS.c.id)
)
# One at a time per person, or two processes would both see the last free place.
_ONE_BY_ONE = Statement(select(func.pg_advisory_xact_lock(func.hashtextextended(_OWNER, 0))))


def _count() -> Statement:
    """Two scans of few rows, by the partial index and of the last minute, instead of one of all that the person had."""
    mine = RUNS.c.user_id == _OWNER
    running = select(func.count()).where(mine, RUNS.c.status == _RUNNING).scalar_subquery()
    wait = func.ceil(60 - func.extract("epoch", func.now() - func.min(RUNS.c.started_at)))
    counted = select(running.label("running"), func.count().label("started"), func.coalesce(wait, 0).label("seconds"))
    return Statement(counted.where(mine, RUNS.c.started_at > func.now() - func.make_interval(0, 0, 0, 0, 0, 1)))


_COUNT = _count()


@dataclass(frozen=True)
class Limits:
    """How many turns one person may have, None for any number."""

    per_minute: int | None = None
    running: int | None = None


async def check(pipeline: Pipeline, limits: Limits, *, user_id: str) -> None:
    """Raise `LimitReached` when one more turn of this person would be over a limit, with the time to wait."""
    if limits == Limits():
        return
    await pipeline.send(_ONE_BY_ONE, owner=user_id)
    counted = await (await pipeline.send(_COUNT, owner=user_id)).fetchone()
    assert counted is not None
    if limits.running is not None and counted["running"] >= limits.running:
        raise LimitReached(
            f"You have {counted['running']} answers running, {limits.running} at once are the most: wait for one."
        )
    if limits.per_minute is not None and counted["started"] >= limits.per_minute:
        raise LimitReached(
            f"You have asked {counted['started']} times in a minute, {limits.per_minute} times are the most: "
            f"go on in {int(counted['seconds'])} seconds."
        )


async def claim(pipeline: Pipeline, run_id: str, *, user_id: str, conversation_id: str) -> Result:
    """Take the lease if it is free. The result is the conversation's row with `claimed`, the run's id or None."""
    return await pipeline.send(_CLAIM, run=run_id, thread=conversation_id, owner=user_id)


async def take_over(pipeline: Pipeline, *, user_id: str, conversation_id: str, lease_seconds: float) -> Result:
    """End the conversation's run if its heartbeat has stopped; the result is that run's id, or nothing."""
    return await pipeline.send(_TAKE_OVER, thread=conversation_id, owner=user_id, seconds=lease_seconds)


async def hold(session: AsyncSession, run_id: str, *, user_id: str) -> None:
    """Keep the lease to the end of this transaction; raises `LeaseLost` when it is not ours any more."""
    held = await session.connection()
    if (await held.execute(HELD, {"run": run_id, "owner": user_id})).first() is None:
        raise LeaseLost


async def end(
    pipeline: Pipeline, run_id: str, *, user_id: str, outcome: Outcome, usage: dict[str, Any] | None
) -> Result:
    """Write the outcome, unless the run has one; the result is the run's id if this one was written."""
    used = None if usage is None else Jsonb(usage)
    return await pipeline.send(_END, run=run_id, owner=user_id, how=outcome, used=used)


async def beat(session: AsyncSession, run_ids: Iterable[str]) -> dict[str, bool]:
    """Renew the leases of these runs; returns those that are still held, and whether each was asked to stop."""
    statement = (
        update(Run)
        .where(col(Run.id).in_(list(run_ids)), col(Run.status) == _RUNNING)
        .values(heartbeat_at=func.now())
        .returning(col(Run.id), col(Run.stop_requested))
    )
    return {row.id: row.stop_requested for row in await session.exec(statement)}


async def request_stop(session: AsyncSession, *, user_id: str, conversation_id: str) -> str | None:
    """Ask the conversation's run to stop, in whichever process it runs; returns its id, None when there is none."""
    statement = (
        update(Run)
        .where(col(Run.conversation_id) == conversation_id, col(Run.user_id) == user_id, col(Run.status) == _RUNNING)
        .values(stop_requested=True)
        .returning(col(Run.id))
    )
    run_id = (await session.exec(statement)).scalar()
    if run_id is not None:
        connection = await session.connection()
        await connection.execute(text("SELECT pg_notify(:channel, :run)"), {"channel": STOP_CHANNEL, "run": run_id})
    return run_id


async def cancel(session: AsyncSession, *, user_id: str, conversation_id: str) -> None:
    """End the conversation's run here and now, whoever holds it: what it still writes is fenced off."""
    statement = _ending("cancelled").where(col(Run.conversation_id) == conversation_id, col(Run.user_id) == user_id)
    await session.exec(statement)


async def end_stale(session: AsyncSession, *, lease_seconds: float) -> list[tuple[str, str, str]]:
    """Mark the runs of processes that are gone as interrupted; returns id, conversation and owner of each."""
    ended = await session.exec(_ending("interrupted").where(_is_stale(lease_seconds)))
    return [(run.id, run.conversation_id, run.user_id) for run in ended]


async def is_running(session: AsyncSession, run_id: str, *, user_id: str) -> bool:
    query = select(RUNS.c.id).where(RUNS.c.id == run_id, RUNS.c.user_id == user_id, RUNS.c.status == _RUNNING)
    return (await (await session.connection()).execute(query)).first() is not None


async def outcome_of(session: AsyncSession, run_id: str, *, user_id: str) -> str | None:
    query = select(RUNS.c.outcome).where(RUNS.c.id == run_id, RUNS.c.user_id == user_id)
    return (await (await session.connection()).execute(query)).scalar_one_or_none()


def _is_stale(lease_seconds: float) -> ColumnElement[bool]:
    return col(Run.heartbeat_at) < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, lease_seconds)


def _ending(outcome: Outcome) -> Update:
    return (
        update(Run)
        .where(col(Run.status) == _RUNNING)
        .values(status="ended", outcome=outcome, ended_at=func.now())
        .returning(col(Run.id), col(Run.conversation_id), col(Run.user_id))
    )
