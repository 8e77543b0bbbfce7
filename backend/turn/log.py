"""What a turn has to say: values in order, appended by the turn alone, for a door to read and render."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from backend.conversation.items import Item, Json, Message, Said, Summarised, Thought, Widget, Work
from backend.conversation.runs.leases import Outcome


@dataclass(frozen=True, slots=True)
class Started:
    """The turn holds its lease, and what was said is stored; `conversation` is its row."""

    conversation: dict[str, Any]
    is_new: bool
    said: Said | None


@dataclass(frozen=True, slots=True)
class Begun:
    """An item that grows from here on: at first it has nothing in it, whatever it holds by now."""

    item: Message | Thought | Work


@dataclass(frozen=True, slots=True)
class WorkedOn:
    """A step of an agent's work, which is new or has changed."""

    item_id: str
    number: int
    step: Json


@dataclass(frozen=True, slots=True)
class PartBegun:
    item_id: str
    part: int


@dataclass(frozen=True, slots=True)
class Grown:
    item_id: str
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class PartDone:
    item_id: str
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """An item as it stays."""

    item: Item


@dataclass(frozen=True, slots=True)
class Replaced:
    item: Widget | Work


@dataclass(frozen=True, slots=True)
class Removed:
    item_id: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A line on what the turn does, or with `done`, on what it has done."""

    text: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    allow_retry: bool


@dataclass(frozen=True, slots=True)
class StepBegun:
    """The model is asked."""


@dataclass(frozen=True, slots=True)
class StepDone:
    """The model has answered."""


@dataclass(frozen=True, slots=True)
class Called:
    """A tool begins; `arguments` are JSON, as the model wrote them."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What a tool returned, or the sentence in its place, as the model reads it."""

    call_id: str
    tool: str
    output: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A call waits for its person's consent; `text` says in words what it would do. Its card is `Done` beside it.

    The assistant wants to make it, or an `agent` that works for it.
    """

    approval_id: str
    call_id: str
    tool: str
    arguments: str
    text: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """The person answered, or wrote something else instead. The card that says so is `Replaced` beside it."""

    approval_id: str
    approved: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Compacted:
    """The model reads a summary in place of earlier messages, which nobody who followed a turn was told of yet."""

    item: Summarised


@dataclass(frozen=True, slots=True)
class Paused:
    """The turn ends here and its run waits; where it goes on, more follows. Only in what is published of a log."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody wanted it to end, and its end follows. Only in what is published of a log."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run has ended, and nothing follows. Only in what is published of a log."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Reset:
    """What came before is not held any more: all that is stored of it follows. Only for a reader that comes late."""


Event = (
    Started
    | Compacted
    | StepBegun
    | StepDone
    | Begun
    | WorkedOn
    | PartBegun
    | Grown
    | PartDone
    | Done
    | Replaced
    | Removed
    | Called
    | Answered
    | Asked
    | Decided
    | Progress
    | Notice
    | Failed
    | Paused
    | Cancelled
    | Ended
    | Reset
)

_UNSAID = (StepBegun, StepDone, Called, Answered, Asked, Decided)
"""Who reads the log itself shows none of these, and is not woken for them."""


def end_with(outcome: Outcome) -> list[Event]:
    """What is published of a run's end."""
    return [*([Cancelled()] if outcome == "cancelled" else []), Ended(outcome)]


class Log:
    """Every event of a turn; any number of readers, each from where it likes."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.first_event_after: float | None = None  # seconds
        self._events: list[Event] = []
        self._said = 0  # the place of the newest event that wakes a reader
        self.published = 0  # so many of its first events were published in the transaction that its turn began with
        self._closed = False
        self._news = asyncio.Event()
        self._watch: Callable[[Event | None], None] | None = None

    def append(self, event: Event) -> None:
        if self.first_event_after is None:
            self.first_event_after = time.perf_counter() - self.began
        self._events.append(event)
        if not isinstance(event, _UNSAID):
            self._said = len(self._events)
            self._news.set()
        if self._watch is not None:
            self._watch(event)

    def close(self) -> None:
        """Nothing follows."""
        self._closed = True
        self._news.set()
        if self._watch is not None:
            self._watch(None)

    def begin_here(self) -> None:
        """What was said so far was published with what it tells of."""
        self.published = len(self._events)

    def watch(self, watch: Callable[[Event | None], None]) -> None:
        """Call `watch`, which takes no time, with each further event, and with None when the log is closed."""
        self._watch = watch

    @property
    def closed(self) -> bool:
        return self._closed

    def since(self, position: int) -> Sequence[Event]:
        """The events after the first `position` that there are now."""
        return self._events[position:]

    async def after(self, position: int) -> Sequence[Event]:
        """The events after the first `position`, once there is one to show; none when the log ends there."""
        while self._said <= position and not self._closed:
            self._news.clear()
            await self._news.wait()
        return self._events[position:]
