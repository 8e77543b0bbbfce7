"""Whether processes are alive: the connection whose lock shows it to the others, and a watchdog."""

import asyncio
import faulthandler
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Mapping, Set
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, Self, TypeVar

import psycopg
from psycopg.sql import SQL, Identifier

from common.database import CONNECTION_OPTIONS, NO_USER, Database, DatabaseUnavailable, run_sweeps

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item", bound=Hashable)
_DEAD_AFTER_SECONDS = 10.0  # how long a process must look dead before its runs are ended

# The server closes the session of a machine that is gone after 5 + 3 * 2 seconds, and releases its lock. It is a
# statement and not an option of the connection, because a pooler would reject the option before it is recognised.
_SET_KEEPALIVES = (
    "SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),"
    " set_config('tcp_keepalives_count', '3', false)"
)
# The same for a server that is gone. `connect_timeout` leaves time for several attempts within 10 seconds.
_OPTIONS: dict[str, Any] = CONNECTION_OPTIONS | {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "prepare_threshold": None,
}
# Shared, so that this does not wait for a lost session that the server still holds.
_LOCK = "SELECT pg_advisory_lock_shared(%s)"
_FIND_LOCKS = """
    SELECT classid::bigint << 32 | objid::bigint AS process_id FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid::bigint << 32 | objid::bigint = ANY(%(process_ids)s)
"""


class PoolerFound(Exception):
    """The address is a connection pooler, which would not keep the session that LISTEN and the lock need."""

    def __init__(self) -> None:
        super().__init__(
            "The database is behind a connection pooler: set LISTEN_DATABASE_URL to the address of PostgreSQL itself."
        )


async def require_direct_address(url: str) -> None:
    """Raises `PoolerFound`; a database that cannot be reached is accepted."""
    with suppress(psycopg.Error, OSError):
        await (await _connect(url)).close()


async def _connect(url: str) -> psycopg.AsyncConnection[Any]:
    connection = await psycopg.AsyncConnection.connect(url, **_OPTIONS)
    try:
        backend = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
        if backend != (connection.info.backend_pid,):
            raise PoolerFound
    except BaseException:
        await connection.close()
        raise
    return connection


class Confirmation(Generic[_Item]):
    """Confirms items that were observed twice, `seconds` apart, and in every observation between."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first_observed: dict[_Item, float] = {}

    def observe(self, observed: Set[_Item], *, among: Set[_Item] | None = None) -> set[_Item]:
        """Returns the confirmed items. `among` has the items that were looked at, by default all."""
        now = time.monotonic()
        for item in self._first_observed.keys() - observed:
            if among is None or item in among:
                del self._first_observed[item]
        return {item for item in observed if now - self._first_observed.setdefault(item, now) >= self._seconds}

    def clear(self) -> None:
        self._first_observed.clear()


class ProcessConnection:
    """Holds the lock `process_id`, receives notifications, and finds out whether other processes are alive.

    `channels` has a function for each channel, which is called with a notification's payload. Notifications sent while
    the connection is lost are not received: `on_connect`, called after each connect, reads what may have been missed.
    A process is dead if it was absent twice, `dead_after_seconds` apart, while this process was connected.
    """

    def __init__(
        self,
        url: str,
        database: Database,
        *,
        channels: Mapping[str, Callable[[str], object]] | None = None,
        on_connect: Callable[[], Awaitable[object]] | None = None,
        dead_after_seconds: float = _DEAD_AFTER_SECONDS,
        reconnect_seconds: float = 0.5,
    ) -> None:
        self.process_id = secrets.randbits(62)
        self._url, self._database = url, database
        self._channels, self._on_connect = dict(channels or {}), on_connect
        self._reconnect_seconds = reconnect_seconds
        self._dead_after_seconds = dead_after_seconds
        self._absent = Confirmation[int](dead_after_seconds)
        self._lost_at: float | None = time.monotonic()  # None while it is connected
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def __aenter__(self) -> Self:
        """Connects, or keeps trying in the background if the database is away. Raises `PoolerFound`."""
        try:
            self._connection = await self._connect()
        except (psycopg.Error, OSError) as error:
            logger.warning("the process connection cannot be opened yet: %s", type(error).__name__)
        self._task = asyncio.create_task(self._stay_connected(), name="process connection")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._connection:
            await self._connection.close()

    @property
    def is_connected(self) -> bool:
        return self._lost_at is None

    @property
    def may_seem_dead(self) -> bool:
        """Whether the connection was lost for so long that other processes may end the runs of this one."""
        return self._lost_at is not None and time.monotonic() - self._lost_at > self._dead_after_seconds

    async def find_dead_processes(self, process_ids: Collection[int]) -> set[int]:
        """Returns the processes that are dead: their lock was absent in this call and an earlier one, and all between.

        Returns none while this process is not connected: the others may have been cut off by the same fault.
        Raises `DatabaseUnavailable`.
        """
        if not self.is_connected:
            return set()
        others = set(process_ids) - {self.process_id}
        async with self._database.transaction(NO_USER) as tx:
            locks = await tx.execute(_FIND_LOCKS, process_ids=[*others, self.process_id])
        present = {row["process_id"] for row in await locks.fetchall()}
        if self.process_id not in present or not self.is_connected:
            self._absent.clear()
            return set()
        return self._absent.observe(others - present, among=others)

    async def _stay_connected(self) -> None:
        while True:
            try:
                self._connection = self._connection or await self._connect()
                await self._receive(self._connection)
            except PoolerFound as error:
                logger.error("%s", error)
            except (psycopg.Error, DatabaseUnavailable, OSError) as error:
                self._log_lost(error)
            except Exception:  # without its lock the process would lose its runs
                logger.exception("the process connection failed")
            if self.is_connected:
                self._lost_at = time.monotonic()
            self._absent.clear()
            if self._connection:
                await self._connection.close()
                self._connection = None
            await asyncio.sleep(self._reconnect_seconds)

    def _log_lost(self, error: Exception) -> None:
        """Logs a warning once for each loss, not for each attempt to reconnect."""
        level = logging.WARNING if self.is_connected else logging.DEBUG
        logger.log(level, "the process connection is lost: %s", type(error).__name__)

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        connection = await _connect(self._url)
        try:
            await connection.execute(_SET_KEEPALIVES)
            await connection.execute(_LOCK, [self.process_id])
            for channel in self._channels:
                await connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _receive(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if self._on_connect:
            await self._on_connect()
        self._lost_at = None
        while True:
            await _wait_until_readable(connection.fileno())  # psycopg itself would wake up ten times a second
            async for notification in connection.notifies(stop_after=1):
                try:
                    self._channels[notification.channel](notification.payload)
                except Exception:
                    logger.exception("a notification on %s failed", notification.channel)


async def _wait_until_readable(descriptor: int) -> None:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)


@asynccontextmanager
async def watchdog(*, seconds: float = 60) -> AsyncIterator[None]:
    """Ends the process with a traceback on standard error if its event loop hangs for `seconds`."""

    async def restart_timer() -> None:
        faulthandler.dump_traceback_later(seconds, exit=True)

    try:
        async with run_sweeps(restart_timer, every_seconds=seconds / 12):
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()
