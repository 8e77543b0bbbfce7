import asyncio
import time
from contextlib import suppress
from typing import Any

from rich.console import RenderableType

from cli.chat import rendering
from cli.chat.answer import Answer
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection
from cli.chat.markdown import ChatMarkdown, split_finished
from cli.chat.screen import TerminalScreen
from todo_client.reading import Reading
from todo_client.runs import Event

FRAME_SECONDS = 0.1  # between two drawings, at least
_DRAWING_SHARE = 4  # a drawing takes at most a fifth of the time
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveAnswer(Answer):
    """Shows an answer in a terminal, its text while it grows."""

    def __init__(
        self,
        screen: TerminalScreen,
        connection: Connection,
        reading: Reading,
        *,
        approvals: PendingApprovals,
        debug: bool = False,
    ) -> None:
        super().__init__(screen, connection, reading, debug=debug)
        self.has_begun = asyncio.Event()
        """Set once its run is known, or never will be."""
        self._terminal = screen
        self._approvals = approvals
        self._open = ""  # text that may still be drawn in another way
        self._has_shown = False
        self._cost = 0.0  # seconds of the last drawing

    async def follow(self) -> None:
        over = asyncio.Event()
        drawing = asyncio.create_task(self._draw_until(over))
        try:
            await super().follow()
        finally:
            over.set()
            await drawing
            self._screen.status = ""
            await self._show()
        await self.show_usage()

    async def handle(self, event: Event) -> None:
        self.has_begun.set()
        await super().handle(event)

    async def add_text(self, piece: str) -> None:
        was_empty = not self._open.strip()
        self._open += piece
        if was_empty and self._open.strip():
            await self._draw()

    async def end_text(self) -> None:
        (_, output), self.listed = self.listed, ("", "")
        tasks = rendering.tasks_of(output)
        await self._show(*(["", rendering.render_tasks(tasks, self._screen.width)] if tasks else []))

    async def ask(self, call: dict[str, Any]) -> None:
        await self._show()
        await self._approvals.add(call)

    async def decided(self, approval_id: str) -> None:
        await self._approvals.remove(approval_id)

    async def report(self, *renderables: RenderableType) -> None:
        await self._show(*renderables)

    async def note(self, text: str) -> None:
        await self._show()
        await super().note(text)

    async def fail(self, text: str) -> None:
        await self._show()
        await super().fail(f"{text} (/retry)" if self.may_retry else text)

    async def _draw_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), max(FRAME_SECONDS, _DRAWING_SHARE * self._cost))
            await self._draw()

    async def _draw(self) -> None:
        began = time.perf_counter()
        self._screen.status = self._describe_status()
        finished, self._open = split_finished(self._open)
        above = self._render(finished)
        self._has_shown = self._has_shown or bool(above)
        await self._terminal.show_live(*above, live=self._render(self._open))
        self._cost = time.perf_counter() - began

    async def _show(self, *renderables: RenderableType) -> None:
        """Shows something below the text so far, all of which is printed now."""
        text, self._open = self._render(self._open), ""
        self._has_shown = self._has_shown or bool(text or renderables)
        await self._terminal.show_live(*text, *renderables, live=())

    def _render(self, text: str) -> list[RenderableType]:
        """Renders Markdown, with an empty line above it unless the answer begins with it."""
        above = [""] if self._has_shown else []
        return [*above, ChatMarkdown(text)] if text.strip() else []

    def _describe_status(self) -> str:
        seconds = time.monotonic() - self._began
        frame = _SPINNER[int(seconds / FRAME_SECONDS) % len(_SPINNER)]
        return f"{frame} {seconds:.0f} s · Ctrl-C stops · {self._activity}"
