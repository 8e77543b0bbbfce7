"""`./todo chat`: a conversation in this terminal, or one message and its answer."""

import sys

from cli import terminal
from cli.chat import server
from cli.chat.options import FAILED, Options
from cli.errors import CliError


def run(options: Options) -> int:
    """0 when it was answered or left, 1 failed, 2 no server, 3 consent is needed, 130 stopped."""
    url = server.find(options)
    server.check_token(url, options.token)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue] - both are text files
    if options.execute is None and sys.stdin.isatty() and sys.stdout.isatty():
        from cli.chat import conversation

        if options.approve_all:
            raise CliError("--yes needs --exec TEXT, or text on stdin.")
        return conversation.run(options, url)
    text = _storable(options.execute if options.execute is not None else _given())
    if not text.strip():
        terminal.error("There is nothing to say: give --exec TEXT, or text on stdin.")
        return FAILED
    return _once(options, url, text)


def _given() -> str:
    if sys.stdin.isatty():
        raise CliError("A conversation needs a terminal for its output: give --exec TEXT for one answer.")
    return sys.stdin.buffer.read().decode(errors="replace")


def _once(options: Options, url: str, text: str) -> int:
    import asyncio

    from cli.chat.connection import opened
    from cli.chat.once import PATIENCE, Once

    async def answered() -> int:
        connection = opened(options, url, patience=PATIENCE)
        try:
            return await Once(connection, options).run(text)
        finally:
            await connection.close()

    return asyncio.run(answered())


def _storable(text: str) -> str:
    """What was given in bytes that are no text is shown as such."""
    return text.encode(errors="replace").decode()
