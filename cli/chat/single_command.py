"""One slash command without a conversation around it: what it shows on stdout, all else on stderr."""

import sys
from collections.abc import Callable, Sequence

from cli.chat.commands import table
from cli.chat.connection import Connection
from cli.chat.options import DONE, FAILED, Exit, Options
from cli.chat.screens.screen import Person, Screen
from cli.chat.screens.text import Style
from cli.chat.talk import Talk


class Output(Screen):
    """The two output streams, as wide as anything that is written to them."""

    def __init__(self, style: Style, width: int) -> None:
        super().__init__(style)
        self._width = width
        self.has_failed = False

    @property
    def size(self) -> tuple[int, int]:
        return self._width, 24

    async def run(self, person: Person, ready: Callable[[], None]) -> None:
        """Nothing is typed here."""

    async def show(self, *lines: str, block: Sequence[str] | None = None) -> None:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    async def note(self, text: str) -> None:
        sys.stderr.write(f"{self.style.dim(text)}\n")

    async def fail(self, text: str) -> None:
        self.has_failed = True
        sys.stderr.write(f"{self.style.bad('error:')} {text}\n")

    async def echo(self, text: str) -> None:
        """The command is not repeated."""

    def leave(self) -> None:
        """There is nothing to leave."""

    def waits(self) -> None:
        """Nothing is typed here."""

    def redraw(self) -> None:
        """There is no prompt."""

    def fill(self, text: str) -> None:
        """There is no prompt."""


async def run_command(text: str, connection: Connection, options: Options, chat_id: str | None, width: int) -> Exit:
    """Carries out a slash command in a conversation, or in none; returns whether it could be done."""
    screen = Output(Style(colour=False), width)
    talk = Talk(options, screen, connection, {})
    talk.is_single = True
    if chat_id is not None:
        await talk.select(chat_id)
    await table.run(talk, text)
    return FAILED if screen.has_failed else DONE
