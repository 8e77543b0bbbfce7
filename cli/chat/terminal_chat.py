"""`./todo chat` in a terminal: what is typed is sent, queued, decided or carried out, while answers come."""

import argparse
import asyncio
from contextlib import suppress

from cli.chat import DONE, FAILED, NEWEST, NO_SERVER, Exit, server
from cli.chat.commands import table
from cli.chat.connection import Connection
from cli.chat.screen import TerminalScreen, describe_nothing
from cli.chat.session import ChatSession
from cli.data_dir import logs
from cli.terminal import OutputLost, clean
from todo_client.connection import ApiError, ConnectionLost

_NEWS_SECONDS = 3.0  # between two looks for what is said in the conversation elsewhere


class _LeaveChat(Exception):
    """The user has left: ends the tasks that still run."""


class TerminalChat:
    def __init__(self, arguments: argparse.Namespace, screen: TerminalScreen, connection: Connection) -> None:
        self._arguments = arguments
        self._screen = screen
        self._connection = connection
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._session: ChatSession
        self._group: asyncio.TaskGroup
        self._status: Exit = DONE
        connection.lost = self._report_connection
        if screen.completions is not None:
            screen.completions.arguments = {f"/{name}": () for name in table.COMMANDS}

    async def run(self) -> Exit:
        """Runs until the user leaves; an answer that is not finished then continues on the server."""
        continued = None
        try:
            async with asyncio.TaskGroup() as self._group:
                self._session = ChatSession(
                    self._screen,
                    self._connection,
                    self._group,
                    debug=self._arguments.debug,
                    on_answered=self._refresh_completions,
                )
                self._group.create_task(self._work())
                await self._screen.run(self._enter, self._session.interrupt)
                continued = self._session.chat_id if self._session.answer is not None else None
                raise _LeaveChat
        except* _LeaveChat:
            pass
        except* OutputLost:  # the terminal has gone
            self._status = FAILED
        if continued is not None:
            await self._screen.note(f"See the answer: ./todo chat --thread {continued}")
        return self._status

    def _enter(self, text: str) -> None:
        self._typed.put_nowait(text)

    async def _work(self) -> None:
        try:
            if not await self._connect():
                self._status = NO_SERVER
                self._screen.leave()
                return
            await self._open_first()
        except (ApiError, ConnectionLost) as error:
            await self._screen.fail(self._connection.describe_error(error))
            if isinstance(error, ApiError):
                self._status = FAILED
                self._screen.leave()
                return
        self._group.create_task(self._watch())
        self._refresh_completions()
        while True:
            if self._session.answer is None:
                self._screen.wait_for_input()
            text = await self._typed.get()
            try:
                await self._handle(text)
            except (ApiError, ConnectionLost) as error:
                await self._screen.fail(self._connection.describe_error(error))
                if not text.startswith("/"):
                    self._screen.fill(text)

    async def _open_first(self) -> None:
        if self._connection.directory is not None:
            await self._screen.note(f"Agents work in {self._connection.directory}. They ask before the first change.")
        thread = self._arguments.thread
        if thread == NEWEST:
            thread = await self._connection.runs.find_last_used_chat()
            if thread is None:
                await self._screen.note("There is no conversation to continue: your first message starts one.")
        if thread is not None:
            await self._session.open(thread)

    async def _handle(self, text: str) -> None:
        await self._session.wait_for_end()
        if text.startswith("/") and not text.startswith("//"):
            await self._screen.echo(text)
            await table.run(self._session, text)
        elif self._session.approvals:
            await self._session.approvals.decide(text.strip())
        elif text.strip():
            await self._session.say(text.removeprefix("/") if text.startswith("//") else text)
        else:
            await self._session.send_queued_now()

    async def _connect(self) -> bool:
        with suppress(ConnectionLost):
            await self._connection.alive()
            return True
        await self._screen.show(f"No server is running at {self._connection.url}.")
        if self._arguments.url is not None or not await self._confirm("Start one here in the background? [Y/n] "):
            return False
        self._screen.describe_status = lambda: "Starting the server; ./todo down stops it …"
        started = await server.start_and_wait(self._arguments.data_dir, self._connection)
        self._screen.describe_status = describe_nothing
        if started:
            await self._screen.note("The server is running. ./todo down stops it.")
        else:
            await self._screen.show(f"The server did not start. See {logs(self._arguments.data_dir) / server.LOG}.")
        return started

    async def _confirm(self, question: str) -> bool:
        earlier, self._typed = self._typed, asyncio.Queue()  # what was typed before is no answer to it
        self._screen.prompt = question
        self._screen.redraw()
        self._screen.wait_for_input()
        answer = await self._typed.get()
        self._typed = earlier
        self._session.edit(None)
        return answer.strip().lower() in ("", "y", "yes")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_NEWS_SECONDS)
            await self._session.show_news()

    def _refresh_completions(self) -> None:
        if self._screen.completions is not None:
            self._group.create_task(self._load_completions())

    async def _load_completions(self) -> None:
        completions, connection = self._screen.completions, self._connection
        assert completions is not None, "only there they are loaded"
        with suppress(ApiError, ConnectionLost):
            completions.titles = [clean(task["title"]) for task in (await connection.runs.tasks("all"))["tasks"]]
            completions.arguments = {
                f"/{name}": await command.complete(connection) if command.complete else ()
                for name, command in table.COMMANDS.items()
            }

    def _report_connection(self, lost: bool) -> None:
        self._group.create_task(self._screen.note("Connection lost. Reconnecting …" if lost else "Connected again."))
