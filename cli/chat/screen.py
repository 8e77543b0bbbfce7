"""What `./todo chat` writes to and reads from: a terminal, or the two output streams for a single message."""

import asyncio
import io
import os
import shutil
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

from cli import terminal
from cli.chat.markdown import MAX_CHARS, ChatMarkdown, split_finished
from cli.chat.rendering import render_marked
from cli.terminal import clean

OnLine = Callable[[str], None]
OnInterrupt = Callable[[], bool]
"""Called at Ctrl-C; returns whether there was something to stop or to discard."""
PROMPT = "> "
TWICE_SECONDS = 2.0
PASTE_SECONDS = 0.05
"""Less than a user needs between two keys, and more than a terminal between two pieces of a pasted text."""
NOT_TEXT = "Some of this is not UTF-8 text, and is shown as \ufffd. Correct it, and press Enter."
AGAIN_LEAVES = "Press Ctrl-C again to leave."
_SPLIT_PAUSE = 5
"""How many times as long as it takes to split an answer no other line of it is looked at."""
_THEME = Theme({"markdown.code": "cyan"})


@dataclass
class Completions:
    """What can be completed: arguments of each command, by its name with the slash, and titles of tasks anywhere."""

    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    titles: Sequence[str] = ()


def describe_nothing() -> str:
    return ""


class Screen:
    """Writes results to standard output and everything else to standard error. Nothing is typed here."""

    is_terminal = False

    def __init__(self) -> None:
        self.prompt = PROMPT
        self.describe_status = describe_nothing
        """Returns the line above the prompt."""
        self.has_failed = False
        self._has_ended = self._ends_line = False  # the last message of an answer, what was printed of one

    @property
    def width(self) -> int:
        return terminal.get_width(sys.stdout)

    async def show(self, *renderables: RenderableType) -> None:
        terminal.write("".join(f"{line}\n" for line in render_lines(*renderables, width=self.width, colour=False)))

    async def show_line(self, text: str) -> None:
        """Prints a line that is neither wrapped nor cut."""
        terminal.write(f"{clean(text)}\n")

    async def add_text(self, piece: str) -> None:
        terminal.write(f"\n{clean(piece)}" if self._has_ended else clean(piece))
        self._has_ended, self._ends_line = False, piece.endswith("\n")

    async def flush_text(self) -> None:
        """Prints the text so far, below which something else comes."""

    async def end_text(self) -> None:
        terminal.write("" if self._ends_line else "\n")
        self._has_ended, self._ends_line = True, False

    async def withdraw_text(self, text: str) -> bool:
        """Ends a text that is wrong; returns whether some of it stays, as it was printed."""
        if text:
            await self.end_text()
        return bool(text)

    async def report(self, *renderables: RenderableType) -> None:
        width, colour = terminal.get_width(sys.stderr), terminal.has_colour(sys.stderr)
        for line in render_lines(*renderables, width=width, colour=colour):
            terminal.notice_rendered(line)

    async def note(self, text: str) -> None:
        terminal.notice(text)

    async def show_progress(self, text: str) -> None:
        """Says what an answer waits for, where no status is shown."""
        await self.note(text)

    async def fail(self, text: str) -> None:
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


