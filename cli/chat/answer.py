"""Follows an answer and shows its events."""

import asyncio
import json
import time
from contextlib import aclosing, suppress
from typing import Any

from rich.console import RenderableType

from cli.chat import rendering
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection, Reading
from cli.chat.markdown import ChatMarkdown, split_finished
from cli.chat.screen import Screen, TerminalScreen
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import Event

FRAME_SECONDS = 0.1  # between two drawings, at least
_DRAWING_SHARE = 4  # a drawing takes at most a fifth of the time
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_AGENT_EVENTS = ("answer", "thinking", "tool_call", "tool_result")


class Answer:
    """Shows an answer to its end. Subclasses show its text, and ask about the calls that wait for approval."""

    def __init__(self, screen: Screen, connection: Connection, reading: Reading, *, debug: bool = False) -> None:
        self.reading = reading
        self.status = ""
        """How it ended, as the run API names that."""
        self.may_retry = False
        self.listed = "", ""
        """Arguments and output of the last call, if it returned a list of tasks."""
        self._screen = screen
        self._connection = connection
        self._debug = debug
        self._activity = "thinking"
        self._began = time.monotonic()
        self._calls: dict[str, tuple[str, str]] = {}
        self._text = ""
        """What has come of the message that is being written."""
        self._last_call = ""
        self._agent_approvals: set[str] = set()
        self._has_failed = False

    async def follow(self) -> None:
        """Raises `ApiError` if it cannot begin, and `ConnectionLost` when the server is away for too long."""
        async with aclosing(self._connection.events(self.reading)) as events:
            async for event in events:
                await self.handle(event)
                if self.status:
                    break

    async def show_usage(self) -> None:
        if self.status and self.reading.run_id is not None:
            with suppress(ApiError, ConnectionLost):
                chat_id, run_id = self.reading.chat_id, self.reading.run_id
                run = await self._connection.runs.get_interaction(chat_id, run_id, brief=True)
                await self.note(rendering.describe_usage(run["usage"], time.monotonic() - self._began))

    async def add_text(self, piece: str) -> None:
        raise NotImplementedError

    async def end_text(self) -> None:
        raise NotImplementedError

    async def ask(self, call: dict[str, Any]) -> None:
        raise NotImplementedError

    async def decided(self, approval_id: str) -> None:
        """Stops asking about a call."""

    async def report(self, *renderables: RenderableType) -> None:
        await self._screen.report(*renderables)

    async def note(self, text: str) -> None:
        await self._screen.note(text)

    async def fail(self, text: str) -> None:
        await self._screen.fail(text)

    async def handle(self, event: Event) -> None:
        if self._debug:
            await self.note(f"{event.number} {event.name} {json.dumps(event.data)}")
        if event.name in _AGENT_EVENTS and event.data.get("agent"):
            await self._show_agent(event.name, event.data)
            return
        match event.name:
            case "turn_start":
                self._activity = "thinking"
            case "thinking_delta":
                self._activity = f"thinking: {event.data['content']}"
            case "answer_delta":
                self._activity = "answering"
                await self._add(event.data["content"])
            case "answer":
                # To a reader who came late, nothing of it was sent before.
                if event.data["content"].startswith(self._text):
                    await self._add(event.data["content"][len(self._text) :])
                self._last_call = ""
                await self.end_text()
                self._text = ""
            case "tool_call":
                await self._show_call(event.data)
            case "tool_result":
                await self._show_result(event.data)
            case _:
                await self._show_state(event.name, event.data)

    async def _add(self, piece: str) -> None:
        self._text += piece
        await self.add_text(piece)

    async def _show_call(self, data: dict[str, Any]) -> None:
        tool, arguments = self._calls[data["id"]] = data["tool_name"], data["tool_input"]
        self._activity = rendering.describe_call(tool, arguments)
        if rendering.agent_of(tool):
            await self.report(rendering.render_agent_start(tool, arguments))

    async def _show_result(self, data: dict[str, Any]) -> None:
        tool, arguments = self._calls.pop(data["id"], (data["tool_name"], ""))
        output = data["tool_output"]
        self.listed = (arguments, output) if rendering.tasks_of(output) else ("", "")
        self._activity = "thinking"
        if agent := rendering.agent_of(tool):
            end = rendering.render_agent_line(agent, "failed" if data["is_error"] else "completed")
            await self.report(end, rendering.render_output(output))
            return
        line = f"{tool} {arguments} {output}"
        if line != self._last_call:
            await self.report(rendering.render_call(tool, arguments, output))
        self._last_call = line

    async def _show_agent(self, name: str, data: dict[str, Any]) -> None:
        if name == "tool_call":
            call = rendering.describe_call(data["tool_name"], data["tool_input"])
            await self.report(rendering.render_agent_line(data["agent"], call))
        elif name == "tool_result":
            output, details = data["tool_output"], data["details"]
            await self.report(rendering.render_agent_output(output, details, is_error=data["is_error"]))

    async def _show_state(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "approval_required":
                self._activity = "waiting for your decision"
                self._agent_approvals |= {data["approval_id"]} if data["agent"] else set()
                await self.ask(data)
            case "approved" | "rejected":
                reason = f": {data['reason']}" if data.get("reason") else ""
                await self.note(f"{name.capitalize()}{reason}")
                if name == "rejected" and data["approval_id"] in self._agent_approvals:
                    await self.report(rendering.render_agent_output("Not done.", None, is_error=True))
                await self.decided(data["approval_id"])
            case "error":
                self._has_failed, self.may_retry = True, data["allow_retry"]
                await self.fail(data["error"])
            case "cancelled":
                await self.note("Stopped.")
            case "compaction":
                await self.note(f"{data['messages']} earlier messages were summarised.")
            case "interaction_complete":
                self.status = data["status"]
                if "reason" in data and not self._has_failed:
                    await self.note(data["reason"])
            case _:
                pass


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
