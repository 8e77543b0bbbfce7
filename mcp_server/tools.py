"""The five tools: what a model reads of them, and nothing else. Their order is the order they are listed in."""

from fastmcp.tools import Tool
from mcp_types import ToolAnnotations
from sqlmodel.ext.asyncio.session import AsyncSession

from mcp_server.arguments import (
    Cursor,
    Description,
    Limit,
    NewDescription,
    NewTitle,
    StatusFilter,
    TaskId,
    Title,
    UserId,
)
from mcp_server.calls.caller import CALLER, SESSION
from mcp_server.tasks import edits, pages
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.task import DeletedTask, Task, TaskPage

# Keyword-only, so that `user_id` comes first although it may be left out.


async def add_task(
    *,
    user_id: UserId = None,
    title: Title,
    description: Description = None,
    session: AsyncSession = SESSION,
    caller: Caller = CALLER,
) -> Task:
    """Add one task."""
    return await edits.add(session, caller, title=title, description=description or "")


async def list_tasks(
    *,
    user_id: UserId = None,
    status: StatusFilter = "all",
    cursor: Cursor = None,
    limit: Limit = 50,
    session: AsyncSession = SESSION,
    caller: Caller = CALLER,
) -> TaskPage:
    """List tasks, oldest first, a page at a time."""
    return await pages.list_page(session, caller, status=status or "all", cursor=cursor, limit=limit or 50)


async def complete_task(
    *,
    user_id: UserId = None,
    task_id: TaskId,
    session: AsyncSession = SESSION,
    caller: Caller = CALLER,
) -> Task:
    """Mark one task as completed."""
    return await edits.complete(session, caller, task_id=task_id)


async def update_task(
    *,
    user_id: UserId = None,
    task_id: TaskId,
    title: NewTitle = None,
    description: NewDescription = None,
    session: AsyncSession = SESSION,
    caller: Caller = CALLER,
) -> Task:
    """Change the title or the description of one task, or both."""
    return await edits.update(session, caller, task_id=task_id, title=title, description=description)


async def delete_task(
    *,
    user_id: UserId = None,
    task_id: TaskId,
    session: AsyncSession = SESSION,
    caller: Caller = CALLER,
) -> DeletedTask:
    """Delete one task for good."""
    return await edits.delete(session, caller, task_id=task_id)


def _hints(*, reads: bool = False, destroys: bool = False, idempotent: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


TOOLS = (
    Tool.from_function(add_task, title="Add a task", annotations=_hints(idempotent=False)),
    Tool.from_function(list_tasks, title="List tasks", annotations=_hints(reads=True)),
    Tool.from_function(complete_task, title="Complete a task", annotations=_hints()),
    Tool.from_function(update_task, title="Update a task", annotations=_hints(destroys=True)),
    Tool.from_function(delete_task, title="Delete a task", annotations=_hints(destroys=True)),
)
