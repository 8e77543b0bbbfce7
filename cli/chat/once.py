"""One message and its answer on stdout, all else on stderr, and a status that says how it ended."""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import aclosing, suppress
from typing import Any

from cli.chat.answer import OF_AGENTS
from cli.chat.connection import Connection, Reading
from cli.chat.options import ASKS, DONE, FAILED, NEWEST, NO_SERVER, STOPPED, Exit, Options, wants_colour
from cli.chat.screens import drawing
from cli.chat.screens.text import Style, clean
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import Event

PATIENCE = 30  # seconds without the server in the middle of an answer
_ENDED: dict[str, Exit] = {"COMPLETED": DONE, "CANCELLED": STOPPED}
_WIDTH = 100
_MOST_TASKS = 50  # as in the text of other clients without cards
_STOP_SECONDS = 5  # for an answer that was just asked for to be found, and stopped


class Once:
    def __init__(self, connection: Connection, options: Options) -> None:
        self._connection = connection
        self._options = options
        self._style = Style(colour=wants_colour(terminal=sys.stderr.isatty()))
        self._said = ""  # of the message that grows
        self._has_said = False  # one before it
        self._list: str | None = None
        self._listed_with = ""
        self._answers = ""
        self._calls: dict[str, str] = {}
        self._last_call = ""
        """The line of the call that returned last, which is not repeated."""

    async def run(self, text: str) -> Exit:
        """Say it, and follow the answer to its end; who interrupts it stops the answer, too."""
        task = asyncio.ensure_future(self._answer(text))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            self._tell("Stopped.")
            return STOPPED
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's end is silent
            return STOPPED
        except ApiError as refusal:
            self._tell(f"{self._style.bad('error:')} {clean(str(refusal))}")
            return FAILED
        except ConnectionLost:
            where = self._connection.url
            self._tell(f"{self._style.bad('error:')} No server is running at {where}. Start one here with ./todo up.")
            return NO_SERVER

    async def _answer(self, text: str) -> Exit:
        began = time.monotonic()
        await self._connection.alive()
        chat_id = await self._chat()
        if text.startswith("/") and not text.startswith("//"):
            from cli.chat.single_command import run_command  # imports Markdown, which a message does not need

            return await run_command(text.strip(), self._connection, self._options, chat_id, _WIDTH)
        said = text.removeprefix("/") if text.startswith("//") else text
        saying = asyncio.ensure_future(self._connection.say(chat_id, said))
        try:
            reading = await asyncio.shield(saying)
            async with aclosing(self._connection.events(reading)) as events:
                async for event in events:
                    self._tell_of(event)
                    if event.name == "approval_required":
                        if not self._options.approve_all:
                            return self._leave(reading)
                        await self._approve(reading, event.data["approval_id"])
                    if event.name == "interaction_complete":
                        if event.data["status"] == "COMPLETED":
                            self._write_list()
                        await self._tell_usage(reading, time.monotonic() - began)
                        return _ENDED.get(event.data["status"], FAILED)
        except (asyncio.CancelledError, BrokenPipeError):
            with suppress(ApiError, ConnectionLost, TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._connection.cancel(await saying)  # which the server may have taken already
            raise
        raise ConnectionLost

    async def _chat(self) -> str | None:
        if self._options.thread != NEWEST:
            return self._options.thread
        return await self._connection.newest()

    def _tell_of(self, event: Event) -> None:
        if self._options.as_json:
            _write(json.dumps({"id": event.number, "event": event.name, "data": event.data}))
            return
        if event.name in OF_AGENTS and event.data.get("agent"):
            return
        match event.name:
            case "answer_delta":
                self._say(event.data["content"])
            case "answer":
                self._end_answer(event.data["content"])
            case _:
                self._tell_beside(event.name, event.data)
        if self._options.debug:
            self._tell(self._style.dim(f"{event.number} {event.name} {json.dumps(event.data)}"))

    def _tell_beside(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "tool_call":
                self._calls[data["id"]] = data["tool_input"]
            case "tool_result":
                self._list = data["tool_output"] if drawing.listed(data["tool_output"]) else None
                given = self._listed_with = self._calls.get(data["id"], "")
                line = drawing.call_line(self._style, data["tool_name"], given, data["tool_output"], _WIDTH)
                if line != self._last_call:
                    self._tell(line)
                self._last_call = line
            case "approval_required":
                self._tell("\n".join(drawing.asked_lines(self._style, data["text"], _WIDTH)))
            case "error":
                self._tell(f"{self._style.bad('error:')} {clean(data['error'])}")
            case "interaction_complete" if "reason" in data:
                self._tell(clean(data["reason"]))
            case "compaction":
                self._tell(self._style.dim(f"{data['messages']} earlier messages were summarised."))
            case _:
                pass

    def _say(self, piece: str) -> None:
        begins = not self._said
        self._said += piece
        if piece:
            _write(f"\n{clean(piece)}" if begins and self._has_said else clean(piece), end="")

    def _end_answer(self, whole: str) -> None:
        """All of it was said, unless nothing of it was, as to a reader who came late."""
        if whole.startswith(self._said):
            self._say(whole[len(self._said) :])
        self._said = ""
        self._answers += whole.casefold()
        _write("" if whole.endswith("\n") else "\n", end="")
        self._has_said = True

    async def _approve(self, reading: Reading, approval_id: str) -> None:
        """Approves a call, unless somebody else has decided it in the meantime."""
        assert reading.run_id is not None, "it waits"
        with suppress(ApiError):
            await self._connection.runs.approve(reading.chat_id, reading.run_id, approval_id, approved=True)

    def _leave(self, reading: Reading) -> Exit:
        self._tell(f"This needs your approval. Decide with: ./todo chat --thread {reading.chat_id}")
        return ASKS

    def _write_list(self) -> None:
        """The list that the answer is about, unless the answer names its tasks."""
        tasks = drawing.listed(self._list) if self._list and not self._options.as_json else None
        if tasks and not all(task["title"].casefold() in self._answers for task in tasks):
            lines = drawing.task_lines(Style(colour=False), tasks[:_MOST_TASKS], _WIDTH)
            more = drawing.rest_of(self._list or "", self._listed_with, shown=len(tasks[:_MOST_TASKS]))
            _write("\n".join(["", *lines, *([f"and {more} more"] if more else [])]))

    async def _tell_usage(self, reading: Reading, seconds: float) -> None:
        assert reading.run_id is not None, "it has ended"
        with suppress(ApiError, ConnectionLost):
            told = await self._connection.runs.get_interaction(reading.chat_id, reading.run_id, brief=True)
            self._tell(self._style.dim(drawing.usage_line(told["usage"], seconds)))

    def _tell(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def _write(text: str, *, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()
