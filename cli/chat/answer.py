"""An answer as it comes, on the screen."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from cli.chat.connection import Connection, Reading
from cli.chat.screens import drawing
from cli.chat.screens.markdown import Growing
from cli.chat.screens.screen import Screen
from cli.chat.screens.text import one_line
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import Event

FRAME_SECONDS = 0.1  # at least, between two drawings of the block that is open
OF_AGENTS = ("answer", "thinking", "tool_call", "tool_result")
"""Events that an agent has, too, with its name."""
STEP_SECONDS = 1.0  # between two looks at what agents did
_DRAWING_SHARE = 4  # so many times as long as drawing took, other things have the processor
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Answer:
    """`asks` is told of each call that waits for consent, and `decided` how that was decided."""

    def __init__(
        self,
        screen: Screen,
        connection: Connection,
        reading: Reading,
        *,
        asks: Callable[[dict[str, Any]], Awaitable[None]],
        decided: Callable[[str, str], Awaitable[None]],
        debug: bool = False,
    ) -> None:
        self.reading = reading
        self.status = ""
        """How it ended, as the run API names that."""
        self.begun = asyncio.Event()
        """Whether it is known which it is, or that it never will be."""
        self._screen = screen
        self._style = screen.style
        self._connection = connection
        self._asks = asks
        self._decided = decided
        self._debug = debug
        self._text = Growing()
        self._in_one_answer = ""
        self._failed = False  # and why was told
        self._doing = "thinking"
        self._began = time.monotonic()
        self._calls: dict[str, tuple[str, str]] = {}
        self._list: str | None = None
        self._last_call = ""
        """The line of the call that returned last, which is not repeated."""
        self._steps = 0
        self._looking = asyncio.Lock()

    async def follow(self) -> None:
        """To its end; raises `ApiError` where it cannot begin, and `ConnectionLost` beyond all patience."""
        over = asyncio.Event()
        drawing_it = asyncio.create_task(self._draw(over))
        try:
            async with aclosing(self._connection.events(self.reading)) as events:
                async for event in events:
                    self.begun.set()
                    await self._tell(event)
        finally:
            over.set()
            await drawing_it
            self._screen.status = ""
            await self._show()
        await self._tell_end()

    async def _tell(self, event: Event) -> None:
        if self._debug:
            line = f"{event.number} {event.name} {json.dumps(event.data)}"
            await self._screen.show(self._style.dim(one_line(line, self._width)), block=self._open())
        if event.name in OF_AGENTS and event.data.get("agent"):
            return  # they are shown from its steps
        if event.name.endswith("_delta"):
            was_open = self._text.is_open
            self._grow(event)
            if self._text.is_open and not was_open:
                await self._draw_now()  # the first word
            return
        if event.name == "answer":
            if event.data["content"].startswith(self._in_one_answer):
                self._say(event.data["content"][len(self._in_one_answer) :])
            self._in_one_answer = ""
        await self._tell_whole(event.name, event.data)

    def _grow(self, event: Event) -> None:
        if event.name == "answer_delta":
            self._say(event.data["content"])
            self._doing = "answering"
        else:
            self._doing = f"thinking: {event.data['content']}"

    def _say(self, piece: str) -> None:
        self._in_one_answer += piece
        self._text.add(piece)

    async def _tell_whole(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "turn_start":
                self._doing = "thinking"
            case "answer":
                self._last_call = ""
                await self._end_text()
            case "tool_call":
                tool, given = self._calls[data["id"]] = data["tool_name"], data["tool_input"]
                self._doing = drawing.calling(tool, given)
                if drawing.is_agent(tool):
                    await self._show(drawing.begun_line(self._style, tool, given, self._width))
            case "tool_result":
                await self._returned(data)
            case "approval_required":
                await self._show()
                if data["agent"]:
                    await self._look_at_steps()
                self._doing = "waiting for your decision"
                await self._asks(data)
            case "approved" | "rejected":
                why = f": {data['reason']}" if data.get("reason") else ""
                await self._show()
                await self._decided(data["approval_id"], f"{'Approved' if name == 'approved' else 'Rejected'}{why}")
            case _:
                await self._tell_state(name, data)

    async def _tell_state(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "error":
                self._failed = True
                again = " (/retry)" if data["allow_retry"] else ""
                await self._show()
                await self._screen.fail(f"{data['error']}{again}")
            case "cancelled":
                await self._note("Stopped.")
            case "compaction":
                await self._note(f"{data['messages']} earlier messages were summarised.")
            case "interaction_complete":
                self.status = data["status"]
                if "reason" in data and not self._failed:
                    await self._note(data["reason"])
            case _:
                pass

    async def _note(self, text: str) -> None:
        await self._show()
        await self._screen.note(text)

    async def _end_text(self) -> None:
        """A message is complete, and the list that it is about stands below it."""
        tasks = drawing.listed(self._list) if self._list is not None else None
        self._list = None
        await self._show(*(["", *drawing.task_lines(self._style, tasks, self._width)] if tasks else []))

    async def _returned(self, data: dict[str, Any]) -> None:
        tool, given = self._calls.pop(data["id"], (data["tool_name"], ""))
        self._list = data["tool_output"] if drawing.listed(data["tool_output"]) is not None else None
        if drawing.is_agent(tool):
            await self._look_at_steps()
            await self._show(drawing.output_line(self._style, data["tool_output"], self._width))
        else:
            line = drawing.call_line(self._style, tool, given, data["tool_output"], self._width)
            await self._show(*([] if line == self._last_call else [line]))
            self._last_call = line
        self._doing = "thinking"

    async def _draw(self, over: asyncio.Event) -> None:
        """Again and again, but never so often that there is no time for anything else."""
        looked = time.monotonic()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), max(FRAME_SECONDS, _DRAWING_SHARE * self._text.cost))
                return
            await self._draw_now()
            works = any(drawing.is_agent(tool) for tool, _ in self._calls.values())
            if works and time.monotonic() - looked > STEP_SECONDS:
                looked = time.monotonic()
                await self._look_at_steps()

    async def _draw_now(self) -> None:
        self._screen.status = self._status()
        finished = self._text.finished(width=self._width, colour=self._style.colour)
        await self._screen.show(*finished, block=self._open())

    async def _look_at_steps(self) -> None:
        """What agents have done since the last look."""
        chat_id, run_id = self.reading.chat_id, self.reading.run_id
        if run_id is None:
            return
        async with self._looking:
            with suppress(ApiError, ConnectionLost):
                async for step in self._connection.steps(chat_id, run_id, after=self._steps):
                    self._steps = step["number"]
                    await self._screen.show(*drawing.step_lines(self._style, step, self._width), block=self._open())

    async def _tell_end(self) -> None:
        reading, seconds = self.reading, time.monotonic() - self._began
        if not self.status or reading.run_id is None:
            return
        with suppress(ApiError, ConnectionLost):
            told = await self._connection.runs.get_interaction(reading.chat_id, reading.run_id, brief=True)
            await self._note(drawing.usage_line(told["usage"], seconds))

    async def _show(self, *lines: str) -> None:
        """Below all that was said so far, and an empty line above what is said next."""
        await self._screen.show(*self._text.rest(width=self._width, colour=self._style.colour), *lines, block=())
        if lines:
            self._text.set_apart()

    @property
    def _width(self) -> int:
        return self._screen.size[0]

    def _open(self) -> list[str]:
        return self._text.open_lines(width=self._width, colour=self._style.colour)

    def _status(self) -> str:
        seconds = time.monotonic() - self._began
        frame = _SPINNER[int(seconds / FRAME_SECONDS) % len(_SPINNER)]
        ends = f" · {seconds:.0f} s · Ctrl-C stops"
        return f"{frame} {one_line(self._doing, self._width - len(ends) - 2)}{ends}"
