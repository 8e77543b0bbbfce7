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
    "Enter sends, Alt-Enter begins a line, Tab completes. Ctrl-C stops or clears, and twice leaves, as Ctrl-D does. A "
    "message that begins with a slash is typed with two."
)


class Command(NamedTuple):
    """`wants` is what goes behind its name; it cannot be left out where it is in capitals."""

    wants: str
    does: str
    run: Callable[["Talk", str], Awaitable[None]]


async def run(talk: "Talk", text: str) -> None:
    """What was typed with its slash."""
    name, _, rest = text[1:].partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.4)
        hint = f" Did you mean /{near[0]}?" if near else " /help lists them."
        await talk.screen.fail(f"There is no /{name}.{hint} A message begins with a slash as //.")
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
    "help": Command("", "what there is", _help),
    "threads": Command("", "the conversations, as on the page", conversations.show_all),
    "open": Command("N", "go on with one of them, by its number, title or id", conversations.open),
    "clear": Command("", "begin a new conversation", conversations.clear),
    "tasks": Command("[view]", f"the list: {', '.join(tasks.VIEWS)}", tasks.show),
    "undo": Command("", "take back what the last answer has changed", tasks.undo),
    "stop": Command("", "stop the answer, as Ctrl-C does", messages.stop),
    "retry": Command("", "answer the last message again", messages.retry),
    "edit": Command("[text]", "say something else in place of the last message", messages.edit),
    "version": Command("N", "show another version of the last message", messages.show_version),
    "model": Command("[name]", "which models there are, or ask that one from now on", messages.choose_model),
    "agents": Command("", "what agents did for the last message", messages.show_agents),
    "files": Command("", "the conversation's files", files.show),
    "put": Command("FILE", "put a file of this machine there", files.put),
    "commit": Command("MESSAGE", "commit what is there", files.commit),
    "memory": Command("[text]", "what is remembered; add a line to it; import FILE", memory.memory),
    "log": Command("", "all that was said and done here, as lines of JSON", conversations.log),
    "compact": Command("", "have all but the newest messages summarised", conversations.compact),
    "quit": Command("", "leave, as Ctrl-D does", _quit),
}
