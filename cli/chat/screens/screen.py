"""What a conversation is shown on, and typed at."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from cli.chat.screens.text import Style, clean, wrapped

MARK = "> "
TWICE_SECONDS = 2.0
AGAIN_LEAVES = "Press Ctrl-C again to leave."


class Person(Protocol):
    """Whom the keys are told to."""

    def entered(self, text: str) -> None: ...

    def interrupted(self) -> bool:
        """Ctrl-C: whether there was something to stop or to give up."""
        ...


class Screen(ABC):
    """`mark` stands before what is typed, `status` above it."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.mark = MARK
        self.status = ""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Columns that may be written in, and rows."""

    @abstractmethod
    async def run(self, person: Person, ready: Callable[[], None]) -> None:
        """Until the person leaves; `ready` is called once something can be typed."""

    @abstractmethod
    async def show(self, *lines: str, block: Sequence[str] | None = None) -> None:
        """Lines that stay, above a block that may change, where something can be drawn twice; None: as it is."""

    @abstractmethod
    def leave(self) -> None: ...

    @abstractmethod
    def waits(self) -> None:
        """Nothing goes on: it is the person's turn."""

    @abstractmethod
    def redraw(self) -> None:
        """Mark or status is another."""

    @abstractmethod
    def fill(self, text: str) -> None:
        """Text to be changed, in place of what is typed."""

    async def note(self, text: str) -> None:
        """Something beside what is said."""
        await self.show(*map(self.style.dim, wrapped(text, self.size[0])))

    async def fail(self, text: str) -> None:
        """Why something was not done."""
        first, *others = wrapped(text, self.size[0] - 2)
        await self.show(f"{self.style.bad('✗')} {first}", *(f"  {line}" for line in others))

    async def echo(self, text: str) -> None:
        """What was said, as it stays."""
        first, *others = clean(text).split("\n")
        bold = self.style.bold
        await self.show("", f"{bold('>')} {bold(first)}", *(f"  {bold(line)}" for line in others))