class TerminalScreen(Screen, ABC):
    is_terminal = True
    completions: Completions | None = None
    """None where nothing can be completed."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self.colour = colour
        self._open_text = ""
        """Text of the answer that may still be drawn in another way."""
        self._next_split = 0.0
        self._needs_gap = False  # between what was printed and the answer's text

    @property
    def width(self) -> int:
        return max(self.size[0] - 1, 20)

    @property
    def size(self) -> tuple[int, int]:
        return shutil.get_terminal_size()

    @abstractmethod
    async def run(self, on_line: OnLine, on_interrupt: OnInterrupt) -> None:
        """Reads what is typed until the user leaves."""

    @abstractmethod
    async def print_lines(self, lines: Sequence[str], *, open_text: str | None = None) -> None:
        """Prints lines, and changes the text below them."""

    async def show(self, *renderables: RenderableType) -> None:
        self._needs_gap = True
        await self.print_lines(self._render(*renderables))

    async def show_line(self, text: str) -> None:
        await self.print_lines([clean(text)])

    async def add_text(self, piece: str) -> None:
        self._open_text += piece
        is_due = "\n" in piece and time.monotonic() >= self._next_split
        if is_due or len(self._open_text) > MAX_CHARS:
            await self._print_finished()

    async def flush_text(self) -> None:
        if len(self._open_text) > MAX_CHARS:
            await self._print_finished()
        await self._print_text(self._open_text, "")

    async def _print_finished(self) -> None:
        """Prints the blocks that can no longer change, a few at a time, so that Ctrl-C is handled meanwhile."""
        begun = time.monotonic()
        while True:
            finished, rest = split_finished(self._open_text)
            if not finished:
                break
            await self._print_text(finished, rest)
            await asyncio.sleep(0)
        self._next_split = time.monotonic() + _SPLIT_PAUSE * (time.monotonic() - begun)

    async def end_text(self) -> None:
        await self.flush_text()

    async def withdraw_text(self, text: str) -> bool:
        is_printed = self._open_text != text
        await self.print_lines([], open_text="")
        return is_printed

    async def _print_text(self, finished: str, rest: str) -> None:
        lines = self.render_text(finished)
        self._needs_gap = self._needs_gap or bool(lines)
        await self.print_lines(lines, open_text=rest)

    def render_text(self, text: str) -> list[str]:
        lines = self._render(ChatMarkdown(text)) if text.strip() else []
        while lines and not lines[0]:  # above a list or a table that begins the text
            lines.pop(0)
        return ["", *lines] if lines and self._needs_gap else lines

    def _render(self, *renderables: RenderableType) -> list[str]:
        return render_lines(*renderables, width=self.width, colour=self.colour)

    async def report(self, *renderables: RenderableType) -> None:
        await self.show(*renderables)

    async def note(self, text: str) -> None:
        await self.show(Text(clean(text), "dim"))

    async def fail(self, text: str) -> None:
        await self.show(render_marked("✗", text, mark_style="red"))

    async def echo(self, text: str) -> None:
        await self.show("", render_marked(">", text, style="bold", mark_style="bold"))
        self._needs_gap = False


class PlainScreen(TerminalScreen):
    def __init__(self) -> None:
        super().__init__(colour=False)
        self._left = asyncio.Event()
        self._input = b""
        self._sending: asyncio.TimerHandle | None = None
        self._interrupted_at = -TWICE_SECONDS

    async def run(self, on_line: OnLine, on_interrupt: OnInterrupt) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read_input, on_line)
        loop.add_signal_handler(signal.SIGINT, self._interrupt, on_interrupt)
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())
            loop.remove_signal_handler(signal.SIGINT)

    async def print_lines(self, lines: Sequence[str], *, open_text: str | None = None) -> None:
        self._open_text = self._open_text if open_text is None else open_text
        terminal.write("".join(f"{line}\n" for line in lines))

    def wait_for_input(self) -> None:
        terminal.write(self.prompt)

    def fill(self, text: str) -> None:
        if text:
            terminal.write(f"(not sent: {clean(text)})\n")

    def leave(self) -> None:
        self._left.set()

    def _read_input(self, on_line: OnLine) -> None:
        piece = os.read(sys.stdin.fileno(), 65_536)
        self._input += piece
        if self._sending is not None:
            self._sending.cancel()
        if not piece:
            self._send(on_line)
            self.leave()
        elif b"\n" in self._input:
            self._sending = asyncio.get_running_loop().call_later(PASTE_SECONDS, self._send, on_line)

    def _send(self, on_line: OnLine) -> None:
        """Sends the lines that have come at once as one message: several were pasted."""
        lines, end, self._input = self._input.rpartition(b"\n")
        text = os.fsdecode(lines)
        if not terminal.is_text(text):
            terminal.write(f"Not sent, because it is not UTF-8 text: {clean(text)}\n")
            self.wait_for_input()
        elif end:
            on_line(text)

    def _interrupt(self, on_interrupt: OnInterrupt) -> None:
        if on_interrupt():
            return
        before, self._interrupted_at = self._interrupted_at, time.monotonic()
        if self._interrupted_at - before < TWICE_SECONDS:
            self.leave()
        else:
            terminal.write(f"\n{AGAIN_LEAVES}\n")


def render_lines(*renderables: RenderableType, width: int, colour: bool) -> list[str]:
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
