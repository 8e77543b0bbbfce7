"""What `./todo chat` writes to and reads from: a terminal, or the two output streams for a single message."""

import asyncio
import io
import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from cli import terminal
from cli.chat.connection import Connection
from cli.chat.rendering import render_marked
from cli.terminal import clean

PROMPT = "> "
WIDTH = 100  # of output that is no terminal's
TWICE_SECONDS = 2.0
AGAIN_LEAVES = "Press Ctrl-C again to leave."
_THEME = Theme({"markdown.code": "cyan"})


class KeyListener(Protocol):
    def entered(self, text: str) -> None: ...

    def interrupted(self) -> bool:
        """Handles Ctrl-C; returns whether there was something to stop or to discard."""
        ...


class Screen:
    """Writes results to standard output and everything else to standard error. Nothing is typed here."""

    def __init__(self) -> None:
        self.prompt = PROMPT
        self.status = ""
        """The line above the prompt."""
        self.has_failed = False

    @property
    def width(self) -> int:
        return WIDTH

    async def show(self, *renderables: RenderableType) -> None:
        """Prints what the user asked for."""
        _write("".join(f"{line}\n" for line in render_lines(*renderables, width=self.width, colour=False)))

    async def show_line(self, text: str) -> None:
        """Prints a line that is neither wrapped nor cut."""
        _write(f"{clean(text)}\n")

    async def report(self, *renderables: RenderableType) -> None:
        """Prints what the assistant does."""
        for line in render_lines(*renderables, width=self.width, colour=terminal.has_colour(sys.stderr)):
            terminal.notice_rendered(line)

    async def note(self, text: str) -> None:
        terminal.notice(text)

    async def fail(self, text: str) -> None:
        """Says why something was not done."""
        self.has_failed = True
        terminal.error(text)

    async def echo(self, text: str) -> None:
        """Repeats what the user typed, where that is not on the screen anyway."""

    def wait_for_input(self) -> None:
        """Shows the prompt again, where it is not always there."""

    def redraw(self) -> None:
        """Shows a prompt or status that has changed."""

    def fill(self, text: str) -> None:
        """Gives the user a text to edit, in place of what is typed."""

    def leave(self) -> None:
        """Ends `run`."""

    async def learn_names(self, connection: Connection) -> None:
        """Reads the names that can be completed."""


class TerminalScreen(Screen, ABC):
    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self.colour = colour

    @property
    def width(self) -> int:
        return max(self.size[0] - 1, 20)

    @property
    def size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size()
        except OSError:
            columns, rows = 0, 0
        return columns or 80, rows or 24

    @abstractmethod
    async def run(self, listener: KeyListener) -> None:
        """Reads what is typed until the user leaves."""

    async def show(self, *renderables: RenderableType) -> None:
        await self.print_lines(render_lines(*renderables, width=self.width, colour=self.colour))

    async def show_live(self, *renderables: RenderableType, live: Sequence[RenderableType]) -> None:
        """Prints lines that stay, and below them others until the next call, where they can be removed again."""
        await self.show(*renderables)

    @abstractmethod
    async def print_lines(self, lines: Sequence[str]) -> None: ...

    async def show_line(self, text: str) -> None:
        await self.print_lines([clean(text)])

    async def report(self, *renderables: RenderableType) -> None:
        await self.show(*renderables)

    async def note(self, text: str) -> None:
        await self.show(Text(clean(text), "dim"))

    async def fail(self, text: str) -> None:
        await self.show(render_marked("✗", text, mark_style="red"))

    async def echo(self, text: str) -> None:
        await self.show("", render_marked(">", text, style="bold", mark_style="bold"))


class PlainScreen(TerminalScreen):
    """A terminal that can only print lines and read lines."""

    def __init__(self) -> None:
        super().__init__(colour=False)
        self._interrupted_at = -TWICE_SECONDS
        self._left = asyncio.Event()
        self._input = b""

    async def run(self, listener: KeyListener) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read_input, listener)
        loop.add_signal_handler(signal.SIGINT, self._interrupt, listener)
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())
            loop.remove_signal_handler(signal.SIGINT)

    async def print_lines(self, lines: Sequence[str]) -> None:
        _write("".join(f"{line}\n" for line in lines))

    def wait_for_input(self) -> None:
        _write(self.prompt)

    def fill(self, text: str) -> None:
        if text:
            _write(f"(not sent: {clean(text)})\n")

    def leave(self) -> None:
        self._left.set()

    def _read_input(self, listener: KeyListener) -> None:
        piece = os.read(sys.stdin.fileno(), 65_536)
        *lines, self._input = (self._input + piece).split(b"\n")
        for line in lines:
            listener.entered(line.decode(errors="replace"))
        if not piece:
            self.leave()

    def _interrupt(self, listener: KeyListener) -> None:
        if listener.interrupted():
            return
        if time.monotonic() - self._interrupted_at < TWICE_SECONDS:
            self.leave()
        else:
            self._interrupted_at = time.monotonic()
            _write(f"\n{AGAIN_LEAVES}\n")


def render_lines(*renderables: RenderableType, width: int, colour: bool) -> list[str]:
    """Returns lines for a terminal, which contain nothing that it would obey but colours."""
    console = Console(file=io.StringIO(), width=width, highlight=False, emoji=False, markup=False, theme=_THEME)
    rendered = (line for one in renderables for line in console.render_lines(one, pad=False))
    return [_render_line(segments, colour=colour) for segments in rendered]


def _render_line(segments: list[Segment], *, colour: bool) -> str:
    while segments and not segments[-1].text.strip():
        segments.pop()
    texts = [clean(segment.text) for segment in segments]
    texts[-1:] = [text.rstrip() for text in texts[-1:]]
    if not colour:
        return "".join(texts)
    styles = (segment.style for segment in segments)
    return "".join(
        style.render(text, color_system=ColorSystem.STANDARD) if style else text
        for text, style in zip(texts, styles, strict=True)
    )


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
