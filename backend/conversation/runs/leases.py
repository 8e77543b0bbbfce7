"""The statements of `runs`: one row per conversation is running or waiting, and each run ends once.

Who locks the conversation's row, too, locks it before its runs, and these before its messages.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from psycopg.types.json import Jsonb
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Float,
    Text,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import col
from sqlmodel.ext.asyncio.session import AsyncSession

from backend.conversation.models import Conversation, Profile, Run
from backend.conversation.runs import abandoned
from backend.conversation.runs.abandoned import Abandoned
from backend.errors import LeaseLost
from service.database import Pipeline, Statement
from service.database.pipeline import Result

Outcome = Literal["completed", "failed", "cancelled", "interrupted"]

ASKED_CHANNEL = "todo_asked"
"""Tells the id of a run that is asked something, to stop or to be followed, so that its process looks at once."""
# In words: a prepared statement's parameters would not match the partial index.
LEASED = text("status IN ('running', 'waiting')")
RUNNING = literal_column("'running'")
RUNS, CONVERSATIONS = Run.metadata.tables["runs"], Conversation.metadata.tables["conversations"]
_PROFILES = Profile.metadata.tables["profiles"]
_RUN, _OWNER, _CONVERSATION = bindparam("run"), bindparam("owner"), bindparam("conversation")
_MINE = (RUNS.c.id == _RUN, RUNS.c.user_id == _OWNER, RUNS.c.status == RUNNING)

NO_TURN = literal_column("'{}'::jsonb")
"""The usage of a row that is no turn of its own: a message that a running one was told."""
_HOLDING = select(RUNS.c.id).where(*_MINE)
HOLDS = _HOLDING.exists()
"""Whether the run holds its lease; parameters `run` and `owner`."""
HELD = _HOLDING.with_for_update(read=True)
"""The run, if it holds its lease; parameters `run` and `owner`. The lease is then kept to the transaction's end."""
LOCKED = _HOLDING.with_for_update()
"""The same, and nobody else holds it until then."""

CONVERSATION_LOCKED = (
    select(CONVERSATIONS.c.leaf_run_id)
    .where(CONVERSATIONS.c.id == _CONVERSATION, CONVERSATIONS.c.user_id == _OWNER)
    .with_for_update(key_share=True)
)
"""The run that the conversation's shown path ends with; parameters `conversation` and `owner`.

Until the transaction's end no run begins in it, and no other path is shown.
"""


def known_of_person() -> list[ColumnElement[Any]]:
    """What is kept of the person: `time_zone`, `calendar`, whether they have the address of one, and `memory`."""
    kept = _PROFILES.c.user_id == _OWNER
    zone = select(_PROFILES.c.time_zone).where(kept).scalar_subquery().label("time_zone")
    fed = select(_PROFILES.c.user_id).where(kept, _PROFILES.c.calendar_hash.is_not(None)).exists().label("calendar")
    memory = select(_PROFILES.c.memory).where(kept).scalar_subquery().label("memory")
    return [zone, fed, memory]


def _claim() -> Statement:
    """The conversation, and in `claimed` the run's id if the lease was free; nothing for one that is not there.

    Beside it stands what is known of the person.
    """
    owned = (
        select(CONVERSATIONS)
        .where(CONVERSATIONS.c.id == _CONVERSATION, CONVERSATIONS.c.user_id == _OWNER)
        .with_for_update(key_share=True)  # who waits for another path to be shown goes on from the end of that
        .cte("owned")
    )
    worker, lease = bindparam("worker", type_=Text), bindparam("lease_seconds", type_=Float)
    message, followed = bindparam("message", type_=Text), bindparam("followed", type_=Boolean)
    run = select(
        bindparam("run", type_=Text),
        owned.c.id,
        owned.c.user_id,
        literal("running"),
        worker,
        lease,
        owned.c.leaf_run_id,
        message,
        followed,
    )
    claimed = (
        insert(RUNS)
        .from_select(
            [
                "id",
                "conversation_id",
                "user_id",
                "status",
                "worker",
                "lease_seconds",
                "parent_run_id",
                "message_id",
                "followed",
            ],
            run,
        )
        .on_conflict_do_nothing(index_elements=["user_id", "conversation_id"], index_where=LEASED)
        .returning(RUNS.c.id)
        .cte("claimed")
    )
    # The path that is shown ends with it from here on.
    grown = (
        update(CONVERSATIONS)
        .where(CONVERSATIONS.c.id == _CONVERSATION, CONVERSATIONS.c.user_id == _OWNER, claimed.c.id.is_not(None))
        .values(leaf_run_id=claimed.c.id)
        .cte("grown")
    )
    found = select(owned, claimed.c.id.label("claimed"), *known_of_person())
    return Statement(found.join_from(owned, claimed, true(), isouter=True).add_cte(grown))


