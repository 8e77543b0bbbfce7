import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial

from backend.conversations import conversations
from backend.conversations.conversations import Conversation
from backend.errors import NotFound
from backend.transcript import format_line, read_log
from common import data_commands
from common.database import Database

_PAGE = 100  # conversations


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="log", description="Writes a user's conversations as lines of JSON.")
    parser.add_argument("--user", required=True, help="the `sub` of the user's tokens; `local` with AUTH_MODE=none")
    parser.add_argument("--thread", help="the id of one conversation; without it all")
    given = parser.parse_args(arguments)
    data_commands.run(partial(_write, user=given.user, thread=given.thread))


async def _write(database: Database, *, user: str, thread: str | None) -> None:
    is_empty = True
    async for conversation in _find(database, user, thread):
        async for line in read_log(database, user, conversation):
            sys.stdout.buffer.write(format_line(line).encode())
            is_empty = False
    if is_empty:
        raise data_commands.NothingStored(f"{user} in {thread}" if thread else user)


async def _find(database: Database, user: str, thread: str | None) -> AsyncIterator[Conversation]:
    if thread is not None:
        with suppress(NotFound):
            yield await conversations.find(database, user, thread)
        return
    after, has_more = None, True
    while has_more:
        page, has_more = await conversations.load_page(database, user, limit=_PAGE, after=after, oldest_first=True)
        for conversation in page:
            yield conversation
            after = conversation.id
