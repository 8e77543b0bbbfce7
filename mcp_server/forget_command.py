import sys
from collections.abc import Sequence
from functools import partial

from sqlalchemy import delete, text
from sqlalchemy.ext.asyncio import AsyncEngine

from database import commands, transaction
from mcp_server.models import TaskChange, TaskRow
from mcp_server.settings import read_command_settings

TASKS, CHANGES = TaskRow.metadata.tables["tasks"], TaskChange.metadata.tables["task_changes"]


def run(arguments: Sequence[str]) -> None:
    """`python -m mcp_server forget --user NAME`: delete a person's tasks and all that is known of their changes."""
    user = commands.person(arguments, name="forget", description="Deletes a person's tasks and their changes.")
    commands.run(read_command_settings().database_url.get_secret_value(), partial(_forget, user=user))


async def _forget(engine: AsyncEngine, *, user: str) -> None:
    async with transaction(engine, user) as session:
        connection = await session.connection()
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        tasks = (await connection.execute(delete(TASKS).where(TASKS.c.user_id == user))).rowcount
        changes = (await connection.execute(delete(CHANGES).where(CHANGES.c.user_id == user))).rowcount
    if not tasks + changes:
        raise commands.NothingStored(user)
    sys.stdout.write(f"Deleted for good: tasks {tasks}, changes {changes}.\n")
