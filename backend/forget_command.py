import asyncio
import sys
from collections.abc import Sequence
from functools import partial

from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.leases import CONVERSATIONS, RUNS, Limits
from backend.settings import CommandSettings, read_command_settings
from backend.statements import MESSAGES
from backend.turns import Turns
from database import commands, transaction


def run(arguments: Sequence[str]) -> None:
    """`python -m backend forget --user NAME`: stop a person's turns, then delete all conversations and runs."""
    user = commands.person(arguments, name="forget", description="Deletes a person's conversations and runs.")
    settings = read_command_settings()
    commands.run(settings.database_url.get_secret_value(), partial(_forget, user=user, settings=settings))


async def _forget(engine: AsyncEngine, *, user: str, settings: CommandSettings) -> None:
    await _stop_turns(engine, user, settings)
    async with transaction(engine, user) as session:
        connection = await session.connection()
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        # The runs first, as every write of a turn takes its locks; a turn that began just now ends here.
        runs = (await connection.execute(delete(RUNS).where(RUNS.c.user_id == user))).rowcount
        items = await connection.scalar(select(func.count()).where(MESSAGES.c.user_id == user)) or 0
        threads = (await connection.execute(delete(CONVERSATIONS).where(CONVERSATIONS.c.user_id == user))).rowcount
    if not runs + threads:
        raise commands.NothingStored(user)
    sys.stdout.write(f"Deleted for good: threads {threads}, items {items}, runs {runs}.\n")


async def _stop_turns(engine: AsyncEngine, user: str, settings: CommandSettings) -> None:
    """Whichever process they run in: what they were doing is over before anything is deleted."""
    running = select(RUNS.c.conversation_id).where(
        RUNS.c.user_id == user, RUNS.c.status == "running", RUNS.c.conversation_id.is_not(None)
    )
    async with transaction(engine, user) as session:
        conversations = (await (await session.connection()).scalars(running)).all()
    turns = Turns(engine, Limits(), heartbeat_seconds=settings.heartbeat_seconds, lease_seconds=settings.lease_seconds)
    await asyncio.gather(*(turns.stop_conversation(conversation, user_id=user) for conversation in conversations))
