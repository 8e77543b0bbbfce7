"""`./todo chat`: a conversation in this terminal, or one message and its answer."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli import data_dir, terminal
from cli.arguments import Commands, UsageError, add_command, conversation, existing_directory, temperature, url
from cli.chat.options import NEWEST, Options
from cli.errors import CliError

if TYPE_CHECKING:
    from cli.chat.screen import TerminalScreen


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
    parser.add_argument("--directory", type=existing_directory, metavar="DIR", help=here)
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
    options = Options(
        directory=arguments.data_dir,
        execute=arguments.execute,
        as_json=arguments.json,
        approve_all=arguments.yes,
        thread=arguments.thread,
        model=arguments.model,
        temperature=arguments.temp,
        debug=arguments.debug,
        url=arguments.url,
        token=os.environ.get("TODO_TOKEN") or None,
        work_in=arguments.directory.resolve() if arguments.directory is not None else None,
    )
    import asyncio

    from cli.chat import server

    address = server.find(options)
    server.check_token(address, options.token)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue] - both are text files
    if options.execute is None and sys.stdin.isatty() and sys.stdout.isatty():
        if options.approve_all:
            raise CliError("--yes needs --exec TEXT, or text on stdin.")
        return asyncio.run(_talk(options, address))
    text = options.execute if options.execute is not None else _read_stdin()
    text = text.encode(errors="replace").decode()  # arguments may contain bytes that are no text
    if not text.strip():
        raise UsageError("There is nothing to say: give --exec TEXT, or text on stdin.")
    return asyncio.run(_answer(options, address, text))


def _read_stdin() -> str:
    if sys.stdin.isatty():
        raise CliError("A conversation needs a terminal for its output: give --exec TEXT for one answer.")
    return sys.stdin.buffer.read().decode(errors="replace")


async def _talk(options: Options, address: str) -> int:
    from cli.chat.connection import opened
    from cli.chat.terminal_chat import PATIENCE, TerminalChat

    connection = opened(options, address, patience=PATIENCE)
    try:
        return await TerminalChat(options, _open_screen(options), connection).run()
    finally:
        await connection.close()


def _open_screen(options: Options) -> "TerminalScreen":
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        from cli.chat.screen import PlainScreen

        return PlainScreen()
    from cli.chat.live_screen import LiveScreen

    return LiveScreen(data_dir.chat_history(options.directory), colour=terminal.has_colour(sys.stdout))


async def _answer(options: Options, address: str, text: str) -> int:
    from cli.chat import single_message
    from cli.chat.connection import opened

    connection = opened(options, address, patience=single_message.PATIENCE)
    try:
        return await single_message.run(text, connection, options)
    finally:
        await connection.close()