_OF_CONVERSATION = select(RUNS.c.id).where(RUNS.c.user_id == _OWNER, RUNS.c.conversation_id == _CONVERSATION)
ANSWERING = _OF_CONVERSATION.where(LEASED, RUNS.c.status == RUNNING).scalar_subquery()
"""The run that answers in the conversation now; parameters `conversation` and `owner`."""
ANSWERING_IN_EACH = (
    select(RUNS.c.id)
    .where(RUNS.c.user_id == CONVERSATIONS.c.user_id, RUNS.c.conversation_id == CONVERSATIONS.c.id)
    .where(LEASED, RUNS.c.status == RUNNING)
    .correlate(CONVERSATIONS)
    .scalar_subquery()
)
"""The same for each row of a statement on `conversations`."""
_CLAIM = _claim()
_LOCK_CONVERSATION = Statement(CONVERSATION_LOCKED)
_CURRENT = Statement(_OF_CONVERSATION.where(LEASED))
ENDING = (
    update(RUNS)
    .where(*_MINE)
    .values(
        status=literal("ended"), outcome=bindparam("how"), usage=bindparam("used", type_=JSONB), ended_at=func.now()
    )
    .returning(RUNS.c.id)
)
"""The end of a run that holds its lease; parameters `run`, `owner`, `how` and `used`."""
_END = Statement(ENDING)
_TAKE_OVER, _END_STALE = Statement(abandoned.TAKE_OVER), Statement(abandoned.END_STALE)
# Across people: functions of the tables' owner, made by migrations 0005 and 0007. They tell ids only.
_BEAT = text("SELECT id, stop_requested, followed FROM renew_leases(:runs)")
_STALE = text(abandoned.STALE)


async def claim(
    pipeline: Pipeline,
    run_id: str,
    *,
    user_id: str,
    conversation_id: str,
    lease_seconds: float,
    worker: str | None = None,
    message_id: str | None = None,
    followed: bool = False,
) -> Result:
    """Take the lease if it is free. The result is the conversation's row with `claimed`, the run's id or None.

    Beside it stands what `known_of_person` has.

    With `worker`, the name of the process, the run can be ended as soon as the process is known to be dead. One that is
    `followed` is published from its beginning.
    """
    whose = {"conversation": conversation_id, "owner": user_id}
    what = {"message": message_id, "followed": followed}
    return await pipeline.send(_CLAIM, run=run_id, worker=worker, lease_seconds=lease_seconds, **what, **whose)


async def lock_conversation(pipeline: Pipeline, *, user_id: str, conversation_id: str) -> Result:
    """Before its run is locked, where the conversation is to be locked at all; the result is `leaf_run_id`."""
    return await pipeline.send(_LOCK_CONVERSATION, conversation=conversation_id, owner=user_id)


async def current(pipeline: Pipeline, *, user_id: str, conversation_id: str) -> Result:
    """The result is the id of the conversation's run that is running or waiting, or nothing."""
    return await pipeline.send(_CURRENT, conversation=conversation_id, owner=user_id)


async def take_over(pipeline: Pipeline, *, user_id: str, conversation_id: str) -> Result:
    """End the conversation's run if its heartbeat has stopped; the result is that run's id, or nothing."""
    return await pipeline.send(_TAKE_OVER, **abandoned.ending(user_id=user_id, conversation_id=conversation_id))


async def hold(session: AsyncSession, run_id: str, *, user_id: str) -> None:
    """Keep the lease to the end of this transaction; raises `LeaseLost` when it is not ours any more."""
    held = await session.connection()
    if (await held.execute(HELD, {"run": run_id, "owner": user_id})).first() is None:
        raise LeaseLost


async def end(
    pipeline: Pipeline, run_id: str, *, user_id: str, outcome: Outcome, usage: Mapping[str, Any] | None
) -> Result:
    """Write the outcome, unless the run has one; the result is the run's id if this one was written."""
    used = None if usage is None else Jsonb(usage)
    return await pipeline.send(_END, run=run_id, owner=user_id, how=outcome, used=used)


