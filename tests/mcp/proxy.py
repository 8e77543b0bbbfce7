"""A way to PostgreSQL that a test can cut: the database stops, or goes away in the middle of a transaction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Proxy:
    def __init__(self, conninfo: str) -> None:
        self._target = conninfo_to_dict(conninfo)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._port = 0
        self.cut_before: bytes | None = None
        """The next message that holds these bytes is not passed on; all connections end instead."""
        self.cut_after: bytes | None = None
        """The next message that holds these bytes is passed on, but what is answered then is not."""
        self._answer_lost = False

    @property
    def url(self) -> str:
        parts = {name: str(value) for name, value in self._target.items() if name not in ("host", "port", "dbname")}
        user, password = parts.pop("user", ""), parts.pop("password", "")
        login = f"{user}:{password}@" if password else f"{user}@"
        return f"postgresql://{login}127.0.0.1:{self._port}/{self._target['dbname']}?sslmode=disable"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self._cut()
        await self._server.wait_closed()

    def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = str(self._target.get("host") or "localhost"), self._target.get("port") or 5432
        if host.startswith("/"):
            upstream = await asyncio.open_unix_connection(str(Path(host) / f".s.PGSQL.{port}"))
        else:
            upstream = await asyncio.open_connection(host, int(port))
        both = {writer, upstream[1]}
        self._writers |= both
        await asyncio.gather(self._pass(reader, upstream[1], watched=True), self._pass(upstream[0], writer))
        self._writers -= both

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, watched: bool = False) -> None:
        try:
            while data := await source.read(65536):
                if watched and self.cut_before is not None and self.cut_before in data:
                    self.cut_before = None
                    return self._cut()
                if watched and self.cut_after is not None and self.cut_after in data:
                    self.cut_after, self._answer_lost = None, True
                elif not watched and self._answer_lost:
                    self._answer_lost = False
                    return self._cut()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.transport.abort()
        return None


@asynccontextmanager
async def proxy(conninfo: str) -> AsyncIterator[Proxy]:
    opened = Proxy(make_conninfo(conninfo))
    await opened.start()
    try:
        yield opened
    finally:
        await opened.stop()
