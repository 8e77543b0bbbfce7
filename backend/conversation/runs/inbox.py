"""The statements of `run_inputs`: what a person wrote while a run was answering, until the model reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb
from pydantic_core import to_jsonable_python
from sqlalchemy import (
    Integer,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, insert

from backend.conversation.items import Said
from backend.conversation.models import RunInput
from backend.conversation.runs import leases
from backend.conversation.runs.leases import RUNNING, RUNS
from service.database import Pipeline, Statement
from service.database.pipeline import Result

Mode = Literal["steer", "follow_up"]
"""A steer is read before the model's next request, a follow-up when the answer has come to its end."""

MOST = 20  # that may wait in one run
TOO_MANY = f"{MOST} messages are waiting already. Send this one when the answer is done."
INPUTS = RunInput.metadata.tables["run_inputs"]
_STEER, _FOLLOW_UP = literal_column("'steer'"), literal_column("'follow_up'")
_OWNER, _CONVERSATION, _RUN, _ID = (bindparam(name, type_=Text) for name in ("owner", "conversation", "run", "id"))
_UNREAD = and_(INPUTS.c.user_id == _OWNER, INPUTS.c.taken_at.is_(None), INPUTS.c.dropped_at.is_(None))
_HERE = and_(_UNREAD, INPUTS.c.conversation_id == _CONVERSATION)


@dataclass(frozen=True)
class Input:
    """A message that was not read yet; `is_queued` as long as its run goes on or waits, afterwards it is unsent."""

    said: Said
    mode: Mode
    run_id: str
    is_queued: bool


@dataclass(frozen=True)
class Added:
    """What became of a message: `run_id` is the run that will read it, None where none is running.

    Without `input_id` the inbox is full. `overtaken` are the follow-ups that were dropped for a steer.
    """

    run_id: str | None
    input_id: str | None = None
    overtaken: tuple[str, ...] = ()


def _add() -> Statement:
    """The running run of the conversation, or none; with it what was added to its inbox and what that dropped.

    The run is held meanwhile: it cannot end without having seen what is added. Which counts as asked.
    """
    open_runs = select(RUNS.c.id).where(
        RUNS.c.user_id == _OWNER,
        RUNS.c.conversation_id == _CONVERSATION,
        RUNS.c.status == RUNNING,
        ~RUNS.c.stop_requested,
        RUNS.c.id == func.coalesce(_RUN, RUNS.c.id),
    )
    run = open_runs.with_for_update(read=True).cte("run")
    mode = bindparam("mode", type_=Text)
    # A steer takes the place of follow-ups, however many there are.
    counts = or_(mode == _FOLLOW_UP, INPUTS.c.mode == _STEER)
    waiting = select(func.count()).where(_HERE, INPUTS.c.run_id == run.c.id, counts)
    given = {
        "user_id": _OWNER,
        "id": _ID,
        "conversation_id": _CONVERSATION,
        "run_id": run.c.id,
        "mode": mode,
        "said": bindparam("said", type_=JSONB),
        "created_at": bindparam("created_at", type_=TIMESTAMP(timezone=True)),
    }
    row = select(*given.values()).where(waiting.scalar_subquery() < bindparam("most", type_=Integer))
    added = insert(INPUTS).from_select(list(given), row.select_from(run)).returning(INPUTS.c.id).cte("added")
    # It has ended when it begins, and is no run of a conversation: all that it does is count.
    counted = (
        insert(RUNS)
        .from_select(
            ["user_id", "id", "status", "outcome", "usage", "ended_at"],
            select(_OWNER, added.c.id, literal("ended"), literal("completed"), leases.NO_TURN, func.now()),
        )
        .cte("counted")
    )
    overtaken = (
        update(INPUTS)
        .where(
            _HERE,
            INPUTS.c.run_id == run.c.id,
            INPUTS.c.mode == _FOLLOW_UP,
            mode == _STEER,
            exists(select(added.c.id)),
        )
        .values(dropped_at=func.now())
        .returning(INPUTS.c.id)
        .cte("overtaken")
    )
    told = func.pg_notify(leases.ASKED_CHANNEL, run.c.id)
    return Statement(
        select(
            run.c.id.label("run"),
            select(added.c.id).scalar_subquery().label("added"),
            select(func.array_agg(overtaken.c.id)).scalar_subquery().label("overtaken"),
            select(told).where(mode == _STEER, exists(select(added.c.id))).scalar_subquery().label("told"),
        ).add_cte(counted)
    )


def _take() -> Statement:
    """The steers that wait, and at the end, where there is none, the first follow-up; they count as read from here on.

    Nothing without the lease, which is held until the commit.
    """
    other = INPUTS.alias("other")
    unread = and_(
        other.c.user_id == _OWNER,
        other.c.conversation_id == _CONVERSATION,
        other.c.run_id == _RUN,
        other.c.taken_at.is_(None),
        other.c.dropped_at.is_(None),
    )
    first = select(func.min(other.c.id)).where(unread).scalar_subquery()
    steered = select(other.c.id).where(unread, other.c.mode == _STEER).exists()
    held = leases.HELD.cte("held")
    return Statement(
        update(INPUTS)
        .where(
            _HERE,
            INPUTS.c.run_id == held.c.id,
            or_(INPUTS.c.mode == _STEER, and_(bindparam("at_end") == true(), ~steered, INPUTS.c.id == first)),
        )
        .values(taken_at=func.now())
        .returning(INPUTS.c.id, INPUTS.c.said, INPUTS.c.created_at)
    )


