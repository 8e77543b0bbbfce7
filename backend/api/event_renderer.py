"""The base of what renders the events of a run in one protocol."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Generic, TypeVar

from backend.conversations.records import Entry, Event

T = TypeVar("T")


class EventRenderer(ABC, Generic[T]):
    """Renders the events of one run for one reader; a subclass is a protocol, and `T` what it sends."""

    is_over = False
    """Whether the reader needs no further events."""

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}  # how many characters of each entry were sent

    def before(self) -> Iterable[T]:
        """Renders what comes before the first event."""
        return ()

    @abstractmethod
    async def handle(self, event: Event) -> Iterable[T]:
        """Renders the next event."""

    def on_error(self, error: Exception) -> Iterable[T]:
        """Renders an error because of which no further events can be read, or raises it."""
        raise error

    def after(self) -> Iterable[T]:
        """Renders what comes after the last event, or after an error."""
        return ()

    @abstractmethod
    def encode(self, rendered: T) -> bytes: ...

    async def render(self, events: AsyncGenerator[Event]) -> AsyncGenerator[T]:
        async with aclosing(self._render_groups(events)) as groups:
            async for group in groups:
                for rendered in group:
                    yield rendered

    async def encode_stream(self, events: AsyncGenerator[Event]) -> AsyncGenerator[bytes]:
        """Yields the bytes of the stream; what one event becomes is sent together."""
        async with aclosing(self._render_groups(events)) as groups:
            async for group in groups:
                if encoded := b"".join(map(self.encode, group)):
                    yield encoded

    async def _render_groups(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Iterable[T]]:
        yield self.before()
        try:
            async with aclosing(events):
                async for event in events:
                    yield await self.handle(event)
                    if self.is_over:
                        break
        except Exception as error:  # noqa: BLE001 - a subclass decides which errors its protocol can show
            yield self.on_error(error)
        yield self.after()

    def take_text(self, entry: Entry, event: Event) -> str:
        """Returns the text that an event adds to an entry: what a delta brings, or all that was not sent before."""
        sent = self._sent.get(entry.id, 0)
        text = event.text if event.type == "entry_delta" else entry.text[sent:]
        self._sent[entry.id] = sent + len(text)
        return text

    def get_sent_text(self, entry: Entry) -> str:
        return entry.text[: self._sent.get(entry.id, 0)]
