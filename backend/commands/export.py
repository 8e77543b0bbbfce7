import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from backend.users import data
from common import data_commands
from common.data_commands import JsonWriter
from common.database import Database

# Only the provider of its model turn can use a replay, which may be long.
_HIDDEN = ("user_id", "password_hash", "target", "proof", "replay")


def run(arguments: Sequence[str]) -> None:
    data_commands.run_for_user(
        _export,
        arguments,
        name="export",
        description="Writes all that is stored of a user's conversations as JSON.",
    )


async def _export(database: Database, *, user: str) -> None:
    writer, count = JsonWriter(sys.stdout.buffer), 0
    async with database.transaction(user, snapshot=True) as tx:
        await tx.lift_timeouts()
        for number, table in enumerate(data.TABLES):
            writer.write_text(f'{"," if number else "{"}\n"{table}": ')
            count += await writer.write_array(_render_rows(data.stream(tx, user, table)))
        writer.write_text("}\n")
    if not count:
        raise data_commands.NothingStored(user)


async def _render_rows(rows: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[Mapping[str, Any]]:
    """Leaves out the user's name, hashes and secrets; of the calendar's address only whether there is one."""
    async for row in rows:
        shown = {name: value for name, value in row.items() if name not in _HIDDEN and not isinstance(value, bytes)}
        if "calendar_hash" in row:
            shown["calendar"] = row["calendar_hash"] is not None
            shown.pop("calendar_hash", None)
        yield shown
