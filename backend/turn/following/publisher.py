"""Hands what the followed turns of this process say to readers in any process: by rows, many turns' at once."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.runs import events as statements
from backend.conversation.runs.leases import Outcome
from backend.turn.following.payloads import merged, to_payload
from backend.turn.log import Event, Grown, Log, Paused, end_with
from backend.turn.run import Run
from service.database import connect

logger = logging.getLogger(__name__)

_SOON = 0.02  # seconds: what does not wait for the next flush is written together all the same
_LOCKED = 2.0  # seconds for which the row of a run that has ended may be changed by others, before it is given up
_LONGEST_NOTICE = 7000  # bytes; PostgreSQL takes 7,999
_BEGIN = b"""
SELECT set_config('role', 'todo_app', true), set_config('todo.user_id', '', true),
    set_config('synchronous_commit', 'off', true)
"""
_TELL = b"SELECT pg_notify(%s, %s)"


class Numbered(NamedTuple):
    """An event of a run, and its number in what is published of it, from 1."""

    seq: int
    event: Event


@dataclass(eq=False)
class Followed:
    """A turn whose log is published, with what was not when the turn began.

    `ended` is when its log did, and `skipped` since when its row is passed over by a database that is there.
    """

    run: Run
    log: Log
    outcome: Callable[[], Outcome | None]
    ended: float | None = None
    skipped: float | None = None
    events: list[Event] = field(default_factory=list[Event])
    payloads: list[str] = field(default_factory=list[str])
    written: int = 0
    growing: str = ""

    def __post_init__(self) -> None:
        self.first = self.run.told + 1
        self._mark = replace(self.log.published)

    def take(self) -> None:
        """Take what the log has to say since the last time."""
        closed = self.log.closed
        taken = merged(self.log.since(self._mark))
        if closed and self.ended is None:
            self.ended = _now()
            outcome = self.outcome()
            taken += end_with(outcome) if outcome else [Paused()]
        self.payloads += [to_payload(event) for event in taken]
        self.events += taken

    @property
    def complete(self) -> bool:
        return self.ended is not None and self.written == len(self.payloads)


class Publisher:
    """One for each process. Its connection is its own, and open only while there is something to publish.

    What was written before the connection was lost is written again: a crash of the database may have taken it.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        every_seconds: float = 0.1,
        give_up_seconds: float = 15,
        published: Callable[[Iterable[str]], object] = lambda _: None,
    ) -> None:
        """`published` is called with the ids of runs of which more was written.

        `give_up_seconds` is how long a turn that has ended is tried to be written.
        """
        self._engine = engine
        self._every_seconds = every_seconds
        self._give_up_seconds = give_up_seconds
        self._published = published
        self._followed: dict[Log, Followed] = {}
        self._last: dict[str, Followed] = {}  # of each run: it may have waited here, and gone on in another turn
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._flushed = 0.0
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()

    def follow(self, run: Run, log: Log, outcome: Callable[[], Outcome | None]) -> None:
        """Publish the log from where its turn goes on, or its beginning.

        When it is closed, `outcome` tells how the run ended; where it has not, it waits.
        """
        if log in self._followed:
            return
        followed = Followed(run, log, outcome)
        self._followed[log] = self._last[run.id] = followed
        log.watch(partial(self._heard, followed))
        self._wake()

    def all_of(self, log: Log, then: Sequence[Event]) -> list[tuple[int, str]]:
        """What a followed log has said, as it is published, and what it says `then`, at one stretch."""
        followed = self._followed[log]
        followed.take()
        return [*enumerate([*followed.payloads, *map(to_payload, merged(then))], followed.first)]

    def published_after(self, run_id: str, user_id: str, after: int) -> Sequence[Numbered] | None:
        """What was written of a turn of this process after a number; None where the rows are to be asked."""
        followed = self._last.get(run_id)
        if followed is None or followed.run.user_id != user_id:
            return None
        start = after - followed.first + 1
        if not 0 <= start <= followed.written:
            return None
        found = followed.events[start : followed.written]
        return [Numbered(number, event) for number, event in enumerate(found, after + 1)]

    def has_end(self, run_id: str) -> bool:
        """Whether a turn of this process has ended whose last events are not written yet."""
        followed = self._last.get(run_id)
        return followed is not None and followed.log.closed

    async def run(self) -> None:
        """Go on until cancelled, whatever becomes of the database."""
        try:
            while True:
                await self._next()
                if not await self._tried():
                    await asyncio.sleep(self._every_seconds)
                    self._wake()
        finally:
            await self._disconnect()

    async def finish(self) -> None:
        """Write what is left of turns that have ended."""
        if self._followed:
            await self._tried()
        await self._disconnect()

    def _heard(self, followed: Followed, event: Event | None) -> None:
        self._news.set()
        if event is None:
            self._urgent.set()
        elif isinstance(event, Grown) and event.item_id != followed.growing:
            followed.growing = event.item_id  # its first word is shown at once
            self._urgent.set()

    def _wake(self) -> None:
        self._news.set()
        self._urgent.set()

    async def _next(self) -> None:
        """Wait until something is to be written."""
        if not self._news.is_set() and not self._followed:
            await self._disconnect()
        await self._news.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(max(self._flushed + self._every_seconds, _now() + _SOON)):
                await self._urgent.wait()
                await asyncio.sleep(_SOON)
        self._news.clear()
        self._urgent.clear()

    async def _tried(self) -> bool:
        try:
            await self._flush()
            return True
        except (psycopg.Error, DBAPIError, PoolTimeout, OSError) as error:
            logger.warning("what followed turns say is not written yet: %s", type(error).__name__)
        except Exception:
            logger.exception("what followed turns say is not written yet")
        await self._disconnect()
        for followed in self._followed.values():
            followed.written, followed.skipped = 0, None
        self._drop(lambda followed: followed.ended, self._give_up_seconds)
        return False

    async def _flush(self) -> None:
        for followed in self._followed.values():
            followed.take()
        lengths = {followed: len(followed.payloads) for followed in self._followed.values()}
        behind = {followed: length for followed, length in lengths.items() if followed.written < length}
        there = await self._write_together(list(behind)) if behind else set()
        self._flushed = _now()
        for followed, length in behind.items():
            if followed.run.id in there:
                followed.written, followed.skipped = length, None
            elif followed.ended is not None:
                followed.skipped = followed.skipped or _now()
        self._published(there)
        self._drop(lambda followed: followed.skipped, _LOCKED)
        if any(followed.run.id not in there for followed in behind):
            self._news.set()  # for the rest

    def _drop(self, since: Callable[[Followed], float | None], seconds: float) -> None:
        """Those of which all is written, and those that could not be for so long."""
        for followed in list(self._followed.values()):
            began = since(followed)
            if followed.complete or (began is not None and _now() - began > seconds):
                self._forget(followed)

    def _forget(self, followed: Followed) -> None:
        del self._followed[followed.log]
        if self._last.get(followed.run.id) is followed:
            del self._last[followed.run.id]

    async def _write_together(self, behind: Sequence[Followed]) -> set[str]:
        try:
            return await self._write(behind)
        except psycopg.DataError:  # what PostgreSQL cannot hold must not keep back what others say
            there = set[str]()
            for followed in behind:
                await self._disconnect()
                try:
                    there |= await self._write([followed])
                except psycopg.DataError:
                    logger.error("what the run %s says cannot be published", followed.run.id)
                    self._forget(followed)
            await self._disconnect()
            return there

    async def _write(self, behind: Sequence[Followed]) -> set[str]:
        """Returns the ids of the runs of which it is there now; one that is being ended or deleted is not."""
        people, runs, numbers, payloads = list[str](), list[str](), list[int](), list[str]()
        for followed in behind:
            for n, payload in enumerate(followed.payloads[followed.written :], followed.first + followed.written):
                people.append(followed.run.user_id)
                runs.append(followed.run.id)
                numbers.append(n)
                payloads.append(payload)
        connection = await self._connected()
        rows = {"people": people, "runs": runs, "numbers": numbers, "payloads": payloads}
        async with connection.pipeline():
            await connection.execute("BEGIN")
            await connection.execute(_BEGIN)
            written = await connection.execute(statements.PUBLISH, rows)
            for notice in _notices(followed.run.id for followed in behind):
                await connection.execute(_TELL, [statements.EVENTS_CHANNEL, notice])
            await connection.execute("COMMIT")
        return {run_id for (run_id,) in await written.fetchall()}

    async def _connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None:
            self._connection = await connect(self._engine)
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _notices(run_ids: Iterable[str]) -> Iterable[str]:
    notice = ""
    for run_id in run_ids:
        if len(notice) + len(run_id) > _LONGEST_NOTICE:
            yield notice
            notice = ""
        notice = f"{notice} {run_id}".strip()
    if notice:
        yield notice


def _now() -> float:
    return asyncio.get_running_loop().time()
