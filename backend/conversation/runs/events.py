"""The statements of `run_events`: what runs that are followed say, numbered from 1, for readers in any process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Float, bindparam, case, cast, delete, extract, func, literal, literal_column, or_, select, text
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlmodel.ext.asyncio.session import AsyncSession

from backend.conversation.models import Message, RunEvent
from backend.conversation.rows import StoredItem
from backend.conversation.runs.leases import RUNNING, RUNS
from service.database import Pipeline, Statement
from service.database.pipeline import Result

EVENTS_CHANNEL = "todo_events"
"""Tells the ids of runs of which more was published, with spaces between them."""
EVENTS = RunEvent.metadata.tables["run_events"]
_MESSAGES = Message.metadata.tables["messages"]
_OF_RUN = (EVENTS.c.user_id == bindparam("owner"), EVENTS.c.run_id == bindparam("run"))

# Functions of the tables' owner, made by migration 0014: they work for several people at once.
PUBLISH = b"SELECT publish_events(%(people)s::text[], %(runs)s::text[], %(numbers)s::bigint[], %(payloads)s::text[])"
# Under the lock of a run that no process has: whatever it said before is there, and nobody else publishes.
_APPEND = Statement("""
INSERT INTO run_events (user_id, run_id, seq, payload)
SELECT runs.user_id, runs.id, given.n + coalesce((
    SELECT max(seq) FROM run_events WHERE user_id = %(owner)s AND run_id = %(run)s
), 0), given.payload::jsonb
FROM runs, unnest(%(payloads)s::text[]) WITH ORDINALITY AS given (payload, n)
WHERE runs.user_id = %(owner)s AND runs.id = %(run)s AND runs.followed AND runs.conversation_id IS NOT NULL
RETURNING seq
""")
_PUT = Statement("""
INSERT INTO run_events (user_id, run_id, seq, payload)
SELECT %(owner)s, %(run)s, seq, payload::jsonb
FROM unnest(%(numbers)s::bigint[], %(payloads)s::text[]) AS given (seq, payload)
ON CONFLICT DO NOTHING
""")
_LOCK = Statement(
    select(RUNS.c.id).where(RUNS.c.user_id == bindparam("owner"), RUNS.c.id == bindparam("run")).with_for_update()
)
_TELL = Statement("SELECT pg_notify(%(channel)s, %(run)s)")
_SWEEP = text("SELECT sweep_run_events(:minutes, 200) UNION ALL SELECT sweep_kept_requests(24, 2000)")

_NEWS = Statement(
    select(EVENTS.c.seq, EVENTS.c.payload)
    .where(*_OF_RUN, EVENTS.c.seq > bindparam("after"))
    .order_by(EVENTS.c.seq)
    .limit(bindparam("most"))
)
_LONG_AGO = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, bindparam("grace"))
_LEASE = func.make_interval(0, 0, 0, 0, 0, 0, RUNS.c.lease_seconds)
_LEASE_LEFT = cast(extract("epoch", RUNS.c.heartbeat_at + _LEASE - func.now()), Float)
_STATE = Statement(
    select(
        RUNS.c.conversation_id,
        RUNS.c.status,
        RUNS.c.outcome,
        select(func.coalesce(func.max(EVENTS.c.seq), literal(0))).where(*_OF_RUN).scalar_subquery().label("last"),
        func.coalesce(
            or_(RUNS.c.ended_at < _LONG_AGO, RUNS.c.heartbeat_at < RUNS.c.ended_at - _LEASE), literal(False)
        ).label("long_over"),
        case((RUNS.c.status == RUNNING, _LEASE_LEFT)).label("lease_left"),
    ).where(RUNS.c.user_id == bindparam("owner"), RUNS.c.id == bindparam("run"))
)
_NEWEST = Statement(
    select(EVENTS.c.seq, EVENTS.c.payload["event"].as_string().label("event"))
    .where(*_OF_RUN)
    .order_by(EVENTS.c.seq.desc())
    .limit(literal(1))
)
_ID_OF_ITEM, _ID_OF_SAID = (EVENTS.c.payload[name]["id"].as_string() for name in ("item", "said"))
_TOLD = Statement(
    select(func.coalesce(_ID_OF_ITEM, _ID_OF_SAID).label("id")).where(
        *_OF_RUN, EVENTS.c.payload["event"].as_string().in_([literal("Started"), literal("Done")])
    )
)
_ITEM, _PART = EVENTS.c.payload["item_id"].as_string(), EVENTS.c.payload["part"].as_integer()
_GROWN = Statement(
    select(
        _ITEM.label("item"),
        _PART.label("part"),
        func.string_agg(
            EVENTS.c.payload["text"].as_string(), aggregate_order_by(literal_column("''"), EVENTS.c.seq)
        ).label("text"),
    )
    .where(*_OF_RUN, EVENTS.c.payload["event"].as_string() == literal("Grown"))
    .group_by(literal_column("1"), literal_column("2"))
)
_STORED = Statement(
    select(*(_MESSAGES.c[name] for name in StoredItem._fields))
    .where(
        _MESSAGES.c.user_id == bindparam("owner"),
        _MESSAGES.c.conversation_id == bindparam("conversation"),
        _MESSAGES.c.run_id == bindparam("run"),
        _MESSAGES.c.superseded_by.is_distinct_from(literal("removed")),
    )
    .order_by(_MESSAGES.c.seq)
)


class State(NamedTuple):
    """Where a run is: `last` is the number of its newest event, 0 where there is none.

    `long_over` tells that another process publishes nothing more of it: it ended so long ago, or that was gone when it
    was ended. For so many seconds as are in `lease_left`, one that runs is taken to have a process.
    """

    conversation_id: str | None
    status: str
    outcome: Any
    last: int
    long_over: bool
    lease_left: float | None


async def send_state(pipeline: Pipeline, run_id: str, *, user_id: str, grace_seconds: float) -> Result:
    """Ask where the run is; the result has the fields of `State`, or no row."""
    return await pipeline.send(_STATE, run=run_id, owner=user_id, grace=grace_seconds)


async def send_news(pipeline: Pipeline, run_id: str, *, user_id: str, after: int, most: int) -> Result:
    """Ask for `seq` and `payload` of the next `most` events after a number."""
    return await pipeline.send(_NEWS, run=run_id, owner=user_id, after=after, most=most)


async def send_newest(pipeline: Pipeline, run_id: str, *, user_id: str) -> Result:
    """Ask for `seq` and the name (`event`) of the newest event."""
    return await pipeline.send(_NEWEST, run=run_id, owner=user_id)


async def send_told(pipeline: Pipeline, run_id: str, *, user_id: str) -> Result:
    """Ask for the ids of the items that the log has told as they stay."""
    return await pipeline.send(_TOLD, run=run_id, owner=user_id)


async def send_grown(pipeline: Pipeline, run_id: str, *, user_id: str) -> Result:
    """Ask for the `text` that the log has told of each `part` of each `item`, as it grew."""
    return await pipeline.send(_GROWN, run=run_id, owner=user_id)


async def append(pipeline: Pipeline, run_id: str, payloads: Sequence[str], *, user_id: str) -> Result:
    """Publish what became of a run that no process has, behind what it has said; its row is locked.

    The result is empty for one that is not followed.
    """
    appended = await pipeline.send(_APPEND, run=run_id, owner=user_id, payloads=list(payloads))
    await pipeline.send(_TELL, channel=EVENTS_CHANNEL, run=run_id)
    return appended


async def lock(pipeline: Pipeline, run_id: str, *, user_id: str) -> None:
    """Before `append`."""
    await pipeline.send(_LOCK, run=run_id, owner=user_id)


async def put(pipeline: Pipeline, run_id: str, numbered: Sequence[tuple[int, str]], *, user_id: str) -> None:
    """Publish what a run says that begins to wait, as far as it is not there yet."""
    numbers, payloads = [number for number, _ in numbered], [payload for _, payload in numbered]
    await pipeline.send(_PUT, run=run_id, owner=user_id, numbers=numbers, payloads=payloads)
    await pipeline.send(_TELL, channel=EVENTS_CHANNEL, run=run_id)


async def send_stored(pipeline: Pipeline, run_id: str, *, user_id: str, conversation_id: str) -> Result:
    """Ask for the rows that the run has written, with the fields of `StoredItem`."""
    return await pipeline.send(_STORED, run=run_id, owner=user_id, conversation=conversation_id)


async def forget(session: AsyncSession, run_ids: Sequence[str], *, user_id: str) -> None:
    """Delete what was published of runs. Those whose rows this transaction has changed are not published any more."""
    connection = await session.connection()
    await connection.execute(delete(EVENTS).where(EVENTS.c.user_id == user_id, EVENTS.c.run_id.in_(run_ids)))


async def sweep(session: AsyncSession, *, minutes: int) -> None:
    """Delete what was published of runs that ended so long ago, and requests that nobody sends again."""
    await (await session.connection()).execute(_SWEEP, {"minutes": minutes})
