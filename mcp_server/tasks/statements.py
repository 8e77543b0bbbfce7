"""The statements that change tasks, each together with the writing of its log."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from sqlalchemy import CTE, Integer, Text, bindparam, case, cast, column, func, literal, literal_column, null, true
from sqlalchemy import delete as delete_from
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.exc import IntegrityError
from sqlmodel import select

from mcp_server.errors import OneIsOpen
from mcp_server.models import ONE_OPEN, Person
from mcp_server.tasks.changes import (
    CALL,
    CALLS,
    CHANGES,
    CLAIM_IN_ROOM,
    LOGGED_AT,
    OWNER,
    Caller,
    Change,
    change_of,
    in_turn,
    logged,
)
from mcp_server.tasks.task import TASKS, Stored
from service.database import Session

PEOPLE = Person.metadata.tables["people"]
_SHARED = ("description", "due_on", "due_time", "priority", "labels", "repeat")
_NO_TASK, _NO_CHANGE = cast(null(), JSONB), cast(null(), CHANGES.c.undoes.type)


def _snapshot(rows: Any) -> Any:
    named = {name: literal_column(f"'{name}'") for name in Stored.model_fields}
    return func.jsonb_build_object(*(part for name, text in named.items() for part in (text, rows.c[name])))


def _numbers(claim: CTE | None = None) -> Any:
    """So many new ids, none without the claim that they are for.

    The person's row stays locked to the end of the transaction: no number is given twice, or lost by one that fails.
    """
    many = bindparam("many", type_=PEOPLE.c.last_task_id.type)
    given = select(OWNER, many)
    return (
        insert(PEOPLE)
        .from_select(["user_id", "last_task_id"], given if claim is None else given.select_from(claim))
        .on_conflict_do_update(index_elements=["user_id"], set_={"last_task_id": PEOPLE.c.last_task_id + many})
        .returning(PEOPLE.c.last_task_id)
    )


def _add(claim: CTE | None = None) -> Any:
    """Tasks of these titles, numbered in their order, which have all else in common; of the claim, if one is in it."""
    last = _numbers(claim).cte("number")
    titles = (
        func.unnest(bindparam("titles", type_=ARRAY(Text)))
        .table_valued("title", with_ordinality="nth")
        .render_derived()
    )
    number = last.c.last_task_id - bindparam("many") + titles.c.nth
    values = {name: bindparam(f"new_{name}", type_=TASKS.c[name].type) for name in _SHARED}
    series = case((values["repeat"].is_not(None), number), else_=null())
    stamps = {name: bindparam("moment", type_=TASKS.c[name].type) for name in ("created_at", "updated_at")}
    made = (
        insert(TASKS)
        .from_select(
            ["user_id", "id", "title", *values, "series", *stamps],
            select(*[OWNER, number, titles.c.title, *values.values(), series, *stamps.values()]).select_from(
                last.join(titles, true())
            ),
        )
        .returning(TASKS.c.id.label("task_id"), *_sides(_NO_TASK, _snapshot(TASKS)))
        .cte("made")
    )
    return logged(made, order="task_id", call=CALL if claim is None else select(claim.c.id).scalar_subquery())


def _sides(before: Any, after: Any) -> list[Any]:
    return [before.label("before"), after.label("after"), _NO_CHANGE.label("undoes")]


def _edit() -> Any:
    """Write `rows` as they are now, new ones too, delete `ids`, and log `changes` in their order."""
    names = [*Stored.model_fields]
    rows = _recordset("rows", [TASKS.c[name] for name in names])
    new = insert(TASKS).from_select(["user_id", *names], select(*[OWNER, *rows.c]))
    kept = {name: new.excluded[name] for name in names if name != "id"}
    written = new.on_conflict_do_update(index_elements=["user_id", "id"], set_=kept).cte("written")
    gone = delete_from(TASKS).where(*_MINE).cte("gone")
    sides = [column("before", JSONB), column("after", JSONB)]
    log = _recordset("changes", [column("nth", Integer), CHANGES.c.task_id, *sides, CHANGES.c.undoes])
    return logged(log, order="nth").add_cte(written, gone)


def _add_each() -> Any:
    """Write `rows`, new tasks each with the key of its call, which holds no text: it outlives the log of changes."""
    names = [*Stored.model_fields]
    rows = _recordset("rows", [*(TASKS.c[name] for name in names), column("key", Text), column("after", JSONB)])
    about = func.jsonb_build_object("task_id", rows.c.id)
    values = [OWNER, literal("add"), about, bindparam("actor"), rows.c.key, LOGGED_AT]
    claims = insert(CALLS).from_select(
        ["user_id", "operation", "arguments", "actor", "idempotency_key", "created_at"],
        select(*values).order_by(rows.c.id),
    )
    calls = claims.returning(CALLS.c.id, CALLS.c.idempotency_key).cte("calls")
    written = insert(TASKS).from_select(["user_id", *names], select(OWNER, *(rows.c[name] for name in names)))
    made: list[Any] = [calls.c.id.label("call_id"), rows.c.id.label("task_id"), rows.c.after]
    log = in_turn(select(*made).join_from(rows, calls, calls.c.idempotency_key == rows.c.key).subquery("made"))
    changed: list[Any] = [OWNER, log.c.call_id, log.c.task_id, log.c.after, LOGGED_AT]
    return (
        insert(CHANGES)
        .from_select(["user_id", "call_id", "task_id", "after", "created_at"], select(*changed).order_by(log.c.task_id))
        .add_cte(written.cte("written"))
    )


def _recordset(name: str, columns: Sequence[Any]) -> Any:
    """A list of JSON objects as rows."""
    given = func.jsonb_to_recordset(bindparam(name, type_=JSONB))
    return given.table_valued(*(column(c.name, c.type) for c in columns), name=name).render_derived(with_types=True)


_IDS = bindparam("ids", type_=ARRAY(TASKS.c.id.type))
_MINE = (TASKS.c.user_id == OWNER, TASKS.c.id == func.any(_IDS))
_LOCKED = select(*(TASKS.c[name] for name in Stored.model_fields)).where(*_MINE).order_by(TASKS.c.id).with_for_update()
_NUMBERS, _ADD, _ADD_IN_ROOM, _EDIT, _ADD_EACH = _numbers(), _add(), _add(CLAIM_IN_ROOM), _edit(), _add_each()


async def add(session: Session, caller: Caller, call: int, titles: Sequence[str], like: Stored) -> list[Change]:
    """New tasks of these titles, with all else as one that was never stored has it."""
    rows = await session.execute(_ADD, _new(caller, titles, like) | {"call": call})
    return [change_of(row) for row in rows]


async def add_in_room(
    session: Session, caller: Caller, claimed: Mapping[str, Any], titles: Sequence[str], like: Stored
) -> list[Change]:
    """As `add`, with the claim of the call in the same statement: `claimed` has its parameters and those of its room.

    Nothing where that cannot tell whether the call is to be made: its key was used, or a limit may be near.
    """
    rows = await session.execute(_ADD_IN_ROOM, {**_new(caller, titles, like), **claimed})
    return [change_of(row) for row in rows]


def _new(caller: Caller, titles: Sequence[str], like: Stored) -> dict[str, Any]:
    values = {f"new_{name}": getattr(like, name) for name in _SHARED}
    values["new_labels"] = list(like.labels)
    moments = {"moment": like.created_at, "logged_at": caller.clock()}
    return {"owner": caller.user_id, "titles": [*titles], "many": len(titles), **values, **moments}


async def add_each(session: Session, caller: Caller, tasks: Mapping[str, Stored]) -> None:
    """Add tasks that have their ids, each in a call of its own with its key, which no call may have had before."""
    rows = [{**task.as_json(), "key": key, "after": task.as_json()} for key, task in tasks.items()]
    params = {"owner": caller.user_id, "actor": caller.actor, "rows": rows, "logged_at": caller.clock()}
    await session.execute(_ADD_EACH, params)


async def locked(session: Session, caller: Caller, ids: Sequence[int]) -> dict[int, Stored]:
    """Those of the tasks that are there, by id; nobody else changes them before the end of the transaction."""
    rows = await session.execute(_LOCKED, {"owner": caller.user_id, "ids": [*ids]})
    return {row.id: Stored.model_validate(row) for row in rows}


async def numbers(session: Session, caller: Caller, many: int) -> range:
    """So many new ids of the person's own."""
    params = {"owner": caller.user_id, "many": many}
    last = await session.scalar(_NUMBERS, params) or 0
    return range(last - many + 1, last + 1)


async def edit(session: Session, caller: Caller, call: int, changes: Sequence[Change]) -> None:
    """Write the tasks as the changes leave them, and log the changes; each of a task follows the one before."""
    last = {change.task.id: change for change in changes}
    # Of the tasks of one repeat one may be closed and another opened: never are two of them open.
    left = sorted((change.after for change in last.values() if change.after), key=lambda task: task.status)
    rows = [task.as_json() for task in left]
    gone = [id for id, change in last.items() if change.after is None]
    log = [
        {
            "nth": nth,
            "task_id": change.task.id,
            "before": change.before and change.before.as_json(),
            "after": change.after and change.after.as_json(),
            "undoes": change.undoes,
        }
        for nth, change in enumerate(changes)
    ]
    params = {"owner": caller.user_id, "call": call, "rows": rows, "ids": gone, "changes": log}
    params["logged_at"] = caller.clock()
    try:
        await session.execute(_EDIT, params)
    except IntegrityError as error:
        if isinstance(error.orig, psycopg.Error) and error.orig.diag.constraint_name == ONE_OPEN:
            raise OneIsOpen from None
        raise
