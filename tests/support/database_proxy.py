"""A proxy in front of PostgreSQL, whose connections a test can cut and whose round trips it can count."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict


class DatabaseProxy:
    """Listens on a Unix socket in `directory`; `url` differs from the database's only in the host and port."""

    def __init__(self, database_url: str, directory: Path) -> None:
        parts = urlsplit(database_url)
        query = f"host={quote(str(directory))}"
        self.url = urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@", query=query))
        self._address = conninfo_to_dict(database_url)
        self._socket = directory / ".s.PGSQL.5432"
        self._connections: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self.hide_end = False
        """Whether clients are not told that the database has closed their connection, as if the network were down."""
        self.drop_responses_after: bytes | None = None
        """After a client has sent these bytes, all responses are dropped until `restore`."""
        self._drops_responses = False
        self.cuts_before: bytes | None = None
        """The next message with these bytes is not passed on; all connections end instead."""
        self.holds_before: bytes | None = None
        """The next message with these bytes is passed on only once `released` is set."""
        self.released = asyncio.Event()
        self.round_trips = 0
        """How often a client has sent something after a response, or first."""

    async def restore(self) -> None:
        """Accepts connections, at the start or after `cut`."""
        self.drop_responses_after, self._drops_responses = None, False
        self._is_cut = False
        self._server = await asyncio.start_unix_server(self._accept, self._socket)

    async def cut(self) -> None:
        """Closes all connections and rejects new ones."""
        self._is_cut = True
        self._server.close()
        self._socket.unlink(missing_ok=True)
        self._end_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _end_connections(self) -> None:
        for connection in self._connections:
            connection.cancel()

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self._is_cut:  # since this connection was accepted
            to_client.close()
            return
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        is_idle = asyncio.Event()
        is_idle.set()
        to_server: asyncio.StreamWriter | None = None
        try:
            with suppress(asyncio.CancelledError, OSError):
                server, to_server = await self._connect()
                copies = [
                    asyncio.create_task(self._copy(client, to_server, is_idle)),
                    asyncio.create_task(self._copy(server, to_client, is_idle, is_response=True)),
                ]
                try:
                    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
                    if self.hide_end:
                        await asyncio.Event().wait()
                finally:
                    for copy in copies:
                        copy.cancel()
        finally:
            to_client.close()
            if to_server is not None:
                to_server.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._address.get("host") or "localhost"), str(self._address.get("port") or 5432)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_idle: asyncio.Event,
        *,
        is_response: bool = False,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if is_response:
                    is_idle.set()
                elif is_idle.is_set():
                    self.round_trips += 1
                    is_idle.clear()
                if not is_response and self.cuts_before is not None and self.cuts_before in data:
                    self.cuts_before = None
                    self._end_connections()
                    return
                if not is_response and self.holds_before is not None and self.holds_before in data:
                    self.holds_before = None
                    await self.released.wait()
                if not is_response and self.drop_responses_after is not None:
                    self._drops_responses = self._drops_responses or self.drop_responses_after in data
                if is_response and self._drops_responses:
                    continue
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def database_proxy(database_url: str) -> AsyncIterator[DatabaseProxy]:
    # The path of a Unix socket has at most 108 bytes.
    with tempfile.TemporaryDirectory(prefix="todo-proxy-") as directory:
        proxy = DatabaseProxy(database_url, Path(directory))
        await proxy.restore()
        try:
            yield proxy
        finally:
            await proxy.cut()
