"""Requests of a simulated user through the run API, with idempotency keys and readers that continue where they were."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.chaos.apis.chatkit import DECIDED
from tests.chaos.client_record import ClientRecord
from tests.runs_client import check
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import RunEvent, Runs

Json = dict[str, Any]
Stream = AbstractAsyncContextManager[AsyncIterator[RunEvent]]
InputMode = Literal["steer", "follow_up"]
OnRunning = Callable[[str], Awaitable[None]]
"""Is called with the id of an interaction while it runs."""
_LAST_EVENTS = ("interaction_complete", "approval_required")


@dataclass
class EventReader:
    """The events of an interaction that were read over any number of connections."""

    run_id: str = ""
    events: list[RunEvent] = field(default_factory=list[RunEvent])
    last_number: int = 0
    partial_answer: str = ""  # of this connection

    def take(self, event: RunEvent) -> None:
        """Checks that an answer equals its deltas, if there were any, and that event numbers increase."""
        check(event)
        if event.name == "interaction_started":
            self.run_id = event.data["interaction_id"]
        elif event.name == "answer_delta":
            self.partial_answer += event.data["content"]
        elif event.name == "answer":
            events = "\n".join(f"  {one.number} {one.name} {one.data}" for one in self.events)
            partial, answer = self.partial_answer, event.data["content"]
            assert partial in ("", answer), f"the deltas of {self.run_id} are {partial!r}, not {answer!r}:\n{events}"
            self.partial_answer = ""
        if event.number:
            assert event.number > self.last_number, f"{event} came after {self.last_number}"
            self.last_number = event.number
        self.events.append(event)


class RecordingRuns:
    """Sends each request once, and records what was acknowledged. The methods raise `ConnectionLost` and `ApiError`."""

    def __init__(self, runs: Runs, record: ClientRecord, rng: random.Random) -> None:
        self._runs = runs
        self._record = record
        self._rng = rng
        self._readers: dict[str, EventReader] = {}

    async def interact(self, chat: str, text: str, key: str, on_running: OnRunning | None = None) -> str:
        """Starts an interaction, follows it while the connection lasts, and returns its id."""
        return await self._start(self._runs.interact(chat, text, key=key), chat, text, on_running)

    async def edit(self, chat: str, run_id: str, text: str, key: str) -> str:
        return await self._start(self._runs.edit(chat, run_id, text, key=key), chat, text)

    async def _start(self, stream: Stream, chat: str, text: str, on_running: OnRunning | None = None) -> str:
        reader = EventReader()
        self._record.keyed_texts.add(text)
        try:
            await self._read(reader, stream, on_running)
        except ConnectionLost:
            if not reader.run_id:
                raise
        finally:
            if reader.run_id:
                self._record.interactions[reader.run_id] = (chat, text)
                self._readers[reader.run_id] = reader
        return reader.run_id

    async def follow(self, chat: str, run_id: str) -> None:
        """Follows an interaction until it ends, requests an approval, or the connection breaks."""
        reader = self._readers.setdefault(run_id, EventReader(run_id))
        await self._read(reader, self._runs.events(chat, run_id, after=reader.last_number))

    async def get_last_interaction(self, chat: str) -> Json | None:
        """Returns the last interaction of the active path."""
        run_id = (await self._runs.get_chat(chat, limit=0))["leaf"]
        if run_id is None:
            return None
        interaction = await self._runs.get_interaction(chat, run_id)
        if interaction["status"] == "COMPLETED":
            self._record.answers[run_id] = answers_of(interaction)
        return interaction

    async def find_chat_id(self, name: str) -> str | None:
        chats = (await self._runs.get_chats(limit=100))["chats"]
        return next((chat["chat_id"] for chat in chats if chat["name"] == name), None)

    async def decide(self, chat: str, run_id: str, approval_id: str, *, approved: bool, key: str | None) -> None:
        await self._runs.approve(chat, run_id, approval_id, approved=approved, key=key)

    async def check_decision_is_final(self, chat: str, run_id: str, approval_id: str, *, approved: bool) -> None:
        """Sends the opposite decision and checks that it is rejected."""
        with suppress(ConnectionLost):
            try:
                await self._runs.approve(chat, run_id, approval_id, approved=not approved)
            except ApiError as error:
                if error.status < 500 and DECIDED not in str(error):
                    raise
            else:
                raise AssertionError(f"{approval_id} was decided twice")

    async def send_input(self, chat: str, run_id: str, text: str, mode: InputMode, key: str) -> None:
        self._record.keyed_texts.add(text)
        queued = await self._runs.send(chat, run_id, text, mode=mode, key=key)
        self._record.inputs[queued["input_id"]] = text

    async def cancel(self, chat: str, run_id: str, key: str) -> None:
        assert (await self._runs.cancel(chat, run_id, key=key))["status"] == "cancelling"

    async def _read(self, reader: EventReader, stream: Stream, on_running: OnRunning | None = None) -> None:
        """Reads a stream, calls `on_running` after some events, and sometimes disconnects."""
        call_after = self._rng.randrange(1, 12)
        disconnect_after = self._rng.randrange(1, 20) if self._rng.random() < 0.1 else None
        reader.partial_answer = ""
        async with stream as events:
            number = 0
            async for event in events:
                number += 1
                reader.take(event)
                if event.name in _LAST_EVENTS:
                    break
                if number == call_after and on_running is not None:
                    await on_running(reader.run_id)
                if number == disconnect_after:
                    raise ConnectionLost


def answers_of(interaction: Json) -> list[str]:
    return [event["content"] for event in interaction["agent_events"] if event["type"] == "ANSWER"]
