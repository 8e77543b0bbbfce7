"""A conversation in the terminal: what is said in it, the answer that comes, and what waits for its end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cli.chat.answer import Answer
from cli.chat.approvals import PendingApprovals
from cli.chat.connection import Connection, is_own
from cli.chat.markdown import ChatMarkdown
from cli.chat.message_queue import MessageQueue
from cli.chat.screen import PROMPT, Screen
from common.changes import render_changes
from todo_client.connection import ApiError, ConnectionLost
from todo_client.reading import Reading

_EDIT_PROMPT = "edit> "
_ACTIVE = ("RUNNING", "WAITING_APPROVAL")


class ChatSession:
    """What commands act on. Answers are followed in tasks of `group`; `on_answered` is called at the end of each.

    `chat_id` is None for a conversation that is to begin; `left` is the one that it takes the place of. `answer` is the
    one that comes now, `last_run` the run of the one that came last.
    """

    def __init__(
        self,
        screen: Screen,
        connection: Connection,
        group: asyncio.TaskGroup,
        *,
        debug: bool = False,
        on_answered: Callable[[], None] = lambda: None,
    ) -> None:
        self.screen = screen
        self.connection = connection
        self.chat_id: str | None = None
        self.left: str | None = None
        self.answer: Answer | None = None
        self.last_run: str | None = None
        self.chats: list[dict[str, Any]] = []
        """The conversations as `/threads` listed them."""
        self.queue = MessageQueue(connection)
        self.approvals = PendingApprovals(screen, connection)
        self._group, self._debug, self._on_answered = group, debug, on_answered
        self._editing: str | None = None
        self._stopping = False
        self._following: asyncio.Task[None]

    def require_chat_id(self) -> str:
        if self.chat_id is None:
            raise ApiError(404, "This conversation is empty.")
        return self.chat_id

    async def say(self, text: str) -> None:
        await self.screen.echo(text)
        if self.answer is not None and await self.queue.add(self.answer, self._following, text):
            await self.screen.note("Your message comes after this answer. Press Enter to send it now.")
        elif self._editing is not None and self.chat_id is not None:
            run = self._editing
            self.edit(None)
            self.follow(self.connection.edit(self.chat_id, run, text))
        else:
            self.follow(await self.connection.say(self.chat_id, text, left=self.left), said=text)

    async def send_queued_now(self) -> None:
        if self.queue and self.answer is not None and self.answer.reading.run_id is not None:
            await self.queue.steer(self.answer.reading.chat_id, self.answer.reading.run_id)
            await self.screen.note("The assistant reads it before its next step.")

    def follow(self, reading: Reading, *, said: str | None = None) -> None:
        """Shows an answer; `said` is the message, which the user gets back if it was not sent."""
        self.chat_id, self.left = reading.chat_id, None
        self.answer = Answer(self.screen, self.connection, reading, self.approvals, debug=self._debug)
        self._following = self._group.create_task(self._follow(self.answer, said))

    async def wait_for_end(self) -> None:
        """Waits for an answer that has ended to be put away."""
        if self.answer is not None and self.answer.status:
            await asyncio.wait({self._following})

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

    def interrupt(self) -> bool:
        """Handles Ctrl-C; returns whether there was something to stop or to discard."""
        if self.answer is not None:
            self._group.create_task(self.stop())
        elif self._editing is not None:
            self.edit(None, "")
        else:
            return False
        return True

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
        changed = render_changes(last)
        await self.screen.show(*map(ChatMarkdown, answers), *(["", changed] if changed else []))
        if len(versions := last["siblings"]) > 1:
            number = versions.index(last["id"]) + 1
            await self.screen.note(f"Version {number} of {len(versions)}. Switch with /version N.")

    async def show_news(self) -> None:
        """Shows what was said in the conversation elsewhere, with its answer."""
        chat_id, before = self.chat_id, self.last_run
        if self.answer is not None or chat_id is None or before is None:
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

    async def _follow(self, answer: Answer, said: str | None) -> None:
        try:
            await answer.follow()
        except (ApiError, ConnectionLost) as error:
            await self.screen.fail(self.connection.describe_error(error))
            if said is not None:
                self.screen.fill(said)
        except asyncio.CancelledError:
            self.screen.fill("\n".join(self.queue.take().values()))
            raise
        finally:
            queued = self.queue.take()
            answer.has_begun.set()
            self.last_run = answer.reading.run_id or self.last_run
            self.approvals.clear()
            self._stopping = False
            if self.answer is answer:
                self.answer = None
        chat_id = answer.reading.chat_id
        if answer.status != "COMPLETED" and (unread := await self.queue.find_unread(chat_id, queued)):
            self.screen.fill(unread)
        if chat_id == self.chat_id:
            await self.show_news()
        if self.answer is None:
            self.screen.wait_for_input()
        self._on_answered()
