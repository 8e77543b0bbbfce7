"""A relay in front of PostgreSQL that counts the round trips and transactions of its clients."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict

READY_AGAIN = b"Z\x00\x00\x00\x05I"
EMPTY_QUERY = b"I\x00\x00\x00\x04"


@asynccontextmanager
async def run_relay(database_url: str) -> AsyncIterator["DatabaseRelay"]:
    with tempfile.TemporaryDirectory(prefix="todo-relay-") as directory:  # short, as the path of a socket is limited
        relay = DatabaseRelay(database_url, Path(directory))
        await relay.start()
        try:
            yield relay
        finally:
            await relay.stop()


@dataclass
class Counts:
    round_trips: int = 0
    transactions: int = 0

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(self.round_trips - other.round_trips, self.transactions - other.transactions)


class DatabaseRelay:
    """Listens on a Unix socket in `directory` for the server of `url`."""

    def __init__(self, url: str, directory: Path) -> None:
        address = urlsplit(url)
        account = address.netloc.rpartition("@")[0]
        self.url = f"postgresql://{account}@{address.path}?host={directory}"
        self._server = conninfo_to_dict(url)
        self._socket = directory / ".s.PGSQL.5432"
        self._counts = Counts()

    async def start(self) -> None:
        self._listener = await asyncio.start_unix_server(self._relay, self._socket)

    async def stop(self) -> None:
        self._listener.close()

    @property
    def counts(self) -> Counts:
        return Counts(self._counts.round_trips, self._counts.transactions)

    async def _relay(self, client: asyncio.StreamReader, responses: asyncio.StreamWriter) -> None:
        server, requests = await self._connect()
        connection = _Connection(self._counts)
        await asyncio.gather(
            _copy(client, requests, connection.read_request), _copy(server, responses, connection.read_response)
        )

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._server.get("host") or "localhost", self._server.get("port") or 5432
        assert isinstance(host, str)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))


class _Connection:
    """Counts a round trip when the client sends the first bytes after a response."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._waiting = self._is_empty_query = False
        self._rest = b""

    def read_request(self, _: bytes) -> None:
        if not self._waiting:
            self._counts.round_trips += 1
        self._waiting = True

    def read_response(self, data: bytes) -> None:
        self._waiting = False
        self._rest += data
        while len(self._rest) >= 5:
            size = 1 + int.from_bytes(self._rest[1:5])
            if len(self._rest) < size:
                return
            message, self._rest = self._rest[:size], self._rest[size:]
            # Ready for a statement outside of any transaction: a transaction has ended, unless the query was empty.
            self._counts.transactions += message == READY_AGAIN and not self._is_empty_query
            self._is_empty_query = message == EMPTY_QUERY


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, on_data: Callable[[bytes], None]) -> None:
    try:
        while data := await reader.read(65_536):
            on_data(data)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
