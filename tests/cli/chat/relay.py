"""A way to a server that can be cut, and that leads to another one then."""

import asyncio
from urllib.parse import urlsplit


class Relay:
    """Passes on what comes to `url`, as long as it is not cut."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def mend(self, target: str | None = None) -> None:
        """It leads to its server, or to another one from now on."""
        self._target = target or self._target
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        assert self._server is not None, "it was mended before"
        self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(self._target)
        answers, requests = await asyncio.open_connection(target.hostname, target.port)
        both = {writer, requests}
        self._open |= both
        await asyncio.gather(_pass(reader, requests), _pass(answers, writer))
        self._open -= both


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(65_536):
            sink.write(piece)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()
