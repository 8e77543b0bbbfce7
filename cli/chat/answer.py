"""Follows an answer and shows its events."""

import asyncio
import json
import time
from contextlib import aclosing, suppress
from typing import Any

from cli.chat import rendering
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection
from cli.chat.screen import Screen, describe_nothing
from common.changes import CORRECTION, render_changes
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import RunEvent

_AGENT_EVENTS = ("answer", "thinking", "tool_call", "tool_result")
# Events that print nothing below the text that is being written. To a reader who comes late, the last answer of a run
# is sent after the end of its model turn.
_TEXT_EVENTS = ("answer", "answer_delta", "thinking", "thinking_delta", "turn_end", "withdrawn")
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MAX_TASKS = 50  # as in the text of other clients without cards


class Answer:
    def __init__(
        self,
        screen: Screen,
        connection: Connection,
        reading: Reading,
        approvals: PendingApprovals,
        *,
        debug: bool = False,
    ) -> None:
        self.reading = reading
        self.status = ""
        """How it ended, as the run API names that."""
        self.has_begun = asyncio.Event()
        """Set once its run is known, or never will be."""
        self._screen = screen
        self._connection = connection
        self._approvals = approvals
        self._debug = debug
        self._activity = "thinking"
        self._began = time.monotonic()
        self._calls: dict[str, str] = {}
        """The arguments of calls without a result yet."""
        self._listed: tuple[str, dict[str, Any]] = "", {}
        """Arguments and result of the last call, if it listed tasks."""
        self._text = ""
        """What has come of the message that is being written."""
        self._complete_text = ""
        self._has_failed = False

    async def follow(self) -> None:
        """Raises `ApiError` if it cannot begin, and `ConnectionLost` when the server is away for too long."""
        self._screen.describe_status = self._describe_status
        try:
            async with aclosing(self._connection.events(self.reading)) as events:
                async for event in events:
                    self.has_begun.set()
                    await self._handle(event)
                    if self.status:
                        break
        finally:
            self._screen.describe_status = describe_nothing
            await self._screen.flush_text()
        if self.reading.run_id is not None:
            with suppress(ApiError, ConnectionLost):
                run = await self._connection.runs.get_interaction(self.reading.chat_id, self.reading.run_id, brief=True)
                await self._screen.note(rendering.describe_usage(run["usage"], time.monotonic() - self._began))

    def _describe_status(self) -> str:
        seconds = time.monotonic() - self._began
        return f"{_SPINNER[int(seconds * 10) % len(_SPINNER)]} {seconds:.0f} s · Ctrl-C stops · {self._activity}"

    async def _handle(self, event: RunEvent) -> None:
        if self._debug or event.name not in _TEXT_EVENTS:
            await self._screen.flush_text()
        if self._debug:
            await self._screen.note(f"{event.number} {event.name} {json.dumps(event.data)}")
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
                await self._add_text(event.data["content"])
            case "answer":
                # To a reader who came late, nothing of it was sent before.
                if event.data["content"].startswith(self._text):
                    await self._add_text(event.data["content"][len(self._text) :])
                await self._end_text()
            case "withdrawn":
                await self._withdraw_text()
            case "tool_call":
                await self._show_call(event.data)
            case "tool_result":
                await self._show_result(event.data)
            case _:
                await self._show_state(event.name, event.data)

    async def _add_text(self, piece: str) -> None:
        self._text += piece
        if piece:
            await self._screen.add_text(piece)

    async def _withdraw_text(self) -> None:
        if await self._screen.withdraw_text(self._text):
            await self._screen.show_line(CORRECTION)
        self._text = ""

    async def _end_text(self) -> None:
        """Shows also the list that the text is about, except in a script if it names all tasks."""
        await self._screen.end_text()
        self._complete_text += f"{self._text}\n".casefold()
        (arguments, page), self._listed = self._listed, ("", {})
        self._text = ""
        tasks = page.get("tasks", ())
        is_named = all(task["title"].casefold() in self._complete_text for task in tasks)
        if tasks and (self._screen.is_terminal or not is_named):
            shown = tasks[:_MAX_TASKS]
            more = rendering.count_tasks(page, arguments) - len(shown)
            table = rendering.render_tasks(shown, self._screen.width)
            await self._screen.show("", table, *([f"and {more} more"] if more else []))

    async def _show_call(self, data: dict[str, Any]) -> None:
        tool, arguments = data["tool_name"], data["tool_input"]
        self._calls[data["id"]] = arguments
        self._activity = rendering.describe_call(tool, arguments)
        if rendering.get_agent(tool):
            await self._screen.report(rendering.render_agent_start(tool, arguments))

    async def _show_result(self, data: dict[str, Any]) -> None:
        arguments, details = self._calls.pop(data["id"], ""), data["details"] or {}
        is_list = data["tool_name"] == "list_tasks" and not data["is_error"]
        self._listed = (arguments, details) if is_list else ("", {})
        self._activity = "thinking"
        if agent := rendering.get_agent(data["tool_name"]):
            end = rendering.render_agent_line(agent, "failed" if data["is_error"] else "completed")
            await self._screen.report(end, rendering.render_output(data["tool_output"]))
            return
        await self._screen.report(rendering.render_call(arguments, data))

    async def _show_agent(self, name: str, data: dict[str, Any]) -> None:
        if name == "tool_call":
            call = rendering.describe_call(data["tool_name"], data["tool_input"])
            await self._screen.report(rendering.render_agent_line(data["agent"], call))
        elif name == "tool_result":
            output, details = data["tool_output"], data["details"]
            await self._screen.report(rendering.render_agent_output(output, details, is_error=data["is_error"]))

    async def _show_state(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "approval_required":
                self._activity = "waiting for your decision"
                await self._approvals.add(self.reading, data)
            case "approved" | "rejected":
                reason = f": {data['reason']}" if data.get("reason") else ""
                await self._screen.note(f"{name.capitalize()}{reason}")
                await self._approvals.remove(data["approval_id"])
            case "error":
                self._has_failed = True
                hint = " (/retry)" if data["allow_retry"] and self._screen.is_terminal else ""
                await self._screen.fail(f"{data['error']}{hint}")
            case "cancelled":
                await self._screen.note("Stopped.")
            case "progress":
                self._activity = data["text"]
                await self._screen.show_progress(data["text"])
            case "compaction":
                await self._screen.note(f"{data['messages']} earlier messages were summarised.")
            case "notice":
                await self._screen.show("", data["text"])
            case "interaction_complete":
                self.status = data["status"]
                if line := render_changes(data):
                    await self._screen.show("", line)
                if "reason" in data and not self._has_failed:
                    await self._screen.note(data["reason"])
            case _:
                pass
