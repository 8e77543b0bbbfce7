import asyncio
import sys
from collections.abc import Sequence

from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import KeptRequest
from backend.conversation.runs.leases import CONVERSATIONS, RUNS
from backend.conversation.runs.limits import Limits
from backend.conversation.statements import MESSAGES
from backend.settings import LeaseSettings
from backend.turn.turns import Turns
from service import data_commands
from service.database import transaction
from service.environment import read

KEPT = KeptRequest.metadata.tables["kept_requests"]
PROFILES, ENDED = (KeptRequest.metadata.tables[name] for name in ("profiles", "ended_sessions"))


def run(arguments: Sequence[str]) -> None:
    """`python -m backend forget --user NAME`: stop a person's turns, then delete all conversations and runs."""
    data_commands.run_for_person(
        _forget, arguments, name="forget", description="Deletes a person's conversations and runs."
    )


async def _forget(engine: AsyncEngine, *, user: str) -> None:
    await _stop_turns(engine, user, read(LeaseSettings))
    async with transaction(engine, user) as session:
        connection = await session.connection()
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        # First the conversations, as who begins a turn locks them, then the runs; one that began just now ends here.
        theirs = select(CONVERSATIONS.c.id).where(CONVERSATIONS.c.user_id == user).order_by(CONVERSATIONS.c.id)
        await connection.execute(theirs.with_for_update(key_share=True))
        runs = (await connection.execute(delete(RUNS).where(RUNS.c.user_id == user))).rowcount
        items = await connection.scalar(select(func.count()).where(MESSAGES.c.user_id == user)) or 0
        threads = (await connection.execute(delete(CONVERSATIONS).where(CONVERSATIONS.c.user_id == user))).rowcount
        kept = (await connection.execute(delete(KEPT).where(KEPT.c.user_id == user))).rowcount
        sessions = (await connection.execute(delete(ENDED).where(ENDED.c.user_id == user))).rowcount
        profiles = (await connection.execute(delete(PROFILES).where(PROFILES.c.user_id == user))).rowcount
    if not runs + threads + kept + sessions + profiles:
        raise data_commands.NothingStored(user)
    sys.stdout.write(
        f"Deleted for good: threads {threads}, items {items}, runs {runs}, kept requests {kept}, "
        f"ended sessions {sessions}, profiles {profiles}.\n"
    )


async def _stop_turns(engine: AsyncEngine, user: str, settings: LeaseSettings) -> None:
    """Whichever process they run in: what they were doing is over before anything is deleted."""
    running = select(RUNS.c.conversation_id).where(
        RUNS.c.user_id == user, RUNS.c.status == "running", RUNS.c.conversation_id.is_not(None)
    )
    async with transaction(engine, user) as session:
        conversations = (await (await session.connection()).scalars(running)).all()
    turns = Turns(engine, Limits(), heartbeat_seconds=settings.heartbeat_seconds, lease_seconds=settings.lease_seconds)
    await asyncio.gather(*(turns.stop_conversation(conversation, user_id=user) for conversation in conversations))
