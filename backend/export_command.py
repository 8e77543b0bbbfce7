import sys
from collections.abc import Sequence
from functools import partial

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.models import Run
from backend.settings import read_command_settings
from database import commands, transaction
from database.documents import Row, Writer, freeze, rows

_TABLES = Run.metadata.tables
CONVERSATIONS, MESSAGES, RUNS = (_TABLES[name] for name in ("conversations", "messages", "runs"))
_THREAD = ("id", "title", "status", "metadata", "created_at")
_ITEM = ("id", "role", "kind", "item", "run_id", "superseded_by", "feedback", "created_at")
_RUN = ("id", "status", "outcome", "usage", "started_at", "ended_at")


def run(arguments: Sequence[str]) -> None:
    """`python -m backend export --user NAME`: write a person's threads with their items, and the runs, as JSON."""
    user = commands.person(arguments, name="export", description="Writes a person's threads and runs as JSON.")
    commands.run(read_command_settings().database_url.get_secret_value(), partial(_export, user=user))


async def _export(engine: AsyncEngine, *, user: str) -> None:
    threads = select(*(CONVERSATIONS.c[name] for name in _THREAD)).where(CONVERSATIONS.c.user_id == user)
    items = select(*(MESSAGES.c[name] for name in _ITEM)).where(MESSAGES.c.user_id == user)
    turns = select(*(RUNS.c[name] for name in _RUN), RUNS.c.conversation_id.label("thread_id"))
    writer = Writer(sys.stdout.buffer)
    async with transaction(engine, user) as session:
        await freeze(session)

        async def write(thread: Row) -> None:
            own = items.where(MESSAGES.c.conversation_id == thread["id"]).order_by(MESSAGES.c.seq)
            await writer.row_with(thread, "items", rows(session, own))

        writer.text('{"threads": ')
        found = await writer.array(rows(session, threads.order_by(CONVERSATIONS.c.id)), write)
        writer.text(',\n"runs": ')
        found += await writer.array(rows(session, turns.where(RUNS.c.user_id == user).order_by(RUNS.c.id)))
        writer.text("}\n")
    if not found:
        raise commands.NothingStored(user)
