"""A proxy in front of PostgreSQL whose connections a test can cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class DatabaseProxy:
    """Listens on a Unix socket in `directory`, so that `url` differs from the database's in the address only."""

    def __init__(self, database_url: str, directory: Path) -> None:
        self.url = make_conninfo(database_url, host=str(directory), port="5432")
        self._address = conninfo_to_dict(database_url)
        self._socket = directory / ".s.PGSQL.5432"
        self._connections: set[asyncio.Task[None]] = set()
        self.hides_end = False
        """Whether a client is not told that the database has ended its connection, as by a network that is down."""
        self.hides_answers_after: bytes | None = None
        """Once a client has sent this, what the database sends is dropped until `restore`."""
        self._hides_answers = False

    async def restore(self) -> None:
        """Accepts connections, from the beginning or after `cut`."""
        self.hides_answers_after, self._hides_answers = None, False
        self._server = await asyncio.start_unix_server(self._accept, self._socket)

    async def cut(self) -> None:
        """Ends all connections, and refuses new ones."""
        self._server.close()
        self._socket.unlink(missing_ok=True)
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        server, to_server = await self._connect()
        try:
            with suppress(asyncio.CancelledError, OSError):
                copies = [
                    asyncio.create_task(self._copy(client, to_server)),
                    asyncio.create_task(self._copy(server, to_client, is_answer=True)),
                ]
                try:
                    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
                    if self.hides_end:
                        await asyncio.Event().wait()
                finally:
                    for copy in copies:
                        copy.cancel()
        finally:
            to_client.close()
            to_server.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._address.get("host") or "localhost"), str(self._address.get("port") or 5432)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if not is_answer and self.hides_answers_after is not None:
                    self._hides_answers = self._hides_answers or self.hides_answers_after in data
                if is_answer and self._hides_answers:
                    continue
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def database_proxy(database_url: str, directory: Path) -> AsyncIterator[DatabaseProxy]:
    proxy = DatabaseProxy(database_url, directory)
    await proxy.restore()
    try:
        yield proxy
    finally:
        await proxy.cut()
