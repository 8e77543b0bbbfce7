"""What changes a person's tasks. Each function is one statement, and its change is logged in the same one."""

from sqlalchemy import Text, bindparam, case, func
from sqlalchemy import delete as delete_from
from sqlalchemy import update as change
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from mcp_server.errors import NothingToUpdate, TaskNotFound
from mcp_server.models import Person
from mcp_server.tasks import changes
from mcp_server.tasks.changes import OWNER, Caller
from mcp_server.tasks.task import NO_TASK, TASKS, DeletedTask, Task, snapshot

PEOPLE = Person.metadata.tables["people"]

_NEW, _ID = snapshot(TASKS), TASKS.c.id.label("task_id")
_OWNED = (TASKS.c.id == bindparam("task"), TASKS.c.user_id == OWNER)
# RETURNING knows only the new row before PostgreSQL 18: the old one is locked and read first.
_BEFORE = select(*TASKS.c).where(*_OWNED).with_for_update().cte("before")
_CHANGED = (_ID, snapshot(_BEFORE).label("before"), _NEW.label("after"))
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
    .returning(_ID, NO_TASK.label("before"), _NEW.label("after"))
    .cte("made")
)


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
    delete_from(TASKS).where(*_OWNED).returning(_ID, _NEW.label("before"), NO_TASK.label("after")).cte("made")
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
