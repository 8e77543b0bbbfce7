"""What a turn has to say: values in order, appended by the turn alone, for a door to read and render."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
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


@dataclass(slots=True)
class Mark:
    """How far somebody has read: so many events, and of the text of the last one so many characters.

    By then it was `said` so often that there is something to show.
    """

    events: int = 0
    characters: int = 0
    said: int = 0


class Log:
    """Every event of a turn; any number of readers, each from where it likes.

    Who reads as it comes reads each word. Once somebody has read them, what a part of an item grew by at a stretch is
    one event: an answer has thousands of words, and Python's collector of garbage walks what is kept of each.
    """

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.first_event_after: float | None = None  # seconds
        self._read: list[Event] = []
        self._unread: list[Event] = []  # by anybody
        self._said = 0  # how often there was something that wakes a reader
        self.published = Mark()  # what came before was published in the transaction that its turn began with
        self._closed = False
        self._news = asyncio.Event()
        self._watch: Callable[[Event | None], None] | None = None

    def append(self, event: Event) -> None:
        if self.first_event_after is None:
            self.first_event_after = time.perf_counter() - self.began
        self._unread.append(event)
        if not isinstance(event, _UNSAID):
            self._said += 1
            self._news.set()
        if self._watch is not None:
            self._watch(event)

    def close(self) -> None:
        """Nothing follows."""
        self._closed = True
        self._news.set()
        watch, self._watch = self._watch, None  # it may hold this log
        if watch is not None:
            watch(None)

    def begin_here(self) -> None:
        """What was said so far was published with what it tells of."""
        self.since(self.published)

    def watch(self, watch: Callable[[Event | None], None]) -> None:
        """Call `watch`, which takes no time, with each further event, and with None when the log is closed."""
        self._watch = watch

    @property
    def closed(self) -> bool:
        return self._closed

    def since(self, mark: Mark) -> Sequence[Event]:
        """The events after the mark that there are now; it moves behind them."""
        rest = [] if mark.events == 0 else _rest(self._read[mark.events - 1], mark.characters)
        news = [*rest, *self._read[mark.events :], *self._unread]
        if self._unread:
            self._read[-1:] = _merged([*self._read[-1:], *self._unread])
            self._unread.clear()
        mark.events, mark.said = len(self._read), self._said
        mark.characters = len(last.text) if self._read and isinstance(last := self._read[-1], Grown) else 0
        return news

    async def after(self, mark: Mark) -> Sequence[Event]:
        """The same, once there is one to show; none when the log ends there."""
        while self._said == mark.said and not self._closed:
            self._news.clear()
            await self._news.wait()
        return self.since(mark)


def _rest(event: Event, characters: int) -> list[Event]:
    """What an event has grown by that had so many characters."""
    if isinstance(event, Grown) and len(event.text) > characters:
        return [Grown(event.item_id, event.part, event.text[characters:])]
    return []


def _merged(events: Sequence[Event]) -> Iterator[Event]:
    """What a part of an item grows by at a stretch is one event."""
    for part, together in groupby(events, _part):
        if part is None:
            yield from together
        else:
            yield Grown(*part, "".join(event.text for event in together if isinstance(event, Grown)))


def _part(event: Event) -> tuple[str, int] | None:
    """Of which item, where it grows."""
    return (event.item_id, event.part) if isinstance(event, Grown) else None
