"""The statements of `runs`: one row per conversation is running or waiting, and each run ends once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Text, Update, bindparam, func, literal, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from backend.errors import Busy, LeaseLost, LimitReached, NotFound
from backend.models import Conversation, Run

Outcome = Literal["completed", "failed", "cancelled", "interrupted"]

STOP_CHANNEL = "todo_stop"
# In words: a prepared statement's parameters would not match the partial index.
_LEASED = text("status IN ('running', 'waiting')")

# Built once, of the table and not of its class: building them costs more than PostgreSQL takes to run them.
_RUNS, _CONVERSATIONS = Run.metadata.tables["runs"], Conversation.metadata.tables["conversations"]
_RUN, _OWNER = bindparam("run"), bindparam("owner")
_OWNED = select(bindparam("run", type_=Text), _CONVERSATIONS.c.id, _CONVERSATIONS.c.user_id, literal("running")).where(
    _CONVERSATIONS.c.id == bindparam("conversation"), _CONVERSATIONS.c.user_id == _OWNER
)
_CLAIM = (
    insert(_RUNS)
    .from_select(["id", "conversation_id", "user_id", "status"], _OWNED)
    .on_conflict_do_nothing(index_elements=["conversation_id"], index_where=_LEASED)
    .returning(_RUNS.c.id)
)
_MINE = (_RUNS.c.id == _RUN, _RUNS.c.user_id == _OWNER, _RUNS.c.status == "running")
_HELD = select(_RUNS.c.id).where(*_MINE).with_for_update(read=True)
_END = (
    update(_RUNS)
    .where(*_MINE)
    .values(status="ended", outcome=bindparam("how"), usage=bindparam("used"), ended_at=func.now())
    .returning(_RUNS.c.id)
)


@dataclass(frozen=True)
class Limits:
    """How many turns one person may have, None for any number."""

    per_minute: int | None = None
    running: int | None = None


async def check(session: AsyncSession, limits: Limits, *, user_id: str) -> None:
    """Raise `LimitReached` when one more turn of this person would be over a limit, with the time to wait."""
    if limits == Limits():
        return
    # One at a time per person, or two processes would both see the last free place.
    connection = await session.connection()
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:user, 0))"), {"user": user_id})
    recent = col(Run.started_at) > func.now() - func.make_interval(0, 0, 0, 0, 0, 1)
    wait = func.ceil(60 - func.extract("epoch", func.now() - func.min(col(Run.started_at)).filter(recent)))
    query = select(
        func.count().filter(col(Run.status) == "running"), func.count().filter(recent), func.coalesce(wait, 0)
    ).where(col(Run.user_id) == user_id)
    running, started, seconds = (await session.exec(query)).one()
    if limits.running is not None and running >= limits.running:
        raise LimitReached(f"You have {running} answers running, {limits.running} at once are the most: wait for one.")
    if limits.per_minute is not None and started >= limits.per_minute:
        raise LimitReached(
            f"You have asked {started} times in a minute, {limits.per_minute} times are the most: "
            f"go on in {int(seconds)} seconds."
        )


async def take(
    session: AsyncSession, run_id: str, *, user_id: str, conversation_id: str, lease_seconds: float
) -> str | None:
    """Take the lease on a conversation; returns the run it was taken from when that one's heartbeat had stopped.

    Raises `Busy` while another run holds it, `NotFound` when the conversation is not there.
    """
    connection = await session.connection()
    wanted = {"run": run_id, "conversation": conversation_id, "owner": user_id}
    if (await connection.execute(_CLAIM, wanted)).first() is not None:
        return None
    stale = _ending("interrupted").where(
        col(Run.conversation_id) == conversation_id, col(Run.user_id) == user_id, _is_stale(lease_seconds)
    )
    taken = (await session.exec(stale)).scalar()
    if taken is None or (await connection.execute(_CLAIM, wanted)).first() is None:
        raise Busy if (await connection.execute(_OWNED, wanted)).first() else NotFound
    return taken


async def hold(session: AsyncSession, run_id: str, *, user_id: str) -> None:
    """Keep the lease to the end of this transaction; raises `LeaseLost` when it is not ours any more."""
    connection = await session.connection()
    if (await connection.execute(_HELD, {"run": run_id, "owner": user_id})).first() is None:
        raise LeaseLost


async def end(
    session: AsyncSession, run_id: str, *, user_id: str, outcome: Outcome, usage: dict[str, Any] | None
) -> bool:
    """Write the outcome, unless the run has one; returns whether this one was written."""
    connection = await session.connection()
    written = {"run": run_id, "owner": user_id, "how": outcome, "used": usage}
    return (await connection.execute(_END, written)).first() is not None


async def beat(session: AsyncSession, run_ids: Iterable[str]) -> dict[str, bool]:
    """Renew the leases of these runs; returns those that are still held, and whether each was asked to stop."""
    statement = (
        update(Run)
        .where(col(Run.id).in_(list(run_ids)), col(Run.status) == "running")
        .values(heartbeat_at=func.now())
        .returning(col(Run.id), col(Run.stop_requested))
    )
    return {row.id: row.stop_requested for row in await session.exec(statement)}


async def request_stop(session: AsyncSession, *, user_id: str, conversation_id: str) -> str | None:
    """Ask the conversation's run to stop, in whichever process it runs; returns its id, None when there is none."""
    statement = (
        update(Run)
        .where(col(Run.conversation_id) == conversation_id, col(Run.user_id) == user_id, col(Run.status) == "running")
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


async def end_stale(session: AsyncSession, *, lease_seconds: float) -> int:
    """Mark the runs of processes that are gone as interrupted; returns how many, across all people."""
    return len((await session.exec(_ending("interrupted").where(_is_stale(lease_seconds)))).all())


async def is_running(session: AsyncSession, run_id: str, *, user_id: str) -> bool:
    query = select(Run.id).where(col(Run.id) == run_id, col(Run.user_id) == user_id, col(Run.status) == "running")
    return (await session.exec(query)).first() is not None


def _is_stale(lease_seconds: float) -> ColumnElement[bool]:
    return col(Run.heartbeat_at) < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, lease_seconds)


def _ending(outcome: Outcome) -> Update:
    return (
        update(Run)
        .where(col(Run.status) == "running")
        .values(status="ended", outcome=outcome, ended_at=func.now())
        .returning(col(Run.id))
    )
