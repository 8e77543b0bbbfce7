import sys
from collections.abc import Sequence

from sqlalchemy import delete, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.models import TaskRow
from service import data_commands
from service.database import transaction

TABLES = ("tasks", "task_calls", "task_changes", "people")
TASKS, CALLS, CHANGES, PEOPLE = (TaskRow.metadata.tables[name] for name in TABLES)


def run(arguments: Sequence[str]) -> None:
    """`python -m mcp_server forget --user NAME`: delete a person's tasks and all that is known of their changes."""
    data_commands.run_for_person(
        _forget, arguments, name="forget", description="Deletes a person's tasks and their changes."
    )


async def _forget(engine: AsyncEngine, *, user: str) -> None:
    async with transaction(engine, user) as session:
        connection = await session.connection()
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        # Whoever adds a task has this row: a call in flight ends before anything is deleted.
        fence = insert(PEOPLE).values(user_id=user, last_task_id=0)
        await connection.execute(
            fence.on_conflict_do_update(index_elements=["user_id"], set_={"last_task_id": PEOPLE.c.last_task_id})
        )
        tasks = (await connection.execute(delete(TASKS).where(TASKS.c.user_id == user))).rowcount
        changes = (await connection.execute(delete(CHANGES).where(CHANGES.c.user_id == user))).rowcount
        calls = (await connection.execute(delete(CALLS).where(CALLS.c.user_id == user))).rowcount
        await connection.execute(delete(PEOPLE).where(PEOPLE.c.user_id == user))
    if not tasks + changes + calls:
        raise data_commands.NothingStored(user)
    sys.stdout.write(f"Deleted for good: tasks {tasks}, changes {changes}.\n")
