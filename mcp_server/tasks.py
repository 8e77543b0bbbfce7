"""The tasks of one person. Each function is one statement; each change is logged in the same transaction."""

from base64 import b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import FromClause, Text, bindparam, case, cast, func, null
from sqlalchemy import delete as delete_from
from sqlalchemy import update as change
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from mcp_server import changes
from mcp_server.arguments import MAX_ID, Status
from mcp_server.changes import OWNER, Caller
from mcp_server.errors import CursorOfOtherList, CursorUnknown, NothingToUpdate, TaskNotFound
from mcp_server.models import Person, TaskRow
from service.database import to_utc

TASKS, PEOPLE = TaskRow.metadata.tables["tasks"], Person.metadata.tables["people"]

PAGE_BYTES = 64_000  # of titles and descriptions: whoever reads a page reads it at once

Moment = Annotated[datetime, AfterValidator(to_utc)]


class Task(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    description: str
    status: Literal["pending", "completed"]
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None


class TaskPage(BaseModel):
    model_config = ConfigDict(frozen=True)

    tasks: tuple[Task, ...]
    next_cursor: str | None = Field(description="Give it as cursor to get the next page; null on the last one.")


class DeletedTask(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    deleted: Literal[True]


class _Position(BaseModel):
    """What a cursor holds: the last task of the page before, and the filter it was listed with."""

    model_config = ConfigDict(strict=True, extra="forbid")

    v: Literal[1] = 1
    after: int = Field(ge=1, le=MAX_ID)
    status: Status


def _columns(rows: FromClause) -> list[Any]:
    return [rows.c[name] for name in Task.model_fields]


def _snapshot(rows: FromClause) -> Any:
    return func.jsonb_build_object(*(part for name in Task.model_fields for part in (name, rows.c[name])))


_NO_TASK = cast(null(), JSONB)
_NEW, _ID = _snapshot(TASKS), TASKS.c.id.label("task_id")
_OWNED = (TASKS.c.id == bindparam("task"), TASKS.c.user_id == OWNER)
_STATUS = bindparam("wanted")
# RETURNING knows only the new row before PostgreSQL 18: the old one is locked and read first.
_BEFORE = select(*TASKS.c).where(*_OWNED).with_for_update().cte("before")
_CHANGED = (_ID, _snapshot(_BEFORE).label("before"), _NEW.label("after"))
_PENDING = TASKS.c.status == "pending"

# The person's row stays locked to the end of the transaction: no number is given twice, or lost by one that fails.
_NUMBER = (
    insert(PEOPLE)
    .values(user_id=OWNER, last_task_id=1)
    .on_conflict_do_update(index_elements=["user_id"], set_={"last_task_id": PEOPLE.c.last_task_id + 1})
    .returning(PEOPLE.c.last_task_id)
    .cte("number")
)
_ADD = changes.logged(
    insert(TASKS)
    .from_select(
        ["user_id", "id", "title", "description"],
        select(
            OWNER, _NUMBER.c.last_task_id, bindparam("new_title", type_=Text), bindparam("new_description", type_=Text)
        ),
    )
    .returning(_ID, _NO_TASK.label("before"), _NEW.label("after"))
    .cte("made")
)


def _list(*conditions: Any) -> Any:
    """A page: of its tasks, in its order, those that fit into `PAGE_BYTES`, the first in any case.

    The last column, `found`, is how many there were before: the others never leave the database.
    """
    mine = (TASKS.c.user_id == OWNER, TASKS.c.id > bindparam("after"), *conditions)
    page = select(*_columns(TASKS)).where(*mine).order_by(TASKS.c.id).limit(bindparam("most")).subquery("page")
    texts = func.octet_length(page.c.title) + func.octet_length(page.c.description)
    before = func.coalesce(func.sum(texts).over(order_by=page.c.id, rows=(None, -1)), 0).label("before")
    sized = select(*[*page.c, before, func.count().over().label("found")]).subquery("sized")
    return select(*_columns(sized), *[sized.c.found]).where(sized.c.before < PAGE_BYTES).order_by(sized.c.id)


_LIST, _LIST_BY_STATUS = _list(), _list(TASKS.c.status == _STATUS)
_COMPLETE = changes.logged(
    change(TASKS)
    .where(*_OWNED, TASKS.c.id == _BEFORE.c.id)
    .values(
        status="completed",
        completed_at=case((_PENDING, func.now()), else_=TASKS.c.completed_at),
        updated_at=case((_PENDING, func.now()), else_=TASKS.c.updated_at),
    )
    .returning(*_CHANGED)
    .cte("made")
)
_UPDATE = changes.logged(
    change(TASKS)
    .where(*_OWNED, TASKS.c.id == _BEFORE.c.id)
    .values(
        title=func.coalesce(bindparam("new_title", type_=TASKS.c.title.type), TASKS.c.title),
        description=func.coalesce(bindparam("new_description", type_=TASKS.c.title.type), TASKS.c.description),
        updated_at=func.now(),
    )
    .returning(*_CHANGED)
    .cte("made")
)
_DELETE = changes.logged(
    delete_from(TASKS).where(*_OWNED).returning(_ID, _NEW.label("before"), _NO_TASK.label("after")).cte("made")
)


async def add(session: AsyncSession, caller: Caller, *, title: str, description: str = "") -> Task:
    made = await changes.make(
        session,
        caller,
        operation="add",
        arguments={"title": title, "description": description},
        statement=_ADD,
        values={"new_title": title, "new_description": description},
    )
    return Task.model_validate(made and made.after)


async def list_page(
    session: AsyncSession, caller: Caller, *, status: Status = "all", cursor: str | None = None, limit: int = 50
) -> TaskPage:
    """Tasks in the order they were added; what is added or deleted between pages moves none of the others.

    A page has `limit` tasks, or as many as fit into `PAGE_BYTES`.
    """
    after = _read(cursor, status=status).after if cursor is not None else 0
    params = {"owner": caller.user_id, "after": after, "most": limit + 1}
    if status == "all":
        found = await session.exec(_LIST, params=params)
    else:
        found = await session.exec(_LIST_BY_STATUS, params={**params, "wanted": status})
    rows = found.mappings().all()
    page = tuple(Task.model_validate(dict(row)) for row in rows[:limit])
    if not rows or rows[0]["found"] == len(page):
        return TaskPage(tasks=page, next_cursor=None)
    return TaskPage(tasks=page, next_cursor=_written(_Position(after=page[-1].id, status=status)))


async def complete(session: AsyncSession, caller: Caller, *, task_id: int) -> Task:
    """The task as completed; one that already was keeps its times, and the log says that nothing changed."""
    made = await changes.make(
        session,
        caller,
        operation="complete",
        arguments={"task_id": task_id},
        statement=_COMPLETE,
        values={"task": task_id},
    )
    if made is None:
        raise TaskNotFound(task_id=task_id)
    return Task.model_validate(made.after)


async def update(
    session: AsyncSession, caller: Caller, *, task_id: int, title: str | None = None, description: str | None = None
) -> Task:
    """None leaves a field as it is; an empty description clears it."""
    given = {name: text for name, text in (("title", title), ("description", description)) if text is not None}
    if not given:
        raise NothingToUpdate
    made = await changes.make(
        session,
        caller,
        operation="update",
        arguments={"task_id": task_id, **given},
        statement=_UPDATE,
        values={"task": task_id, "new_title": title, "new_description": description},
    )
    if made is None:
        raise TaskNotFound(task_id=task_id)
    return Task.model_validate(made.after)


async def delete(session: AsyncSession, caller: Caller, *, task_id: int) -> DeletedTask:
    made = await changes.make(
        session,
        caller,
        operation="delete",
        arguments={"task_id": task_id},
        statement=_DELETE,
        values={"task": task_id},
    )
    if made is None or made.before is None:
        raise TaskNotFound(task_id=task_id)
    return DeletedTask(id=made.before["id"], title=made.before["title"], deleted=True)


def _written(position: _Position) -> str:
    return urlsafe_b64encode(position.model_dump_json().encode()).rstrip(b"=").decode()


def _read(cursor: str, *, status: Status) -> _Position:
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = _Position.model_validate_json(raw)
    except ValueError:
        raise CursorUnknown from None
    if position.status != status:
        raise CursorOfOtherList(status=position.status)
    return position
