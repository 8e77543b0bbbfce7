"""A conversation as a program has it at the run API: every POST has a key, every reader goes on where it was."""

import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.chaos.doors.chatkit import DECIDED
from tests.chaos.record import Record
from tests.runs_client import check
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import RunEvent, Runs

Json = dict[str, Any]
Opening = AbstractAsyncContextManager[AsyncIterator[RunEvent]]
_STOPS = ("interaction_complete", "approval_required")


@dataclass
class Reading:
    """What was read of an interaction, over however many connections."""

    run_id: str = ""
    events: list[RunEvent] = field(default_factory=list[RunEvent])
    last: int = 0
    grown: str = ""  # of an answer, over this connection

    def take(self, event: RunEvent) -> None:
        """An answer is what it grew to, whoever sent which piece; who comes late may read it at once."""
        check(event)
        if event.name == "interaction_started":
            self.run_id = event.data["interaction_id"]
        elif event.name == "answer_delta":
            self.grown += event.data["content"]
        elif event.name == "answer":
            events = "\n".join(f"  {one.number} {one.name} {one.data}" for one in self.events)
            answer = event.data["content"]
            assert self.grown in ("", answer), f"{self.run_id} grew to {self.grown!r}, and is {answer!r}:\n{events}"
            self.grown = ""
        if event.number:
            assert event.number > self.last, f"{event} came after {self.last}"
            self.last = event.number
        self.events.append(event)


class RunsDoor:
    """Each request once; raises `ConnectionLost` and `ApiError`. A key is the caller's."""

    def __init__(self, runs: Runs, record: Record, chance: random.Random) -> None:
        self._runs = runs
        self._record = record
        self._chance = chance
        self._readings: dict[str, Reading] = {}

    def interact(self, chat: str, text: str, key: str) -> Opening:
        return self._runs.interact(chat, text, key=key)

    def edit(self, chat: str, run_id: str, text: str, key: str) -> Opening:
        return self._runs.edit(chat, run_id, text, key=key)

    async def begin(
        self, opening: Opening, chat: str, text: str, meanwhile: Callable[[str], Awaitable[None]] | None = None
    ) -> str:
        """The id of the interaction, read as far as the connection lasts; `meanwhile` is done while it goes on."""
        reading = Reading()
        self._record.sent_once.add(text)
        try:
            await self._read(reading, opening, meanwhile)
        except ConnectionLost:
            if not reading.run_id:
                raise
        finally:
            if reading.run_id:
                self._record.interactions[reading.run_id] = (chat, text)
                self._readings[reading.run_id] = reading
        return reading.run_id

    async def follow(self, chat: str, run_id: str) -> None:
        """To where it ends, asks for consent, or the connection breaks."""
        reading = self._readings.setdefault(run_id, Reading(run_id))
        await self._read(reading, self._runs.events(chat, run_id, after=reading.last))

    async def look(self, chat: str, run_id: str) -> Json:
        one = await self._runs.get_interaction(chat, run_id)
        if one["status"] == "COMPLETED":
            self._record.answers[run_id] = answers_of(one)
        return one

    async def leaf(self, chat: str) -> Json | None:
        """The last interaction that is shown."""
        leaf = (await self._runs.get_chat(chat, limit=0))["leaf"]
        return await self.look(chat, leaf) if leaf else None

    async def thread(self, name: str) -> str | None:
        """The id of the chat that has this name."""
        chats = (await self._runs.get_chats(limit=100))["chats"]
        return next((chat["chat_id"] for chat in chats if chat["name"] == name), None)

    async def decide(self, chat: str, run_id: str, approval_id: str, *, approved: bool, key: str | None) -> None:
        await self._runs.approve(chat, run_id, approval_id, approved=approved, key=key)

    async def decide_otherwise(self, chat: str, run_id: str, approval_id: str, *, approved: bool) -> None:
        """What was decided is decided once."""
        with suppress(ConnectionLost):
            try:
                await self._runs.approve(chat, run_id, approval_id, approved=not approved)
            except ApiError as refusal:
                if refusal.status < 500 and DECIDED not in str(refusal):
                    raise
            else:
                raise AssertionError(f"{approval_id} was decided twice")

    async def send(self, chat: str, run_id: str, text: str, mode: Literal["steer", "follow_up"], key: str) -> None:
        self._record.sent_once.add(text)
        queued = await self._runs.send(chat, run_id, text, mode=mode, key=key)
        self._record.inputs[queued["input_id"]] = text

    async def cancel(self, chat: str, run_id: str, key: str) -> None:
        assert (await self._runs.cancel(chat, run_id, key=key))["status"] == "cancelling"
        self._record.stopped.add(run_id)

    async def _read(
        self, reading: Reading, opening: Opening, meanwhile: Callable[[str], Awaitable[None]] | None = None
    ) -> None:
        act_after = self._chance.randrange(1, 12)
        leave_after = self._chance.randrange(1, 20) if self._chance.random() < 0.1 else None
        reading.grown = ""
        async with opening as events:
            number = 0
            async for event in events:
                number += 1
                reading.take(event)
                if event.name in _STOPS:
                    break
                if number == act_after and meanwhile is not None:
                    await meanwhile(reading.run_id)
                if number == leave_after:
                    raise ConnectionLost


def answers_of(interaction: Json) -> list[str]:
    return [event["content"] for event in interaction["agent_events"] if event["type"] == "ANSWER"]


def new_key() -> str:
    return secrets.token_hex(8)
