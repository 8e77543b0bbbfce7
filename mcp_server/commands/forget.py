import sys
from collections.abc import Sequence
from typing import LiteralString

from common import data_commands
from common.database import Database
from mcp_server.tasks.changes import LOCK

TABLES: tuple[LiteralString, ...] = ("tasks", "task_changes", "task_calls", "people")


def run(arguments: Sequence[str]) -> None:
    data_commands.run_for_user(
        _forget, arguments, name="forget", description="Deletes a user's tasks and their changes."
    )


async def _forget(database: Database, *, user: str) -> None:
    async with database.transaction(user) as tx:
        await tx.lift_timeouts()
        await tx.execute(LOCK)  # a running call ends before anything is deleted
        deleted = [await tx.execute(f"DELETE FROM {table} WHERE user_id = %(user)s", user=user) for table in TABLES]
    tasks, changes, calls, _ = (cursor.rowcount for cursor in deleted)
    if not tasks + changes + calls:
        raise data_commands.NothingStored(user)
    sys.stdout.write(f"Deleted for good: tasks {tasks}, changes {changes}.\n")
