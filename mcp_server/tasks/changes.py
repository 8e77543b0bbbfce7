"""The log of calls and of what they changed: audit, and what makes a call that is sent again harmless."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from sqlalchemy import FromClause, Insert, Subquery, and_, bindparam, exists, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import select

from mcp_server.errors import KeyUsedOtherwise
from mcp_server.models import TaskCall, TaskChange
from mcp_server.tasks import quota
from mcp_server.tasks.quota import HINTS, OWNER, UNLIMITED, Quota
from mcp_server.tasks.task import Stored
from service.database import Session, utc_now

UTC = ZoneInfo("UTC")
CALLS, CHANGES = TaskCall.metadata.tables["task_calls"], TaskChange.metadata.tables["task_changes"]


@dataclass(frozen=True)
class Caller:
    """Whose tasks, who acts on them, the key by which a call sent again is known, how much may be kept, and when."""

    user_id: str
    actor: str = "mcp"
    idempotency_key: str | None = None
    batch: str | None = None
    """What the call belongs to, and can be taken back with: the turn, or the click."""
    undo_batch: str | None = None
    """The batch that the call is to take back."""
    quota: Quota = UNLIMITED
    zone: ZoneInfo | None = None
    """Where the person is, if the call says so."""
    usual_zone: ZoneInfo = UTC
    """Of people of whom nothing is known."""
    clock: Callable[[], datetime] = utc_now


@dataclass(frozen=True)
class Change:
    """A task before and after; None where there was none. `undoes` is the id of the change that this one takes back."""

    before: Stored | None
    after: Stored | None
    undoes: int | None = None

    @property
    def task(self) -> Stored:
        """As it is now, or as it was when it went."""
        task = self.after or self.before
        assert task is not None
        return task


WITHIN = timedelta(days=30)
"""How long a change can be taken back."""
_LATER = CHANGES.alias("later")
_TAKEN_BACK = exists().where(
    _LATER.c.user_id == OWNER, _LATER.c.task_id == CHANGES.c.task_id, _LATER.c.undoes == CHANGES.c.id
)
STANDS = (CHANGES.c.before.is_distinct_from(CHANGES.c.after), CHANGES.c.undoes.is_(None), ~_TAKEN_BACK)
"""Of a change: it changed something, takes nothing back, and was not taken back."""

# Statements are built once: building them costs more than PostgreSQL takes to run them.
_GIVEN = ("user_id", "operation", "arguments", "actor", "idempotency_key", "batch", "created_at")
_VALUES = [bindparam(name, type_=CALLS.c[name].type) for name in _GIVEN]
_ONCE: Any = {"index_elements": ["user_id", "idempotency_key"], "index_where": CALLS.c.idempotency_key.is_not(None)}
_CLAIM = (
    insert(CALLS)
    .values(dict(zip(_GIVEN, _VALUES, strict=True)))
    .on_conflict_do_nothing(**_ONCE)
    .returning(CALLS.c.id, *HINTS)
)
CLAIM_IN_ROOM: Any = (
    insert(CALLS)
    .from_select([*_GIVEN], select(*_VALUES).where(quota.HAS_ROOM))
    .on_conflict_do_nothing(**_ONCE)
    .returning(CALLS.c.id)
    .cte("claim")
)
"""For a statement that also makes the change: no row where the key was used, or a limit may be near."""
_RECORDED = (
    select(CALLS.c.operation, CALLS.c.arguments, CHANGES.c.before, CHANGES.c.after)
    .join(CHANGES, and_(CHANGES.c.call_id == CALLS.c.id, CHANGES.c.user_id == OWNER))
    .where(CALLS.c.user_id == OWNER, CALLS.c.idempotency_key == bindparam("key"))
    .order_by(CHANGES.c.id)
)
CALL: Any = bindparam("call", type_=CALLS.c.id.type)
LOGGED_AT: Any = bindparam("logged_at", type_=CHANGES.c.created_at.type)
# A call of an answer that was given again is the new answer's.
_ADOPT = (
    update(CALLS)
    .where(
        CALLS.c.user_id == OWNER,
        CALLS.c.idempotency_key == bindparam("key"),
        CALLS.c.batch.is_distinct_from(bindparam("new_batch")),
    )
    .values(batch=bindparam("new_batch"))
)


def in_turn(change: FromClause) -> Subquery:
    """The rows, of which none comes before all transactions of the person that have logged changes have ended.

    So a person's changes are committed in the order of their numbers: who has read one has missed none before it. The
    lock is taken as the first row is made, and is the last one that a transaction waits for.
    """
    turn = func.pg_advisory_xact_lock(func.hashtextextended(OWNER, 4))
    columns: list[Any] = [*change.c, turn.label("turn")]
    return select(*columns).subquery("in_turn")


def logged(rows: FromClause, *, order: str, call: Any = CALL) -> Insert:
    """The statement that writes the log of rows with task_id, before, after and undoes, and returns both sides.

    `call` is the id of the call that changes them.
    """
    change = in_turn(rows)
    values: list[Any] = [change.c.task_id, change.c.before, change.c.after, change.c.undoes, LOGGED_AT]
    made = select(OWNER, call, *values).order_by(change.c[order])
    return (
        insert(CHANGES)
        .from_select(["user_id", "call_id", "task_id", "before", "after", "undoes", "created_at"], made)
        .returning(CHANGES.c.before, CHANGES.c.after)
    )


def claim(caller: Caller, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a claim, now."""
    now = caller.clock()
    return {
        "user_id": caller.user_id,
        "operation": operation,
        "arguments": arguments,
        "actor": caller.actor,
        "idempotency_key": caller.idempotency_key,
        "batch": caller.batch,
        "created_at": now,
        "owner": caller.user_id,
        "day_ago": now - quota.DAY,
    }


async def make(
    session: Session,
    caller: Caller,
    *,
    operation: Literal["add", "complete", "update", "delete", "undo"],
    arguments: dict[str, Any],
    work: Callable[[int], Awaitable[Sequence[Change]]],
    adds: int = 0,
    changes: int = 1,
) -> Sequence[Change]:
    """Do the work of a call, which is given the call's id and logs what it changes; returns its changes.

    The call's row is claimed first: the same key sent a second time waits for the first one's transaction, then finds
    its row and is answered from the log. Work that finds no task must raise, so that the claim is rolled back.
    """
    given = claim(caller, operation, arguments)
    claimed = (await session.execute(_CLAIM, given)).one_or_none()
    if claimed is None:
        return await _recorded(session, caller, operation=operation, arguments=arguments)
    counted = {"adds": adds, "changes": changes}
    await quota.check(session, caller.quota, claimed, user_id=caller.user_id, now=given["created_at"], **counted)
    made = await work(claimed.id)
    if not adds and any(change.before is None for change in made):  # the next of a repeat, or what was deleted
        await quota.check_kept(session, caller.quota, claimed, user_id=caller.user_id)
    return made


async def _recorded(session: Session, caller: Caller, *, operation: str, arguments: dict[str, Any]) -> Sequence[Change]:
    params = {"owner": caller.user_id, "key": caller.idempotency_key}
    rows = (await session.execute(_RECORDED, params)).all()
    if any((row.operation, row.arguments) != (operation, arguments) for row in rows) or not rows:
        raise KeyUsedOtherwise
    if caller.batch is not None:
        await session.execute(_ADOPT, params | {"new_batch": caller.batch})
    return [change_of(row) for row in rows]


def change_of(row: Any) -> Change:
    """The change of a row with both sides as JSON."""
    before, after = (side and Stored.model_validate(side) for side in (row.before, row.after))
    return Change(before, after)
