"""The log of calls and of what they changed: audit, and what makes a call that is sent again harmless."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import CTE, Insert, and_, bindparam
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from mcp_server.errors import KeyUsedOtherwise
from mcp_server.models import TaskCall, TaskChange
from mcp_server.tasks import quota
from mcp_server.tasks.quota import HINTS, OWNER, UNLIMITED, Quota

CALLS, CHANGES = TaskCall.metadata.tables["task_calls"], TaskChange.metadata.tables["task_changes"]


@dataclass(frozen=True)
class Caller:
    """Whose tasks, who acts on them, the key by which a call sent again is known, and how much may be kept."""

    user_id: str
    actor: str = "mcp"
    idempotency_key: str | None = None
    quota: Quota = UNLIMITED


@dataclass(frozen=True)
class Change:
    """A task before and after, as JSON; None where there was none."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


# Statements are built once: building them costs more than PostgreSQL takes to run them.
_CLAIM = (
    insert(CALLS)
    .on_conflict_do_nothing(
        index_elements=["user_id", "idempotency_key"], index_where=CALLS.c.idempotency_key.is_not(None)
    )
    .returning(CALLS.c.id, *HINTS)
)
_RECORDED = (
    select(CALLS.c.operation, CALLS.c.arguments, CHANGES.c.before, CHANGES.c.after)
    .join(CHANGES, and_(CHANGES.c.call_id == CALLS.c.id, CHANGES.c.user_id == OWNER))
    .where(CALLS.c.user_id == OWNER, CALLS.c.idempotency_key == bindparam("key"))
)


def logged(change: CTE) -> Insert:
    """The statement of a change, which returns task_id, before and after, together with the writing of its log."""
    call = bindparam("claimed", type_=CALLS.c.id.type)
    row: list[Any] = [OWNER, call, change.c.task_id, change.c.before, change.c.after]
    made = select(*row)
    return (
        insert(CHANGES)
        .from_select(["user_id", "call_id", "task_id", "before", "after"], made)
        .returning(CHANGES.c.before, CHANGES.c.after)
    )


async def make(
    session: AsyncSession,
    caller: Caller,
    *,
    operation: Literal["add", "complete", "update", "delete"],
    arguments: dict[str, Any],
    statement: Insert,
    values: Mapping[str, Any],
) -> Change | None:
    """Run a `logged` statement with its values; None if it found no task.

    The call's row is claimed first: the same key sent a second time waits for the first one's transaction, then finds
    its row and is answered from the log. Who gets None must raise, so that the claim is rolled back.
    """
    claim = {
        "user_id": caller.user_id,
        "operation": operation,
        "arguments": arguments,
        "actor": caller.actor,
        "idempotency_key": caller.idempotency_key,
        "owner": caller.user_id,
    }
    connection = await session.connection()
    claimed = (await connection.execute(_CLAIM, claim)).one_or_none()
    if claimed is None:
        return await _recorded(session, caller, operation=operation, arguments=arguments)
    await quota.check(connection, caller.quota, claimed, user_id=caller.user_id, adds=int(operation == "add"))
    params = {**values, "owner": caller.user_id, "claimed": claimed.id}
    row = (await connection.execute(statement, params)).one_or_none()
    return Change(before=row.before, after=row.after) if row else None


async def _recorded(session: AsyncSession, caller: Caller, *, operation: str, arguments: dict[str, Any]) -> Change:
    params = {"owner": caller.user_id, "key": caller.idempotency_key}
    recorded_operation, recorded_arguments, before, after = (await session.exec(_RECORDED, params=params)).one()
    if (recorded_operation, recorded_arguments) != (operation, arguments):
        raise KeyUsedOtherwise
    return Change(before=before, after=after)
