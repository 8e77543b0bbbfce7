"""`./todo chat`: a conversation in this terminal, or one message and its answer."""

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli import data_dir, terminal
from cli.arguments import Commands, UsageError, add_command, conversation, parse_existing_directory, temperature, url
from cli.chat import NEWEST
from cli.errors import CliError

if TYPE_CHECKING:
    from cli.chat.screen import TerminalScreen

# Seconds without the server in the middle of an answer, which in a conversation the user can stop.
_PATIENCE, _SHORT_PATIENCE = 3_600, 30


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "chat",
        run,
        "talk to the assistant in this terminal",
        "Shows the conversations of the page in this terminal. With --exec, or text on stdin, it sends one message, or "
        "carries out one slash command, and prints the answer to stdout and everything else to stderr. Exit status 0: "
        "answered, 1: failed, 2: no server, 3: an approval is needed, 130: stopped. To sign in, set TODO_TOKEN.",
    )
    parser.add_argument("--exec", dest="execute", metavar="TEXT", help="send this message, print the answer and exit")
    parser.add_argument(
        "--json", action="store_true", help="with --exec or text on stdin: print the answer's events as lines of JSON"
    )
    parser.add_argument(
        "--yes", action="store_true", help="with --exec or text on stdin: approve whatever the assistant asks to do"
    )
    parser.add_argument("--thread", type=conversation, metavar="ID", help="continue this conversation, by id or name")
    for flag, thread, does in (
        ("--continue", NEWEST, "continue the conversation that was used last"),
        ("--new", None, "start a new conversation (the default)"),
    ):
        parser.add_argument(flag, dest="thread", action="store_const", const=thread, default=None, help=does)
    here = "let agents work in this directory; they ask before the first change"
    parser.add_argument("--directory", type=parse_existing_directory, metavar="DIR", help=here)
    parser.add_argument(
        "--here", dest="directory", action="store_const", const=Path(), help="the same, in the current directory"
    )
    parser.add_argument("--model", metavar="NAME", help="the model that answers, one of LLM_MODELS")
    default = "the temperature of the model (default: as set on the server)"
    parser.add_argument("--temp", type=temperature, metavar="0-2", help=default)
    parser.add_argument("--url", type=url, help="the address of the assistant (default: ./todo up here)")
    parser.add_argument("--debug", action="store_true", help="show every event")


def run(arguments: argparse.Namespace) -> int:
    if arguments.directory is not None and (arguments.thread is not None or arguments.url):
        raise UsageError(
            "--here and --directory begin a new conversation with ./todo up on this machine: leave out --thread, "
            "--continue and --url."
        )
    if arguments.directory is not None and not terminal.is_text(str(arguments.directory.resolve())):
        raise UsageError("The path of the directory is not UTF-8 text. Rename it, or choose another one.")
    import asyncio

    from cli.chat import server

    address = arguments.url or server.find(arguments.data_dir)
    server.check_token(address, os.environ.get("TODO_TOKEN"))
    text = arguments.execute
    if text is None and sys.stdin.isatty() and sys.stdout.isatty():
        if arguments.yes:
            raise CliError("--yes needs --exec TEXT, or text on stdin.")
        return asyncio.run(_chat(arguments, address, None))
    text = _read_stdin() if text is None else text
    if not text.strip():
        raise UsageError("There is nothing to say: give --exec TEXT, or text on stdin.")
    return asyncio.run(_chat(arguments, address, text))


def _read_stdin() -> str:
    if sys.stdin.isatty():
        raise CliError("A conversation needs a terminal for its output: give --exec TEXT for one answer.")
    text = os.fsdecode(sys.stdin.buffer.read())
    if not terminal.is_text(text):
        raise UsageError(
            "Standard input is not UTF-8 text. Convert it first, for example with iconv -f latin1 -t utf-8."
        )
    return text


async def _chat(arguments: argparse.Namespace, address: str, text: str | None) -> int:
    from cli.chat.connection import Connection, OwnerSecret
    from cli.services.environment import find_time_zone
    from todo_client.connection import ApiError, ConnectionLost

    connection = Connection(
        address,
        os.environ.get("TODO_TOKEN") or None,
        find_time_zone(os.environ),
        arguments.model,
        arguments.temp,
        patience=_PATIENCE if text is None else _SHORT_PATIENCE,
        directory=str(arguments.directory.resolve()) if arguments.directory is not None else None,
        # Sent to the ./todo up of this machine's data directory, and nowhere else.
        auth=OwnerSecret(arguments.data_dir) if arguments.url is None else None,
    )
    try:
        with contextlib.suppress(ApiError, ConnectionLost):  # the message's own error says more
            if left_out := await connection.check_temperature():
                terminal.notice(left_out)
        if text is not None:
            from cli.chat import single_message

            return await single_message.run(text, connection, arguments)
        from cli.chat.terminal_chat import TerminalChat

        return await TerminalChat(arguments, _open_screen(arguments.data_dir), connection).run()
    finally:
        await connection.close()


def _open_screen(directory: Path) -> "TerminalScreen":
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        from cli.chat.screen import PlainScreen

        return PlainScreen()
    from cli.chat.live_screen import LiveScreen

    return LiveScreen(data_dir.chat_history(directory), colour=terminal.has_colour(sys.stdout))
