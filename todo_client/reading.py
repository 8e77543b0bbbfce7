"""Reads an interaction to its end over as many connections as that takes, and repeats requests until a response."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import Events, RunEvent, Runs

T = TypeVar("T")
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.25, 5.0  # between two tries
_UNAVAILABLE = (502, 503, 504)


class Backoff:
    """Pauses between tries to reach the server. `on_lost` is called with True when it is away, with False when it is
    back.
    """

    def __init__(self, reconnect_seconds: float, on_lost: Callable[[bool], None] = lambda _: None) -> None:
        self._reconnect_seconds, self._on_lost = reconnect_seconds, on_lost
        self._pause = FIRST_PAUSE_SECONDS
        self._lost_at: float | None = None

    def reset(self) -> None:
        self._pause = FIRST_PAUSE_SECONDS
        if self._lost_at is not None:
            self._lost_at = None
            self._on_lost(False)

    async def wait(self, error: ApiError | ConnectionLost) -> None:
        """Pauses after an error. Raises it if another try is no use, or the server was away for too long."""
        if isinstance(error, ApiError) and error.status not in _UNAVAILABLE:
            raise error
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
            self._on_lost(True)
        elif now - self._lost_at > self._reconnect_seconds:
            raise error
        await self.pause()

    async def pause(self) -> None:
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.6, MAX_PAUSE_SECONDS)


async def repeat(request: Callable[[], Awaitable[T]], reconnect_seconds: float) -> T:
    """Repeats a request until the server responds. It must change nothing, or have an idempotency key."""
    backoff = Backoff(reconnect_seconds)
    while True:
        try:
            return await request()
        except (ApiError, ConnectionLost) as error:
            await backoff.wait(error)


@dataclass
class Reading:
    """How far an interaction was read. `start` requests it until its id is known, always with the same key."""

    chat_id: str
    run_id: str | None = None
    start: Callable[[Runs], Events] | None = None
    number: int = 0

    async def events(
        self, runs: Runs, *, reconnect_seconds: float, on_lost: Callable[[bool], None] = lambda _: None
    ) -> AsyncGenerator[RunEvent]:
        """Yields each event once, to the end. Raises the error if the server is away for so long."""
        backoff, repeated = Backoff(reconnect_seconds, on_lost), _RepeatedEvents()
        while True:
            was_read = False
            try:
                async with self.open(runs) as events:
                    async for event in events:
                        was_read = True
                        backoff.reset()
                        if event.name == "interaction_started":
                            self.run_id = event.data["interaction_id"]
                        self.number = event.number or self.number
                        # Progress says nothing about where the answer is, and may come again.
                        for new in (event,) if event.name == "progress" else repeated.remove_from(event):
                            yield new
                        if event.name == "interaction_complete":
                            return
                if not was_read:
                    raise ConnectionLost
                await backoff.pause()  # the server ends in order and sends readers to another process
            except (ApiError, ConnectionLost) as error:
                await backoff.wait(error)
            repeated.reconnect()

    def open(self, runs: Runs) -> Events:
        if self.run_id is not None:
            return runs.events(self.chat_id, self.run_id, after=self.number)
        assert self.start is not None, "the interaction exists or can be requested"
        return self.start(runs)


class _RepeatedEvents:
    """What is not complete has no number: after a reconnection, texts and model turns are sent from their beginning.

    The pieces of a text add up to it, however often the connection broke. An approval has the number of the tool call
    that is sent with it.
    """

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()  # characters of the open texts, by the name of their deltas
        self._repeated: Counter[str] = Counter()
        self._is_in_turn = self._expects_turn = self._resumes = False
        self._held: RunEvent | None = None
        self._approved: str | None = None  # the approval that came last

    def reconnect(self) -> None:
        self._repeated, self._read = self._read + self._repeated, Counter()
        self._resumes, self._held = True, None

    def remove_from(self, event: RunEvent) -> Iterator[RunEvent]:
        if event.name == "turn_start" and self._resumes:  # the next event shows whether it is a new one
            self._held = event
            return
        if self._held is not None and not self._is_in_turn and self._can_begin_turn(event.name):
            self._is_in_turn, self._expects_turn = True, False
            yield self._held
        self._resumes, self._held = False, None
        match event.name:
            case "turn_start" if self._is_in_turn:
                return  # again: the end of a turn, or a call, would have come before another one
            case "turn_start" | "turn_end":
                self._is_in_turn, self._expects_turn = event.name == "turn_start", False
                yield event
            case "answer_delta" | "thinking_delta":
                content = event.data["content"]
                known = min(self._repeated[event.name], len(content))
                self._read[event.name] += len(content)
                self._repeated[event.name] -= known
                if known < len(content):
                    yield event._replace(data={**event.data, "content": content[known:]})
            case "answer" | "thinking" if "agent" not in event.data:
                delta = f"{event.name}_delta"
                known = self._read.pop(delta, 0) + self._repeated.pop(delta, 0)
                if rest := event.data["content"][known:]:
                    yield RunEvent(None, delta, {"content": rest})
                yield event
            case "withdrawn":
                self._read.pop("answer_delta", None)
                self._repeated.pop("answer_delta", None)
                yield event
            case "approved":
                if event.data["approval_id"] != self._approved:
                    self._approved = event.data["approval_id"]
                    yield event
            case name:
                self._expects_turn = self._expects_turn or name in ("interaction_started", "tool_result")
                self._is_in_turn = self._is_in_turn and name not in ("tool_call", "tool_result")
                yield event

    def _can_begin_turn(self, name: str) -> bool:
        return name in ("turn_end", "answer_delta", "thinking_delta", "withdrawn") or (
            name in ("answer", "thinking") and self._expects_turn
        )
