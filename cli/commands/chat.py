"""`./todo chat`: a conversation in this terminal, or one message and its answer."""

import asyncio
import sys
from typing import TYPE_CHECKING

from cli import data_dir, terminal
from cli.chat import server
from cli.chat.options import FAILED, Options, is_dumb
from cli.errors import CliError

if TYPE_CHECKING:
    from cli.chat.screen import TerminalScreen


def run(options: Options) -> int:
    """0 when it was answered or left, 1 failed, 2 no server, 3 consent is needed, 130 stopped."""
    url = server.find(options)
    server.check_token(url, options.token)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue] - both are text files
    if options.execute is None and sys.stdin.isatty() and sys.stdout.isatty():
        if options.approve_all:
            raise CliError("--yes needs --exec TEXT, or text on stdin.")
        return asyncio.run(_talk(options, url))
    text = options.execute if options.execute is not None else _read_stdin()
    text = text.encode(errors="replace").decode()  # arguments may contain bytes that are no text
    if not text.strip():
        terminal.error("There is nothing to say: give --exec TEXT, or text on stdin.")
        return FAILED
    return asyncio.run(_answer(options, url, text))


def _read_stdin() -> str:
    if sys.stdin.isatty():
        raise CliError("A conversation needs a terminal for its output: give --exec TEXT for one answer.")
    return sys.stdin.buffer.read().decode(errors="replace")


async def _talk(options: Options, url: str) -> int:
    from cli.chat.connection import opened
    from cli.chat.terminal_chat import PATIENCE, TerminalChat

    connection = opened(options, url, patience=PATIENCE)
    try:
        return await TerminalChat(options, _open_screen(options), connection).run()
    finally:
        await connection.close()


def _open_screen(options: Options) -> "TerminalScreen":
    if is_dumb():
        from cli.chat.screen import PlainScreen

        return PlainScreen()
    from cli.chat.live_screen import LiveScreen

    return LiveScreen(data_dir.chat_history(options.directory), colour=terminal.has_colour(sys.stdout))


async def _answer(options: Options, url: str, text: str) -> int:
    from cli.chat import single_message
    from cli.chat.connection import opened

    connection = opened(options, url, patience=single_message.PATIENCE)
    try:
        return await single_message.run(text, connection, options)
    finally:
        await connection.close()
