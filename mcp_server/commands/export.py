import sys
from collections.abc import Sequence

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.imports.adding import ACTOR
from mcp_server.models import Person
from mcp_server.tasks.changes import CALLS, CHANGES
from mcp_server.tasks.task import TASKS, Stored
from service import data_commands
from service.database import transaction
from service.database.documents import Writer, freeze, rows

PEOPLE = Person.metadata.tables["people"]

_CHANGE = (
    *(CHANGES.c.id, CHANGES.c.task_id, CALLS.c.operation, CALLS.c.arguments, CHANGES.c.before, CHANGES.c.after),
    *(CALLS.c.actor, CALLS.c.batch, CHANGES.c.undoes, CHANGES.c.created_at),
)


def run(arguments: Sequence[str]) -> None:
    """`python -m mcp_server export --user NAME`: write a person's tasks and all their changes as JSON."""
    data_commands.run_for_person(
        _export, arguments, name="export", description="Writes a person's tasks and their changes as JSON."
    )


async def _export(engine: AsyncEngine, *, user: str) -> None:
    tasks = select(*(TASKS.c[name] for name in Stored.model_fields)).where(TASKS.c.user_id == user).order_by(TASKS.c.id)
    made = and_(CHANGES.c.call_id == CALLS.c.id, CHANGES.c.user_id == CALLS.c.user_id)
    changes = select(*_CHANGE).join_from(CHANGES, CALLS, made).where(CHANGES.c.user_id == user).order_by(CHANGES.c.id)
    people = select(PEOPLE.c.time_zone, PEOPLE.c.week_starts).where(PEOPLE.c.user_id == user)
    imported = select(CALLS.c.arguments["task_id"].label("task_id"), CALLS.c.idempotency_key, CALLS.c.created_at)
    imports = imported.where(CALLS.c.user_id == user, CALLS.c.actor == ACTOR).order_by(CALLS.c.id)
    writer = Writer(sys.stdout.buffer)
    async with transaction(engine, user) as session:
        await freeze(session)
        writer.text('{"tasks": ')
        found = await writer.array(rows(session, tasks))
        writer.text(',\n"changes": ')
        found += await writer.array(rows(session, changes))
        writer.text(',\n"imports": ')
        found += await writer.array(rows(session, imports))
        writer.text(',\n"people": ')
        await writer.array(rows(session, people))
        writer.text("}\n")
    if not found:
        raise data_commands.NothingStored(user)
