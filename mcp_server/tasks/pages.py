"""The list of a person's tasks, a page at a time."""

from base64 import b64decode, urlsafe_b64encode
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import bindparam, func
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from mcp_server.arguments import MAX_ID, Status
from mcp_server.errors import CursorOfOtherList, CursorUnknown
from mcp_server.tasks.changes import OWNER, Caller
from mcp_server.tasks.task import TASKS, Task, TaskPage, columns

PAGE_BYTES = 64_000  # of titles and descriptions: whoever reads a page reads it at once


class _Position(BaseModel):
    """What a cursor holds: the last task of the page before, and the filter it was listed with."""

    model_config = ConfigDict(strict=True, extra="forbid")

    v: Literal[1] = 1
    after: int = Field(ge=1, le=MAX_ID)
    status: Status


def _list(*conditions: Any) -> Any:
    """A page: of its tasks, in its order, those that fit into `PAGE_BYTES`, the first in any case.

    The last column, `found`, is how many there were before: the others never leave the database.
    """
    mine = (TASKS.c.user_id == OWNER, TASKS.c.id > bindparam("after"), *conditions)
    page = select(*columns(TASKS)).where(*mine).order_by(TASKS.c.id).limit(bindparam("most")).subquery("page")
    texts = func.octet_length(page.c.title) + func.octet_length(page.c.description)
    before = func.coalesce(func.sum(texts).over(order_by=page.c.id, rows=(None, -1)), 0).label("before")
    sized = select(*[*page.c, before, func.count().over().label("found")]).subquery("sized")
    return select(*columns(sized), *[sized.c.found]).where(sized.c.before < PAGE_BYTES).order_by(sized.c.id)


_LIST, _LIST_BY_STATUS = _list(), _list(TASKS.c.status == bindparam("wanted"))


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
