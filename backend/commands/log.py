import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial

from backend.conversations import conversations
from backend.conversations.conversations import Conversation, is_valid
from backend.errors import NotFound
from backend.transcript.event_log import read_conversations, read_log
from backend.transcript.lines import format_line
from common import data_commands
from common.database import Database


def run(arguments: Sequence[str]) -> None:
    """`python -m backend log --user NAME [--thread ID]`: writes a user's conversations as lines of JSON."""
    parser = argparse.ArgumentParser(prog="log", description="Writes a user's conversations as lines of JSON.")
    parser.add_argument("--user", required=True, help="the `sub` of the user's tokens; `local` with AUTH_MODE=none")
    parser.add_argument("--thread", help="the id of one conversation; without it all")
    given = parser.parse_args(arguments)
    data_commands.run(partial(_write, user=given.user, thread=given.thread))


async def _write(database: Database, *, user: str, thread: str | None) -> None:
    """Writes the event logs of a user's conversations to stdout. Raises `NothingStored`."""
    is_empty = True
    async for conversation in _find(database, user, thread):
        async for line in read_log(database, user, conversation):
            sys.stdout.buffer.write(format_line(line).encode())
            is_empty = False
    if is_empty:
        raise data_commands.NothingStored(f"{user} in {thread}" if thread else user)


async def _find(database: Database, user: str, thread: str | None) -> AsyncIterator[Conversation]:
    """Yields the conversation with an id or name, if it exists; without one, all of the user's."""
    if thread is None:
        async for conversation in read_conversations(database, user):
            yield conversation
    elif is_valid(thread):
        try:
            yield await conversations.find(database, user, thread)
        except NotFound:
            return
