import argparse
import sys
from collections.abc import Sequence
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.transcript import reading
from backend.transcript.lines import written
from service import data_commands
from service.database import transaction
from service.database.documents import freeze


def run(arguments: Sequence[str]) -> None:
    """`python -m backend log --user NAME [--thread ID]`: write a person's conversations as lines of JSON."""
    parser = argparse.ArgumentParser(prog="log", description="Writes a person's conversations as lines of JSON.")
    parser.add_argument("--user", required=True, help="the `sub` of the person's tokens; `local` with AUTH_MODE=none")
    parser.add_argument("--thread", help="the id of one conversation; without it all")
    given = parser.parse_args(arguments)
    data_commands.run(partial(_write, user=given.user, thread=given.thread))


async def _write(engine: AsyncEngine, *, user: str, thread: str | None) -> None:
    out, found = sys.stdout.buffer, False
    async with transaction(engine, user) as session:
        await freeze(session)
        ask = reading.within(session, user)
        for conversation in [thread] if thread else await reading.conversations(ask):
            async for line in reading.lines(ask, conversation):
                out.write(written(line).encode())
                found = True
    if not found:
        raise data_commands.NothingStored(f"{user} in {thread}" if thread else user)
