"""A conversation in a terminal: what is typed is sent, queued, decided or carried out, while answers come."""

import argparse
import asyncio
from contextlib import suppress
from typing import Any

from cli.chat import DONE, FAILED, NEWEST, NO_SERVER, Exit, server
from cli.chat.answer import Answer
from cli.chat.approvals import PendingApprovals
from cli.chat.commands import table
from cli.chat.connection import Connection, is_own
from cli.chat.markdown import ChatMarkdown
from cli.chat.message_queue import MessageQueue
from cli.chat.screen import PROMPT, Screen, TerminalScreen, describe_nothing
from cli.data_dir import logs
from cli.terminal import OutputLost
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading

_LOOK_SECONDS = 3.0  # between two looks for what is said in the conversation elsewhere
_EDIT_PROMPT = "edit> "
_ACTIVE = ("RUNNING", "WAITING_APPROVAL")


class _LeaveChat(Exception):
    """The user has left: ends the tasks that still run."""


class TerminalChat:
    """`chat_id` is None for a conversation that is to begin; `left` is the one that it takes the place of.

    `answer` is the one that comes now, `last_run` the run of the one that came last.
    """

    def __init__(self, arguments: argparse.Namespace, screen: Screen, connection: Connection) -> None:
        self.screen = screen
        self.connection = connection
        self.chat_id: str | None = None
        self.left: str | None = None
        self.answer: Answer | None = None
        self.last_run: str | None = None
        self.chats: list[dict[str, Any]] = []
        """The conversations as `/threads` listed them."""
        self._arguments = arguments
        self._queue = MessageQueue(connection)
        self._approvals = PendingApprovals(screen, connection)
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._editing: str | None = None
        self._stopping = False
        self._following: asyncio.Task[None]
        self._group: asyncio.TaskGroup
        self._status: Exit = DONE
        connection.lost = self._report_connection

    async def run(self) -> Exit:
        """Runs until the user leaves; an answer that is not finished then continues on the server."""
        assert isinstance(self.screen, TerminalScreen), "only there something is typed"
        continues = False
        try:
            async with asyncio.TaskGroup() as self._group:
                self._group.create_task(self._work())
                await self.screen.run(self)
                continues = self.answer is not None
                raise _LeaveChat
        except* _LeaveChat:
            pass
        except* OutputLost:  # the terminal has gone
            self._status = FAILED
        if continues:
            await self.screen.note(f"See the answer: ./todo chat --thread {self.chat_id}")
        return self._status

    def entered(self, text: str) -> None:
        self._typed.put_nowait(text)

    def interrupted(self) -> bool:
        """Handles Ctrl-C; returns whether there was something to stop or to discard."""
        if self.answer is not None:
            self._group.create_task(self.stop())
        elif self._editing is not None:
            self.edit(None, "")
        else:
            return False
        return True

    def require_chat_id(self) -> str:
        if self.chat_id is None:
            raise ApiError(404, "This conversation is empty.")
        return self.chat_id

    async def say(self, text: str) -> None:
        await self.screen.echo(text)
        if self.answer is not None and await self._queue.add(self.answer, self._following, text):
            await self.screen.note("Your message comes after this answer. Press Enter to send it now.")
        elif self._editing is not None and self.chat_id is not None:
            run = self._editing
            self.edit(None)
            self.follow(self.connection.edit(self.chat_id, run, text))
        else:
            self.follow(await self.connection.say(self.chat_id, text, left=self.left), said=text)

    def follow(self, reading: Reading, *, said: str | None = None) -> None:
        """Shows an answer; `said` is the message, which the user gets back if it was not sent."""
        self.chat_id, self.left = reading.chat_id, None
        self.answer = Answer(self.screen, self.connection, reading, self._approvals, debug=self._arguments.debug)
        self._following = self._group.create_task(self._follow(self.answer, said))

    def edit(self, run_id: str | None, text: str | None = None) -> None:
        """Lets the next message replace that of a run; None: no longer."""
        self._editing = run_id
        self.screen.prompt = PROMPT if run_id is None else _EDIT_PROMPT
        if text is not None:
            self.screen.fill(text)
        self.screen.redraw()

    def clear(self) -> None:
        """Lets the next message begin a conversation in place of this one, if there is one yet."""
        self.left = self.chat_id if self.last_run or is_own(self.chat_id) else self.left
        self.chat_id = self.last_run = None
        self.edit(None)

    async def stop(self) -> None:
        """Stops the answer; the second time without waiting for its end."""
        if self.answer is None:
            await self.screen.note("There is no answer to stop.")
        elif self._stopping:
            self._following.cancel()
        else:
            self._stopping = True
            with suppress(ApiError, ConnectionLost):
                await self.connection.cancel(self.answer.reading)

    async def select(self, chat_id: str) -> dict[str, Any] | None:
        last = await self.connection.last(chat_id)
        self.chat_id, self.left = chat_id, None
        self.edit(None)
        self.last_run = last["id"] if last else None
        return last

    async def open(self, chat_id: str) -> None:
        last = await self.select(chat_id)
        if last is None:
            if await self.connection.is_new(chat_id):
                await self.screen.note(f"There is no conversation named {chat_id} yet: your first message begins it.")
            return
        await self.screen.note(f"Conversation {chat_id}:")
        await self.screen.echo(last["user_message"])
        if last["status"] in _ACTIVE:
            self.follow(Reading(chat_id, last["id"]))
            return
        answers = [event["content"] for event in last["agent_events"] if event["type"] == "ANSWER"]
        await self.screen.show(*map(ChatMarkdown, answers))
        if len(versions := last["siblings"]) > 1:
            number = versions.index(last["id"]) + 1
            await self.screen.note(f"Version {number} of {len(versions)}. Switch with /version N.")

    async def _work(self) -> None:
        try:
            if not await self._connect():
                self._status = NO_SERVER
                self.screen.leave()
                return
            if self.connection.directory is not None:
                where = self.connection.directory
                await self.screen.note(f"Agents work in {where}. They ask before the first change.")
            thread = self._arguments.thread
            if thread == NEWEST:
                thread = await self.connection.runs.find_last_used_chat()
                if thread is None:
                    await self.screen.note("There is no conversation to continue: your first message starts one.")
            if thread is not None:
                await self.open(thread)
        except (ApiError, ConnectionLost) as error:
            await self.screen.fail(self.connection.describe_error(error))
            if isinstance(error, ApiError):
                self._status = FAILED
                self.screen.leave()
                return
        self._group.create_task(self._watch())
        self._group.create_task(self._learn_names())
        while True:
            if self.answer is None:
                self.screen.wait_for_input()
            text = await self._typed.get()
            try:
                await self._handle(text)
            except (ApiError, ConnectionLost) as error:
                await self.screen.fail(self.connection.describe_error(error))
                if not text.startswith("/"):
                    self.screen.fill(text)

    async def _handle(self, text: str) -> None:
        if self.answer is not None and self.answer.status:  # it is over, and about to be put away
            await asyncio.wait({self._following})
        if text.startswith("/") and not text.startswith("//"):
            await self.screen.echo(text)
            await table.run(self, text)
        elif self._approvals:
            await self._approvals.decide(text.strip())
        elif text.strip():
            await self.say(text.removeprefix("/") if text.startswith("//") else text)
        elif self._queue and self.answer is not None and self.answer.reading.run_id is not None:
            await self._queue.steer(self.answer.reading.chat_id, self.answer.reading.run_id)
            await self.screen.note("The assistant reads it before its next step.")

    async def _connect(self) -> bool:
        with suppress(ConnectionLost):
            await self.connection.alive()
            return True
        await self.screen.show(f"No server is running at {self.connection.url}.")
        if self._arguments.url is not None or not await self._confirm("Start one here in the background? [Y/n] "):
            return False
        self.screen.describe_status = lambda: "Starting the server; ./todo down stops it …"
        started = await server.start_and_wait(self._arguments.data_dir, self.connection)
        self.screen.describe_status = describe_nothing
        if started:
            await self.screen.note("The server is running. ./todo down stops it.")
        else:
            await self.screen.show(f"The server did not start. See {logs(self._arguments.data_dir) / server.LOG}.")
        return started

    async def _confirm(self, question: str) -> bool:
        earlier, self._typed = self._typed, asyncio.Queue()  # what was typed before is no answer to it
        self.screen.prompt = question
        self.screen.redraw()
        self.screen.wait_for_input()
        answer = await self._typed.get()
        self._typed = earlier
        self.edit(None)
        return answer.strip().lower() in ("", "y", "yes")

    async def _follow(self, answer: Answer, said: str | None) -> None:
        try:
            await answer.follow()
        except (ApiError, ConnectionLost) as error:
            await self.screen.fail(self.connection.describe_error(error))
            if said is not None:
                self.screen.fill(said)
        except asyncio.CancelledError:
            self.screen.fill("\n".join(self._queue.take().values()))
            raise
        finally:
            queued = self._queue.take()
            answer.has_begun.set()
            self.last_run = answer.reading.run_id or self.last_run
            self._approvals.clear()
            self._stopping = False
            if self.answer is answer:
                self.answer = None
        chat_id = answer.reading.chat_id
        if answer.status != "COMPLETED" and (unread := await self._queue.find_unread(chat_id, queued)):
            self.screen.fill(unread)
        await self._look(chat_id)
        if self.answer is None:
            self.screen.wait_for_input()
        self._group.create_task(self._learn_names())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self.chat_id is not None:
                await self._look(self.chat_id)

    async def _look(self, chat_id: str) -> None:
        before = self.last_run
        if self.answer is not None or before is None or chat_id != self.chat_id:
            return
        with suppress(ApiError, ConnectionLost):
            newest = await self.connection.leaf(chat_id)
            if newest in (None, before):
                return
            run = await self.connection.runs.get_interaction(chat_id, newest, brief=True)
            if self.answer is None and self.last_run == before and self.chat_id == chat_id:
                self.last_run = newest
                await self.screen.echo(run["user_message"])
                self.follow(Reading(chat_id, newest))

    async def _learn_names(self) -> None:
        with suppress(ApiError, ConnectionLost):
            await self.screen.learn_names(self.connection)

    def _report_connection(self, lost: bool) -> None:
        self._group.create_task(self.screen.note("Connection lost. Reconnecting …" if lost else "Connected again."))
