"""One message and its answer on stdout, all else on stderr, and a status that says how it ended."""

import argparse
import asyncio
import json
import signal
from contextlib import suppress
from typing import Any

from cli import terminal
from cli.chat import ASKS, DONE, FAILED, NEWEST, NO_SERVER, STOPPED, Exit, rendering
from cli.chat.answer import Answer
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection
from cli.chat.screen import Screen
from cli.terminal import OutputLost
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading
from todo_client.runs import RunEvent

_ENDED: dict[str, Exit] = {"COMPLETED": DONE, "CANCELLED": STOPPED}
_STOP_SECONDS = 5  # for an answer that was just asked for to be found, and stopped


class ApprovalNeeded(Exception):
    """The answer waits for an approval, which nobody can be asked for here."""


class _Approvals(PendingApprovals):
    def __init__(self, screen: Screen, connection: Connection, arguments: argparse.Namespace) -> None:
        super().__init__(screen, connection)
        self._arguments = arguments

    async def add(self, reading: Reading, call: dict[str, Any]) -> None:
        if not self._arguments.yes:
            if not self._arguments.json:
                await self._screen.report(rendering.render_question(call["text"]))
            await self._screen.note(f"This needs your approval. Decide with: ./todo chat --thread {reading.chat_id}")
            raise ApprovalNeeded
        assert reading.run_id is not None, "it waits"
        with suppress(ApiError):  # somebody else has decided it in the meantime
            runs = self._connection.runs
            await runs.approve(reading.chat_id, reading.run_id, call["approval_id"], approved=True)


class _JsonAnswer(Answer):
    async def _handle(self, event: RunEvent) -> None:
        terminal.write(json.dumps({"id": event.number, "event": event.name, "data": event.data}) + "\n")
        if event.name == "approval_required":
            await self._approvals.add(self.reading, event.data)
        elif event.name == "interaction_complete":
            self.status = event.data["status"]


async def run(text: str, connection: Connection, arguments: argparse.Namespace) -> Exit:
    screen = Screen()
    task = asyncio.ensure_future(_run(text, connection, arguments, screen))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except ApprovalNeeded:
        return ASKS
    except asyncio.CancelledError:
        await screen.note("Stopped.")
        return STOPPED
    except OutputLost as error:
        if sentence := str(error):
            await screen.fail(sentence)
            return FAILED
        return STOPPED
    except ApiError as error:
        await screen.fail(connection.describe_error(error))
        return FAILED
    except ConnectionLost:
        await screen.fail(f"No server is running at {connection.url}. Start one here with ./todo up.")
        return NO_SERVER


async def _run(text: str, connection: Connection, arguments: argparse.Namespace, screen: Screen) -> Exit:
    await connection.alive()
    chat_id = await connection.runs.find_last_used_chat() if arguments.thread == NEWEST else arguments.thread
    if text.startswith("/") and not text.startswith("//"):
        from cli.chat.commands import table  # with imports that a message does not need
        from cli.chat.session import ChatSession

        chat = ChatSession(screen, connection, asyncio.TaskGroup())  # no command that works here starts an answer
        if chat_id is not None:
            await chat.select(chat_id)
        await table.run(chat, text.strip())
        return FAILED if screen.has_failed else DONE
    if arguments.thread == NEWEST and chat_id is None:
        await screen.note("There is no conversation to continue: this starts a new one.")
    elif chat_id is not None and await connection.is_new(chat_id):
        await screen.note(f"This starts a new conversation named {chat_id}.")
    sending = asyncio.ensure_future(connection.say(chat_id, text.removeprefix("/") if text.startswith("//") else text))
    approvals = _Approvals(screen, connection, arguments)
    try:
        reading = await asyncio.shield(sending)
        kind = _JsonAnswer if arguments.json else Answer
        answer = kind(screen, connection, reading, approvals, debug=arguments.debug)
        await answer.follow()
        return _ENDED.get(answer.status, FAILED)
    except (asyncio.CancelledError, OutputLost):
        with suppress(ApiError, ConnectionLost, TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await connection.cancel(await sending)  # which the server may have taken already
        raise
