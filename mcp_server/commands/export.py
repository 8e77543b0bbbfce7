import sys
from collections.abc import Sequence
from typing import LiteralString

from common import data_commands
from common.data_commands import JsonWriter
from common.database import Database
from mcp_server.imports.importer import ACTOR
from mcp_server.tasks.fields import TASK_COLUMNS

_QUERIES: dict[str, LiteralString] = {
    "tasks": f"SELECT {TASK_COLUMNS} FROM tasks WHERE user_id = %(user)s ORDER BY id",
    "changes": """
        SELECT c.id, c.task_id, k.operation, k.arguments, c.before, c.after, k.actor, k.batch, c.undoes, c.created_at
        FROM task_changes c JOIN task_calls k ON k.user_id = c.user_id AND k.id = c.call_id
        WHERE c.user_id = %(user)s ORDER BY c.id""",
    "imports": """
        SELECT arguments->'task_id' AS task_id, idempotency_key, created_at FROM task_calls
        WHERE user_id = %(user)s AND actor = %(importer)s ORDER BY id""",
    "people": "SELECT week_starts FROM people WHERE user_id = %(user)s",
}


def run(arguments: Sequence[str]) -> None:
    data_commands.run_for_user(
        _export, arguments, name="export", description="Writes a user's tasks and their changes as JSON."
    )


async def _export(database: Database, *, user: str) -> None:
    writer, counts = JsonWriter(sys.stdout.buffer), dict[str, int]()
    async with database.transaction(user, snapshot=True) as tx:
        await tx.lift_timeouts()
        for name, query in _QUERIES.items():
            writer.write_text(",\n" if counts else "{")
            writer.write_text(f'"{name}": ')
            counts[name] = await writer.write_array(tx.stream(query, user=user, importer=ACTOR))
        writer.write_text("}\n")
    if not counts["tasks"] + counts["changes"] + counts["imports"]:
        raise data_commands.NothingStored(user)
