"""Follows an answer and shows its events."""

import json
import time
from contextlib import aclosing, suppress
from typing import Any

from rich.console import RenderableType

from cli.chat import rendering
from cli.chat.connection import Connection
from cli.chat.screen import Screen
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import Event

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
