"""What a person types is said, queued, decided or done, while answers come."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from cli.chat.answer import Answer
from cli.chat.asked import MARK as ASKS
from cli.chat.asked import Asked
from cli.chat.commands import table
from cli.chat.connection import Connection, Reading, is_own
from cli.chat.elsewhere import RUNS, show, watch
from cli.chat.learned import Learned
from cli.chat.options import FAILED, NEWEST, Exit, Options
from cli.chat.queued import Queue
from cli.chat.screens.screen import MARK, Screen
from todo_client.connection import ApiError, ConnectionLost

EDITS = "edit> "


class Talk:
    """`chat_id` is the conversation's, None for one that is to begin; `left` that of the one that it goes on from.

    `answer` is the one that comes now, `last_run` the one that came last.
    """

    def __init__(self, options: Options, screen: Screen, connection: Connection, known: dict[str, list[str]]) -> None:
        self.screen = screen
        self.connection = connection
        self.chat_id: str | None = None
        self.left: str | None = None
        self.answer: Answer | None = None
        self.last_run: str | None = None
        self.is_single = False
        """Whether one command is carried out, and nothing follows it."""
        self.learned = Learned(connection, known)
        self._options = options
        self._queue = Queue(connection)
        self._asked = Asked(screen, connection)
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._editing: str | None = None
        self._stopping = False
        self._following: asyncio.Future[None]
        self._tasks: set[asyncio.Future[None]] = set()
        self._broken: BaseException | None = None
        self._status: Exit | None = None
        connection.lost = self._lost

    async def begin(self) -> None:
        """In the conversation that was asked for."""
        try:
            if self._options.thread == NEWEST:
                newest = await self.connection.newest()
                if newest is not None:
                    await self.open(newest)
            elif self._options.thread is not None:
                await self.open(self._options.thread)
        except ApiError as refusal:
            await self.screen.fail(str(refusal))
            self._status = FAILED
            self.screen.leave()
            return
        except ConnectionLost as lost:
            await self.screen.fail(str(lost))
        for work in (self._take_all(), watch(self), self.learned.learn()):
            self.soon(work)
        if self.answer is None:
            self.screen.waits()

    async def close(self) -> Exit | None:
        """Leave; an answer that is under way goes on. Raises what nobody had expected."""
        goes_on = self.answer is not None
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._broken is not None:
            raise self._broken
        if goes_on:
            await self.screen.note(f"See the answer: ./todo chat --thread {self.chat_id}")
        return self._status

    def entered(self, text: str) -> None:
        self._typed.put_nowait(text)

    def interrupted(self) -> bool:
        """Whether there was something to stop or to give up."""
        if self.answer is not None:
            self.soon(self.stop())
        elif self._editing is not None:
            self._editing = None
            self.screen.fill("")
            self._mark()
        else:
            return False
        return True

    # What is done

    async def say(self, text: str) -> None:
        """Something: as a message of its own, or one that waits for the answer that runs."""
        if self.answer is not None and self.answer.status:
            await asyncio.wait({self._following})
        await self.screen.echo(text)
        if self.answer is not None and await self._queue.add(self.answer, self._following, text):
            await self.screen.note("Your message comes after this answer. Press Enter to send it now.")
        elif self._editing is not None and self.chat_id is not None:
            run, self._editing = self._editing, None
            self.follow(self.connection.edit(self.chat_id, run, text))
        else:
            self.follow(await self.connection.say(self.chat_id, text, left=self.left), said=text)

    def follow(self, reading: Reading, *, said: str | None = None) -> None:
        """An answer that begins, or goes on; it may be the one to what was `said`."""
        self.chat_id, self.left = reading.chat_id, None
        debug = self._options.debug
        self.answer = Answer(self.screen, self.connection, reading, asks=self._asks, decided=self._decided, debug=debug)
        self._mark()
        self._following = self.soon(self._follow(self.answer, said))

    def edit(self, run_id: str, text: str) -> None:
        """Let the next message stand in the place of that one."""
        self._editing = run_id
        self._mark()
        self.screen.fill(text)

    def clear(self) -> None:
        """Let the next message begin a conversation in place of this one, if there is one yet."""
        self.left = self.chat_id if self.last_run or is_own(self.chat_id) else self.left
        self.chat_id = self.last_run = self._editing = None
        self._mark()

    async def stop(self) -> None:
        """Stop the answer; who asks twice does not wait for its end."""
        answer = self.answer
        if answer is None:
            await self.screen.note("There is no answer to stop.")
        elif self._stopping:
            self._following.cancel()
        else:
            self._stopping = True
            with suppress(ApiError, ConnectionLost):
                await self.connection.cancel(answer.reading)

    async def select(self, chat_id: str) -> dict[str, Any] | None:
        """Makes a conversation the current one and returns its last interaction."""
        last = await self.connection.last(chat_id)
        self.chat_id, self.left, self._editing = chat_id, None, None
        self.last_run = last["id"] if last else None
        return last

    async def open(self, chat_id: str) -> None:
        """Goes on with a conversation: shows its last message, and follows the answer that runs in it."""
        last = await self.select(chat_id)
        if last is None:
            return
        await show(self.screen, chat_id, last)
        if last["status"] in RUNS:
            self.follow(Reading(chat_id, last["id"]))

    def soon(self, work: Awaitable[None]) -> "asyncio.Future[None]":
        """Beside what goes on; what nobody expects of it ends the conversation here."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Future[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = self._broken or error
            self.screen.leave()

    def _mark(self) -> None:
        self.screen.mark = ASKS if self._asked else EDITS if self._editing else MARK
        self.screen.redraw()

    # What is typed

    async def _take_all(self) -> None:
        while True:
            text = await self._typed.get()
            try:
                await self._take(text)
            except (ApiError, ConnectionLost) as error:
                await self.screen.fail(str(error))
                if not text.startswith("/"):
                    self.screen.fill(text)
            if self.answer is None:
                self.screen.waits()

    async def _take(self, text: str) -> None:
        if text.startswith("/") and not text.startswith("//"):
            await self.screen.echo(text)
            await table.run(self, text)
        elif self._asked:
            if self.answer is not None:
                await self._asked.decide(self.answer.reading, text.strip())
        elif text.strip():
            await self.say(text.removeprefix("/") if text.startswith("//") else text)
        elif self._queue and self.answer is not None and self.answer.reading.run_id is not None:
            await self._queue.send_now(self.answer.reading.chat_id, self.answer.reading.run_id)
            await self.screen.note("The assistant reads it before its next step.")

    async def _asks(self, asked: dict[str, Any]) -> None:
        await self._asked.add(asked)
        self._mark()
        self.screen.waits()

    async def _decided(self, approval_id: str, told: str) -> None:
        await self.screen.note(told)
        await self._asked.remove(approval_id)
        self._mark()

    # What comes

    async def _follow(self, answer: Answer, said: str | None) -> None:
        refused: ApiError | None = None
        try:
            await answer.follow()
        except ApiError as refusal:
            refused = refusal
        except ConnectionLost as lost:
            await self.screen.fail(str(lost))
            self.screen.fill(said or "")
        except asyncio.CancelledError:
            self.screen.fill("\n".join(text for _, text in self._queue.take()))
            raise
        finally:
            queued = self._queue.take()
            self._end(answer)
        if answer.status != "COMPLETED" and (left := await self._queue.unread(answer.reading.chat_id, queued)):
            self.screen.fill(left)
        if refused is not None:
            await self._join_or_tell(refused, said)
        if self.answer is None:
            self.screen.waits()
        await self.learned.learn()

    def _end(self, answer: Answer) -> None:
        """The answer has ended."""
        answer.begun.set()
        self.last_run = answer.reading.run_id or self.last_run
        self._asked.clear()
        self._stopping = False
        self.screen.status = ""
        if self.answer is answer:
            self.answer = None
        self._mark()

    async def _join_or_tell(self, refused: ApiError, said: str | None) -> None:
        """What was not taken is said after the answer that runs here, or given back with the reason."""
        error: ApiError | ConnectionLost = refused
        if refused.status == 409 and said is not None:
            try:
                if await self._join(said):
                    return
            except (ApiError, ConnectionLost) as other:  # it has ended just now, for one
                error = other
        await self.screen.fail(str(error))
        if said is not None:
            self.screen.fill(said)

    async def _join(self, said: str) -> bool:
        """Another answer runs here: follow that, and let this be answered after it."""
        assert self.chat_id is not None, "it was said in a conversation"
        last = await self.connection.last(self.chat_id)
        if last is None or last["status"] not in RUNS:
            return False
        await self.screen.note("The assistant is still answering here. Your message comes after that answer.")
        self.follow(Reading(self.chat_id, last["id"]))
        await self._queue.send(self.chat_id, last["id"], said)
        return True

    def _lost(self, lost: bool) -> None:
        self.soon(self.screen.note("Connection lost. Reconnecting …" if lost else "Connected again."))