class Asked(NamedTuple):
    """What a run was asked for, from whichever process."""

    to_stop: bool
    to_be_followed: bool


async def beat(session: AsyncSession, run_ids: Iterable[str]) -> dict[str, Asked]:
    """Renew the leases of these runs; returns those that are still held, and what each was asked for."""
    held = await (await session.connection()).execute(_BEAT, {"runs": list(run_ids)})
    return {row.id: Asked(row.stop_requested, row.followed) for row in held}


async def request_stop(
    session: AsyncSession, *, user_id: str, conversation_id: str, run_id: str | None = None
) -> str | None:
    """Ask the conversation's run to stop, in whichever process it runs; returns its id, None when there is none.

    With a run's id, only that one.
    """
    statement = (
        update(Run)
        .where(col(Run.conversation_id) == conversation_id, col(Run.user_id) == user_id, col(Run.status) == RUNNING)
        .values(stop_requested=True)
        .returning(col(Run.id))
    )
    if run_id is not None:
        statement = statement.where(col(Run.id) == run_id)
    stopped = (await session.exec(statement)).scalar()
    if stopped is not None:
        await _tell_process(session, stopped)
    return stopped


async def request_following(session: AsyncSession, run_id: str, *, user_id: str) -> None:
    """Ask for a run that is running or waiting to be published, in whichever process it runs."""
    statement = (
        update(Run)
        .where(col(Run.id) == run_id, col(Run.user_id) == user_id, col(Run.status) != "ended", ~col(Run.followed))
        .values(followed=True)
        .returning(col(Run.id))
    )
    if (await session.exec(statement)).scalar() is not None:
        await _tell_process(session, run_id)


async def _tell_process(session: AsyncSession, run_id: str) -> None:
    connection = await session.connection()
    await connection.execute(text("SELECT pg_notify(:channel, :run)"), {"channel": ASKED_CHANNEL, "run": run_id})


async def cancel(session: AsyncSession, *, user_id: str, conversation_id: str) -> None:
    """End the conversation's run here and now, whoever holds it: what it still writes is fenced off.

    What a waiting one asked is decided no more; it is about to be deleted.
    """
    statement = (
        update(Run)
        .where(col(Run.conversation_id) == conversation_id, col(Run.user_id) == user_id, LEASED)
        .values(status="ended", outcome="cancelled", ended_at=func.now())
    )
    await session.exec(statement)


async def stale(session: AsyncSession) -> list[Abandoned]:
    """The runs whose heartbeat has stopped, of all people."""
    return [Abandoned(*run) for run in await (await session.connection()).execute(_STALE)]


async def end_stale(pipeline: Pipeline, run: Abandoned) -> Result:
    """End a run if its heartbeat has stopped, as its person; the result is its id, or nothing."""
    return await pipeline.send(_END_STALE, **abandoned.ending(**run._asdict()))


async def is_running(session: AsyncSession, run_id: str, *, user_id: str) -> bool:
    query = select(RUNS.c.id).where(RUNS.c.id == run_id, RUNS.c.user_id == user_id, RUNS.c.status == RUNNING)
    return (await (await session.connection()).execute(query)).first() is not None


async def ended_with(
    session: AsyncSession, run_id: str, *, user_id: str, outcome: Outcome, usage: Mapping[str, Any] | None
) -> bool:
    """Whether the run has this outcome and usage, which only the process writes that ran it."""
    query = select(RUNS.c.id).where(
        RUNS.c.id == run_id,
        RUNS.c.user_id == user_id,
        RUNS.c.outcome == outcome,
        RUNS.c.usage.is_not_distinct_from(null() if usage is None else literal(usage, JSONB)),
    )
    return (await (await session.connection()).execute(query)).first() is not None


async def add_usage(session: AsyncSession, run_id: str | None, *, user_id: str, usage: Mapping[str, int]) -> None:
    """Count what was used for a run after its end; the names are those of its usage."""
    added = func.jsonb_build_object(
        *(
            part
            for name, number in usage.items()
            for part in (name, func.coalesce(cast(RUNS.c.usage[name].as_string(), BigInteger), 0) + number)
        )
    )
    mine = (RUNS.c.id == run_id, RUNS.c.user_id == user_id, or_(RUNS.c.usage.is_not(None), RUNS.c.status == "ended"))
    before = func.coalesce(RUNS.c.usage, func.jsonb_build_object())
    await (await session.connection()).execute(update(RUNS).where(*mine).values(usage=before.concat(added)))
