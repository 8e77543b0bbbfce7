"""The table of commands."""

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from rich.table import Column, Table

from cli.chat.commands import conversations, files, schedules, tasks
from cli.chat.connection import Connection
from cli.chat.session import ChatSession

_KEYS = (
    "Enter sends, Alt-Enter starts a new line, Tab completes. Ctrl-C stops the answer or clears what you typed; press "
    "it twice to leave. To send a message that begins with a slash, type the slash twice."
)


class ChatCommand(NamedTuple):
    """`argument` is required if it is in capitals. `--exec` rejects `interactive` commands, and a running answer those
    that must wait for its end. `complete` returns arguments that Tab completes.
    """

    argument: str
    purpose: str
    handler: Callable[[ChatSession, str], Awaitable[None]]
    interactive: bool = False
    waits: bool = False
    complete: Callable[[Connection], Awaitable[Sequence[str]]] | None = None


async def run(chat: ChatSession, text: str) -> None:
    name, _, argument = text[1:].partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.4)
        hint = f" Did you mean /{near[0]}?" if near else " See /help."
        await chat.screen.fail(f"There is no /{name}.{hint} To send a message that begins with a slash, type //.")
    elif command.interactive and not chat.screen.is_terminal:
        await chat.screen.fail(f"/{name} works only in a conversation: start ./todo chat.")
    elif not argument.strip() and command.argument.isupper():
        await chat.screen.fail(f"/{name} {command.argument}: {command.purpose}.")
    elif command.waits and chat.answer is not None:
        await chat.screen.fail("The assistant is still answering. Wait, or stop it with /stop or Ctrl-C.")
    else:
        await command.handler(chat, argument.strip())


async def _help(chat: ChatSession, _: str) -> None:
    grid = Table.grid(Column(no_wrap=True), Column(style="dim"), padding=(0, 2, 0, 0))
    for name, command in COMMANDS.items():
        grid.add_row(f"/{name} {command.argument}", command.purpose)
    await chat.screen.show(grid)
    await chat.screen.note(_KEYS)


async def _quit(chat: ChatSession, _: str) -> None:
    chat.screen.leave()


COMMANDS: Mapping[str, ChatCommand] = {
    "help": ChatCommand("", "show this help", _help),
    "threads": ChatCommand("", "list the conversations", conversations.list_threads),
    "open": ChatCommand(
        "N",
        "open a conversation by its number, title or id",
        conversations.open_thread,
        interactive=True,
        waits=True,
        complete=conversations.list_titles,
    ),
    "clear": ChatCommand("", "start a new conversation", conversations.clear, interactive=True, waits=True),
    "tasks": ChatCommand("[view]", f"show tasks: {', '.join(tasks.VIEWS)}", tasks.show, complete=tasks.list_views),
    "schedules": ChatCommand(
        "[action number]",
        "list what runs at certain times, or pause, resume, run or delete one",
        schedules.manage,
        complete=schedules.list_actions,
    ),
    "undo": ChatCommand("", "undo what the last answer changed", tasks.undo),
    "stop": ChatCommand("", "stop the answer, like Ctrl-C", lambda chat, _: chat.stop(), interactive=True),
    "retry": ChatCommand("", "answer the last message again", conversations.retry, interactive=True, waits=True),
    "edit": ChatCommand(
        "[text]", "change the last message and answer it again", conversations.edit, interactive=True, waits=True
    ),
    "version": ChatCommand("N", "show another version of the last message", conversations.show_version, waits=True),
    "model": ChatCommand(
        "[name]", "list the models, or choose one", conversations.choose_model, complete=conversations.list_models
    ),
    "agents": ChatCommand("", "show what agents did for the last message", conversations.show_agents),
    "files": ChatCommand("", "list the conversation's files", files.list_files),
    "put": ChatCommand("FILE", "add a file from this machine", files.put),
    "get": ChatCommand("FILE", "write a file of the conversation to the current directory", files.get),
    "commit": ChatCommand("MESSAGE", "commit the conversation's files", files.commit),
    "memory": ChatCommand("[text]", "show the memory, add a line, or import FILE", files.memory),
    "log": ChatCommand("", "show all that was said and done here, as JSON lines", conversations.show_log),
    "compact": ChatCommand("", "summarise all but the newest messages", conversations.compact),
    "quit": ChatCommand("", "leave, like Ctrl-D", _quit, interactive=True),
}
