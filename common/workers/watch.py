"""What the connections of a process share."""

import asyncio
import logging
from collections import OrderedDict
from typing import Protocol

from common.workers.limits import ClientLimits

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_PIECE_BYTES = 4_096  # in chunks of one byte, less than a millisecond
_SAY_AGAIN_SECONDS = 60.0


class Watched(Protocol):
    transport: asyncio.Transport

    def look(self, now: float) -> None: ...

    def take(self, data: bytes, *, last: bool) -> None: ...


class Watch:
    """Looks after time-outs, and keeps the number of connections and of log lines small."""

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self.waiting: OrderedDict[Watched, None] = OrderedDict()
        """Those that have no whole request to answer; who has waited longest comes first."""
        self._queue: OrderedDict[Watched, bytes] = OrderedDict()
        self._queued = False
        self._said: dict[str, float] = {}
        self._unsaid: dict[str, int] = {}

    def has_room_for(self, connection: Watched, *, open_now: int) -> bool:
        """Whether a new connection may stay; at the limit it takes the place of the one that has waited longest."""
        if open_now <= self.limits.limit_connections:
            return True
        oldest, _ = self.waiting.popitem(last=False)
        if oldest is connection:
            return False
        self.say("LIMIT_CONNECTIONS is reached: the connection that waited longest for a request was closed.")
        oldest.transport.abort()
        return True

    def queue(self, connection: Watched, data: bytes) -> None:
        """Give it the data when its turn comes: one in each round of the event loop, however many wait.

        What comes while it waits is added: it would overtake the rest otherwise.
        """
        self._queue[connection] = self._queue.get(connection, b"") + data
        if not self._queued:
            self._queued = True
            asyncio.get_running_loop().call_soon(self._next)

    def is_queued(self, connection: Watched) -> bool:
        return connection in self._queue

    def _next(self) -> None:
        connection, data = next(iter(self._queue.items()))
        rest = data[_PIECE_BYTES:]
        if rest:
            self._queue[connection] = rest
            self._queue.move_to_end(connection)
        else:
            del self._queue[connection]
        connection.take(data[:_PIECE_BYTES], last=not rest)
        self._queued = bool(self._queue)
        if self._queued:
            asyncio.get_running_loop().call_soon(self._next)

    def say(self, sentence: str) -> None:
        """One line in the log; the same again only once a minute, with how often it was."""
        now = asyncio.get_running_loop().time()
        self._unsaid[sentence] = self._unsaid.get(sentence, 0) + 1
        if now > self._said.get(sentence, float("-inf")) + _SAY_AGAIN_SECONDS:
            self._said[sentence] = now
            logger.warning("%s (%d times)", sentence, self._unsaid.pop(sentence))

    async def look(self, connections: set[Watched]) -> None:
        """As long as the service runs."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = loop.time()
            for connection in tuple(connections):
                connection.look(now)
