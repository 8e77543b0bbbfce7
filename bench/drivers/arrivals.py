"""Open load: calls come when they come, however many still run, and are measured from when they were due."""

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["answered", "refused", "failed"]
Call = Callable[[float], Coroutine[Any, Any, None]]
"""Is told when it was due."""
_MOST_MS = 60_000
_TOKEN, _FAILED, _REFUSED = b"text_delta", b'"type":"error"', b"The assistant is busy"
_MESSAGE = re.compile(rb'"message":"(.*?)"')
_HEAD_END, _END = b"\r\n\r\n", b"0\r\n\r\n"


@dataclass(frozen=True)
class Told:
    """One answer, in seconds since it was due: to its first event, and to its end."""

    outcome: Outcome
    first: float
    total: float
    text: str = ""  # what was said of one that failed


@dataclass
class Meter:
    """What the readers of a phase see: how many there are, and how far apart the tokens of an answer come."""

    gaps_ms: list[int] = field(default_factory=lambda: [0] * (_MOST_MS + 1))
    reading: int = 0
    told: list[Told] = field(default_factory=list[Told])
    late: list[float] = field(default_factory=list[float])
    """Seconds by which calls were begun after they were due: what the machine withheld from who measures."""

    def of(self, outcome: Outcome) -> list[Told]:
        return [one for one in self.told if one.outcome == outcome]

    def forget_gaps(self) -> None:
        self.gaps_ms = [0] * (_MOST_MS + 1)

    def gap(self, seconds: float) -> None:
        self.gaps_ms[min(_MOST_MS, int(seconds * 1000))] += 1

    def percentile_ms(self, percent: float) -> int:
        """Rounded up; 0 where no token came after another."""
        left = sum(self.gaps_ms) * percent / 100
        for gap, number in enumerate(self.gaps_ms):
            left -= number
            if number and left <= 0:
                return gap + 1
        return 0


class Reader(asyncio.Protocol):
    """Asks at `POST /chatkit` and reads the stream of what is answered."""

    def __init__(self, body: Any, meter: Meter, due: float) -> None:
        content = json.dumps(body).encode()
        fields = f"host: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
        self._request = f"POST /chatkit HTTP/1.1\r\n{fields}connection: close\r\n\r\n".encode() + content
        self._meter, self._due = meter, due
        self._first = self._newest = 0.0
        self._tail = self._failure = b""
        self._ends = False
        self.told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        if not self._first:
            self._tail += data
            head, separator, body = self._tail.partition(_HEAD_END)
            if not separator or not body:
                return
            self._first, data = now, body
            self._failure = b"" if head.startswith(b"HTTP/1.1 200") else head[:100] + body
        if _TOKEN in data:
            if self._newest:
                self._meter.gap(now - self._newest)
            self._newest = now
        if _FAILED in data:
            self._failure = data
        self._tail = (self._tail + data)[-len(_END) :]
        self._ends = self._tail == _END

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.told.done():
            self.told.set_result(self._ended(time.perf_counter()))

    def _ended(self, now: float) -> Told:
        first, total = (self._first or now) - self._due, now - self._due
        if self._ends and not self._failure:
            return Told("answered", first, total)
        if _REFUSED in self._failure:
            return Told("refused", first, total)
        said = _MESSAGE.search(self._failure)
        text = (said[1] if said else self._failure[:200]).decode(errors="replace")
        return Told("failed", first, total, text or "it ended too early")


async def read(port: int, body: Any, meter: Meter, due: float) -> None:
    """To its end; who is cancelled leaves, which stops the answer."""
    meter.late.append(time.perf_counter() - due)
    try:
        _, reader = await asyncio.get_running_loop().create_connection(
            lambda: Reader(body, meter, due), "127.0.0.1", port
        )
    except OSError as error:
        meter.told.append(Told("failed", 0, time.perf_counter() - due, str(error)))
        return
    meter.reading += 1
    try:
        meter.told.append(await reader.told)
    finally:
        meter.reading -= 1
        reader.transport.abort()


def pauses(a_second: float, seed: int, *, even: bool) -> Iterator[float]:
    """Between arrivals: all alike, or those of a Poisson process, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    while True:
        yield 1 / a_second if even else chance.expovariate(a_second)


async def arrive(
    call: Call,
    *,
    a_second: float,
    seconds: float,
    seed: int = 1,
    even: bool = False,
) -> None:
    """So many calls a second for so long, and their ends; who is cancelled cancels them."""
    due = began = time.perf_counter()
    async with asyncio.TaskGroup() as calls:
        for pause in pauses(a_second, seed, even=even):
            due += pause
            if due > began + seconds:
                return
            await asyncio.sleep(due - time.perf_counter())
            calls.create_task(call(due))
