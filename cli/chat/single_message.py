"""One message and its answer on stdout, all else on stderr, and a status that says how it ended."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from cli.chat import rendering
from cli.chat.answer import Answer
from cli.chat.connection import Connection
from cli.chat.options import ASKS, DONE, FAILED, NEWEST, NO_SERVER, STOPPED, Exit, Options
from cli.chat.screen import Screen
from cli.terminal import clean
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import Event

PATIENCE = 30  # seconds without the server in the middle of an answer
_ENDED: dict[str, Exit] = {"COMPLETED": DONE, "CANCELLED": STOPPED}
_MOST_TASKS = 50  # as in the text of other clients without cards
_STOP_SECONDS = 5  # for an answer that was just asked for to be found, and stopped


class ApprovalNeeded(Exception):
    """The answer waits for an approval, which nobody can be asked for here."""


class PrintedAnswer(Answer):
    """Prints an answer's text as it comes, or all events as JSON."""

    def __init__(self, screen: Screen, connection: Connection, reading: Reading, options: Options) -> None:
        super().__init__(screen, connection, reading, debug=options.debug)
        self._options = options
        self._printed = ""  # all messages before the one that is written

    async def handle(self, event: Event) -> None:
        if self._options.as_json:
            _write(json.dumps({"id": event.number, "event": event.name, "data": event.data}) + "\n")
            if event.name == "approval_required":
                await self.ask(event.data)
            self.status = event.data["status"] if event.name == "interaction_complete" else self.status
            return
        await super().handle(event)
        if self.status == "COMPLETED":
            await self._show_tasks()

    async def add_text(self, piece: str) -> None:
        begins = self._text == piece
        if piece:
            _write(f"\n{clean(piece)}" if begins and self._printed else clean(piece))

    async def end_text(self) -> None:
        self._printed += self._text or "\n"
        _write("" if self._text.endswith("\n") else "\n")

    async def ask(self, call: dict[str, Any]) -> None:
        if not self._options.approve_all:
            if not self._options.as_json:
                await self.report(rendering.render_question(call["text"]))
            await self.note(f"This needs your approval. Decide with: ./todo chat --thread {self.reading.chat_id}")
            raise ApprovalNeeded
        assert self.reading.run_id is not None, "it waits"
        with suppress(ApiError):  # somebody else has decided it in the meantime
            runs = self._connection.runs
            await runs.approve(self.reading.chat_id, self.reading.run_id, call["approval_id"], approved=True)

    async def _show_tasks(self) -> None:
        """Shows the list that the answer is about, unless the answer names its tasks."""
        arguments, output = self.listed
        tasks = rendering.tasks_of(output) or ()
        if all(task["title"].casefold() in self._printed.casefold() for task in tasks):
            return
        shown = tasks[:_MOST_TASKS]
        more = rendering.count_more(output, arguments, shown=len(shown))
        table = rendering.render_tasks(shown, self._screen.width)
        await self._screen.show("", table, *([f"and {more} more"] if more else []))


async def run(text: str, connection: Connection, options: Options) -> Exit:
    """Sends a message, or carries out a command; an interruption stops the answer, too."""
    task = asyncio.ensure_future(_run(text, connection, options))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    screen = Screen()
    try:
        return await task
    except ApprovalNeeded:
        return ASKS
    except asyncio.CancelledError:
        await screen.note("Stopped.")
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's end is silent
        return STOPPED
    except ApiError as error:
        await screen.fail(str(error))
        return FAILED
    except ConnectionLost:
        await screen.fail(f"No server is running at {connection.url}. Start one here with ./todo up.")
        return NO_SERVER


async def _run(text: str, connection: Connection, options: Options) -> Exit:
    await connection.alive()
    chat_id = await connection.newest() if options.thread == NEWEST else options.thread
    screen = Screen()
    if text.startswith("/") and not text.startswith("//"):
        from cli.chat.commands import table  # with imports that a message does not need
        from cli.chat.terminal_chat import TerminalChat

        chat = TerminalChat(options, screen, connection)
        if chat_id is not None:
            await chat.select(chat_id)
        await table.run(chat, text.strip())
        return FAILED if screen.has_failed else DONE
    sending = asyncio.ensure_future(connection.say(chat_id, text.removeprefix("/") if text.startswith("//") else text))
    try:
        answer = PrintedAnswer(screen, connection, await asyncio.shield(sending), options)
        await answer.follow()
        await answer.show_usage()
        return _ENDED.get(answer.status, FAILED)
    except (asyncio.CancelledError, BrokenPipeError):
        with suppress(ApiError, ConnectionLost, TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await connection.cancel(await sending)  # which the server may have taken already
        raise


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
