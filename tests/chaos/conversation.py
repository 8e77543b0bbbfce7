"""A conversation at both doors, and a person who goes on until what they said is answered."""

import random
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

from tests.chaos.doors.chatkit import DECIDED, ChatKitDoor
from tests.chaos.doors.runs import RunsDoor, answers_of, new_key
from tests.chaos.patience import NotDone, patiently
from tests.chaos.record import Record
from todo_client.connection import ApiError

Json = dict[str, Any]
# An answer, as the database was away when a tool asked for it. What is not found any more was deleted by the attempt
# before, which broke off: at the end each task is looked at.
NOT_DONE = re.compile("I could not (?!find)|did not work")
_NOT_KNOWN = "It is unknown whether the first request"
_OVER = ("has already ended", "has finished answering")


class Conversation:
    """`chat` is what the run API calls it, `thread` what ChatKit does."""

    def __init__(self, chatkit: ChatKitDoor, runs: RunsDoor, record: Record, chance: random.Random, name: str) -> None:
        self._chatkit = chatkit
        self._runs = runs
        self._record = record
        self._chance = chance
        self.chat = name
        self.thread = ""

    async def begin(self, text: str) -> Json:
        """Say something at either door, which makes a conversation, and see it answered."""
        if self._at_chatkit():
            self.thread = self.chat = await self._patiently(lambda: self._chatkit.begin(text), text)
        else:
            await self.interact(text)
            self.thread = await self._patiently(lambda: self._runs.thread(self.chat), self.chat)
        return await self.settled(text)

    def _at_chatkit(self) -> bool:
        return self._chance.random() < 0.5

    async def answered(self, text: str, *, approve: bool | None = False) -> Json:
        """Say something, and go on until it is answered; what it asks is decided so, or with None left to wait."""
        await self.say(text)
        return await self.settled(text, approve=approve)

    async def say(self, text: str) -> None:
        """Until it is acknowledged."""
        if self._at_chatkit():
            await self._send(text, lambda: self._chatkit.say(self.thread, text))
        else:
            await self.interact(text)

    async def interact(self, text: str, meanwhile: Callable[[str], Awaitable[None]] | None = None) -> None:
        """Say it at the run API; `meanwhile` is done with the interaction while it goes on."""
        key = new_key()
        await self._patiently(
            lambda: self._runs.begin(self._runs.interact(self.chat, text, key), self.chat, text, meanwhile), text
        )

    async def edit(self, edited: Json, text: str) -> None:
        """Say something else in place of an interaction's message."""
        if self._at_chatkit():
            await self._send(text, lambda: self._chatkit.edit(self.thread, edited["user_message"], text))
            return
        key = new_key()
        await self._patiently(
            lambda: self._runs.begin(self._runs.edit(self.chat, edited["id"], text, key), self.chat, text), text
        )

    async def _send(self, text: str, send: Callable[[], Awaitable[None]]) -> None:
        """Without a key: after each attempt it is looked whether the message is there."""

        async def attempt() -> bool | None:
            leaf = await self._runs.leaf(self.chat)
            if leaf is not None and leaf["user_message"] == text:
                return True
            try:
                await send()
            except NotDone:  # it says why on the next look, or was never stored
                return None
            return True

        await self._patiently(attempt, text)

    async def settled(self, text: str, *, approve: bool | None = False) -> Json:
        """The interaction of this message when it has been answered: answered again where it was not.

        Who insists asks for another answer while the first one goes on, and is refused until its lease is over.
        """
        insists = self._chance.random() < 0.3

        async def attempt() -> Json:
            one = await self._runs.leaf(self.chat)
            assert one is not None, self.chat
            assert one["user_message"] == text, f"{one['user_message']!r} stands where {text!r} was acknowledged"
            if one["status"] == "RUNNING" and not insists:
                await self._runs.follow(self.chat, one["id"])
            elif one["status"] == "WAITING_APPROVAL":
                if approve is None:
                    return one
                await self.decide(one, approve=approve)
            elif one["status"] == "COMPLETED" and _is_done(one):
                return one
            else:
                await self._answer_again(text)
            raise NotDone(f"{one['id']} was {one['status']}, {one.get('reason')}: {answers_of(one)}")

        return await self._patiently(attempt, text)

    async def _answer_again(self, text: str) -> None:
        """ChatKit's retry, as the same message in an edit is another message."""
        with suppress(NotDone):
            await self._chatkit.answer_again(self.thread, text)

    async def stopped(self) -> Json:
        """The newest interaction when it has ended or waits; it is followed, or just asked for, while it goes on."""

        async def attempt() -> Json | None:
            one = await self._runs.leaf(self.chat)
            assert one is not None, self.chat
            if one["status"] != "RUNNING":
                return one
            await self._runs.follow(self.chat, one["id"])
            return None

        return await self._patiently(attempt, "the end of an answer")

    async def decide(self, one: Json, *, approve: bool) -> None:
        """All that an interaction asks, one after the other, at some door; again where nobody said that it arrived."""
        for asked in one["approvals"]:
            if asked["approved"] is None:
                await self._decide(one["id"], asked["approval_id"], approve=approve)

    async def _decide(self, run_id: str, approval_id: str, *, approve: bool) -> None:
        attempts = 0
        key = new_key() if self._chance.random() < 0.5 else None

        async def attempt() -> bool | None:
            nonlocal attempts, key
            attempts += 1
            try:
                if self._at_chatkit():
                    await self._chatkit.decide(self.thread, approval_id, approved=approve)
                else:
                    await self._runs.decide(self.chat, run_id, approval_id, approved=approve, key=key)
            except ApiError as refusal:
                if _NOT_KNOWN in str(refusal):  # the answer to the first attempt was lost, and who looks sees it
                    key = None
                    return None
                if DECIDED not in str(refusal) or attempts == 1:  # nobody else decides
                    raise
            return True

        await self._patiently(attempt, f"decision {approval_id}")
        self._record.decisions[approval_id] = approve
        if self._chance.random() < 0.2:
            await self._runs.decide_otherwise(self.chat, run_id, approval_id, approved=approve)

    async def send(self, run_id: str, text: str, mode: Literal["steer", "follow_up"]) -> None:
        """Say something to an interaction that goes on, if it still does."""
        self._record.sent_to[text] = run_id
        key = new_key()
        await self._unless_over(lambda: self._runs.send(self.chat, run_id, text, mode, key), text)

    async def cancel(self, run_id: str) -> None:
        key = new_key()
        await self._unless_over(lambda: self._runs.cancel(self.chat, run_id, key), "cancel")

    async def _unless_over(self, request: Callable[[], Awaitable[None]], what: str) -> None:
        async def attempt() -> bool:
            try:
                await request()
            except ApiError as refusal:
                if not any(over in str(refusal) for over in (*_OVER, _NOT_KNOWN)):
                    raise
            return True

        await self._patiently(attempt, what)

    async def _patiently(self, attempt: Callable[[], Awaitable[Any]], what: str) -> Any:
        return await patiently(attempt, what, self.chat)


def _is_done(one: Json) -> bool:
    """What was refused was not done either, and that is an answer."""
    refused = any(asked["approved"] is False for asked in one["approvals"])
    return refused or not any(map(NOT_DONE.search, answers_of(one)))
