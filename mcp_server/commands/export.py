import sys
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.models import TaskChange, TaskRow
from service import data_commands
from service.database import transaction
from service.database.documents import Writer, freeze, rows

TASKS, CHANGES = TaskRow.metadata.tables["tasks"], TaskChange.metadata.tables["task_changes"]

_TASK = ("id", "title", "description", "status", "created_at", "updated_at", "completed_at")
_CHANGE = ("id", "task_id", "operation", "arguments", "before", "after", "actor", "created_at")


def run(arguments: Sequence[str]) -> None:
    """`python -m mcp_server export --user NAME`: write a person's tasks and all their changes as JSON."""
    data_commands.run_for_person(
        _export, arguments, name="export", description="Writes a person's tasks and their changes as JSON."
    )


async def _export(engine: AsyncEngine, *, user: str) -> None:
    tasks = select(*(TASKS.c[name] for name in _TASK)).where(TASKS.c.user_id == user).order_by(TASKS.c.id)
    changes = select(*(CHANGES.c[name] for name in _CHANGE)).where(CHANGES.c.user_id == user).order_by(CHANGES.c.id)
    writer = Writer(sys.stdout.buffer)
    async with transaction(engine, user) as session:
        await freeze(session)
        writer.text('{"tasks": ')
        found = await writer.array(rows(session, tasks))
        writer.text(',\n"changes": ')
        found += await writer.array(rows(session, changes))
        writer.text("}\n")
    if not found:
        raise data_commands.NothingStored(user)