def _send_now() -> Statement:
    """A follow-up becomes a steer of the run that it waits for, if that goes on."""
    run = select(RUNS.c.id).where(RUNS.c.user_id == _OWNER, leases.LEASED).with_for_update(read=True)
    run = run.where(RUNS.c.id == select(INPUTS.c.run_id).where(_HERE, INPUTS.c.id == _ID).scalar_subquery()).cte("run")
    sent = (
        update(INPUTS)
        .where(_HERE, INPUTS.c.id == _ID, INPUTS.c.run_id == run.c.id)
        .values(mode=_STEER)
        .returning(INPUTS.c.run_id)
        .cte("sent")
    )
    return Statement(select(sent.c.run_id.label("run"), func.pg_notify(leases.ASKED_CHANNEL, sent.c.run_id)))


_DROPPED = update(INPUTS).values(dropped_at=func.now()).returning(INPUTS.c.id)
_ADD, _TAKE, _SEND_NOW = _add(), _take(), _send_now()
_DROP = Statement(_DROPPED.where(_HERE, INPUTS.c.id == _ID))
_DROP_ALL = Statement(_DROPPED.where(_HERE, INPUTS.c.run_id == _RUN))
_WAITING = Statement(
    select(
        INPUTS.c.id,
        INPUTS.c.run_id,
        INPUTS.c.mode,
        INPUTS.c.said,
        INPUTS.c.created_at,
        exists(select(RUNS.c.id).where(RUNS.c.user_id == _OWNER, RUNS.c.id == INPUTS.c.run_id, leases.LEASED)).label(
            "is_queued"
        ),
    )
    .where(_HERE)
    .order_by(INPUTS.c.id)
)
# Two statements: one that both waits for the run's row and looks would not see what was added while it waited.
_LOCK = Statement(leases.LOCKED)
_END = Statement(
    leases.ENDING.where(
        ~exists(
            select(INPUTS.c.id).where(
                _UNREAD, INPUTS.c.conversation_id == RUNS.c.conversation_id, INPUTS.c.run_id == RUNS.c.id
            )
        )
    )
)


async def send_said(
    pipeline: Pipeline, said: Said, mode: Mode, *, user_id: str, conversation_id: str, run_id: str | None = None
) -> Result:
    """Put a message into the inbox of the conversation's running run, or of that run only; `added` reads the result."""
    return await pipeline.send(
        _ADD,
        id=said.id,
        mode=mode,
        said=Jsonb({"text": said.text, "body": to_jsonable_python(said.body)}),
        created_at=said.created_at,
        owner=user_id,
        conversation=conversation_id,
        run=run_id,
        most=MOST,
    )


async def added(result: Result) -> Added:
    row = await result.fetchone()
    return Added(row["run"], row["added"], tuple(row["overtaken"] or ())) if row else Added(None)


async def take(pipeline: Pipeline, *, user_id: str, conversation_id: str, run_id: str, at_end: bool) -> list[Said]:
    """What the model reads now, in order: the steers; at the end, where there is none, the first follow-up.

    One round trip within the transaction; nothing for a run that has lost its lease.
    """
    where = {"owner": user_id, "conversation": conversation_id, "run": run_id}
    rows = await (await pipeline.send(_TAKE, **where, at_end=at_end)).fetchall()
    return [_said(row) for row in sorted(rows, key=lambda row: row["id"])]


async def send_now(pipeline: Pipeline, input_id: str, *, user_id: str, conversation_id: str) -> Result:
    """Make a steer of a follow-up; the result is its `run`, or nothing where it does not wait any more."""
    return await pipeline.send(_SEND_NOW, id=input_id, owner=user_id, conversation=conversation_id)


async def drop(pipeline: Pipeline, input_id: str, *, user_id: str, conversation_id: str) -> Result:
    """Take back what was not read yet; the result is its id, or nothing."""
    return await pipeline.send(_DROP, id=input_id, owner=user_id, conversation=conversation_id)


async def drop_all(pipeline: Pipeline, *, user_id: str, conversation_id: str, run_id: str) -> None:
    """As a stop does: what waits in the run will not be read."""
    await pipeline.send(_DROP_ALL, owner=user_id, conversation=conversation_id, run=run_id)


async def send_waiting(pipeline: Pipeline, conversation_id: str, *, user_id: str) -> Result:
    """Ask for what is not read yet, also of runs that ended before they could; `waiting` reads the result."""
    return await pipeline.send(_WAITING, owner=user_id, conversation=conversation_id)


async def waiting(result: Result) -> list[Input]:
    rows = await result.fetchall()
    return [Input(_said(row), row["mode"], row["run_id"], row["is_queued"]) for row in rows]


async def lock(pipeline: Pipeline, run_id: str, *, user_id: str) -> Result:
    """Keep others from adding to the inbox until the commit; the result is the run's id if it holds its lease.

    Where there is something to store, `statements.send_last_items` does so.
    """
    return await pipeline.send(_LOCK, run=run_id, owner=user_id)


async def end_if_empty(
    pipeline: Pipeline, run_id: str, *, user_id: str, outcome: leases.Outcome, usage: Mapping[str, Any] | None
) -> Result:
    """Write the outcome, as `leases.end`, of a locked run whose inbox is empty; else the result is nothing."""
    used = None if usage is None else Jsonb(usage)
    return await pipeline.send(_END, run=run_id, owner=user_id, how=outcome, used=used)


def _said(row: Mapping[str, Any]) -> Said:
    created_at: datetime = row["created_at"]
    return Said(id=row["id"], created_at=created_at, **row["said"])
