"""Which commands there are, and which one is meant."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cli.chat.commands import conversations, files, memory, messages, tasks
from cli.chat.screens.text import wrapped

if TYPE_CHECKING:
    from cli.chat.talk import Talk

_CELLS = 17
_KEYS = (
    "Enter sends, Alt-Enter starts a new line, Tab completes. Ctrl-C stops the answer or clears what you typed; press "
    "it twice to leave. To send a message that begins with a slash, type the slash twice."
)


class Command(NamedTuple):
    """`wants` is its argument, which is required if it is in capitals. One that is `in_talk` needs a conversation that
    goes on: `--exec` rejects it.
    """

    wants: str
    does: str
    run: Callable[["Talk", str], Awaitable[None]]
    in_talk: bool = False


async def run(talk: "Talk", text: str) -> None:
    """What was typed with its slash."""
    name, _, rest = text[1:].partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.4)
        hint = f" Did you mean /{near[0]}?" if near else " See /help."
        await talk.screen.fail(f"There is no /{name}.{hint} To send a message that begins with a slash, type //.")
    elif talk.is_single and command.in_talk:
        await talk.screen.fail(f"/{name} works only in a conversation: start ./todo chat.")
    elif not rest.strip() and command.wants.isupper():
        await talk.screen.fail(f"/{name} {command.wants}: {command.does}.")
    else:
        await command.run(talk, rest.strip())


async def _help(talk: "Talk", _: str) -> None:
    style, room = talk.screen.style, talk.screen.size[0] - _CELLS
    lines: list[str] = []
    for name, one in COMMANDS.items():
        begins = f"/{name} {one.wants}".ljust(_CELLS)
        for told in wrapped(one.does, room):
            lines.append(f"{begins}{style.dim(told)}")
            begins = " " * _CELLS
    await talk.screen.show(*lines)
    await talk.screen.note(_KEYS)


async def _quit(talk: "Talk", _: str) -> None:
    talk.screen.leave()


COMMANDS: Mapping[str, Command] = {
    "help": Command("", "show this help", _help),
    "threads": Command("", "list the conversations", conversations.show_all),
    "open": Command("N", "open a conversation by its number, title or id", conversations.open, in_talk=True),
    "clear": Command("", "start a new conversation", conversations.clear, in_talk=True),
    "tasks": Command("[view]", f"show tasks: {', '.join(tasks.VIEWS)}", tasks.show),
    "undo": Command("", "undo what the last answer changed", tasks.undo),
    "stop": Command("", "stop the answer, like Ctrl-C", messages.stop, in_talk=True),
    "retry": Command("", "answer the last message again", messages.retry, in_talk=True),
    "edit": Command("[text]", "change the last message and answer it again", messages.edit, in_talk=True),
    "version": Command("N", "show another version of the last message", messages.show_version),
    "model": Command("[name]", "list the models, or choose one", messages.choose_model),
    "agents": Command("", "show what agents did for the last message", messages.show_agents),
    "files": Command("", "list the conversation's files", files.show),
    "put": Command("FILE", "add a file from this machine", files.put),
    "get": Command("FILE", "write a file of the conversation to the current directory", files.get),
    "commit": Command("MESSAGE", "commit the conversation's files", files.commit),
    "memory": Command("[text]", "show the memory, add a line, or import FILE", memory.memory),
    "log": Command("", "show all that was said and done here, as JSON lines", conversations.log),
    "compact": Command("", "summarise all but the newest messages", conversations.compact),
    "quit": Command("", "leave, like Ctrl-D", _quit, in_talk=True),
}
