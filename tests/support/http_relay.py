"""A relay in front of a server, whose connections can be cut and whose responses can be lost."""

import asyncio
from urllib.parse import urlsplit


class Relay:
    """Passes on what comes to `url`, as long as it is not cut; it closes the next `lost_responses` instead."""

    def __init__(self, target: str) -> None:
        self.lost_responses = 0
        self._target = target
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def mend(self, target: str | None = None) -> None:
        """Listens again, and connects to another server from now on if one is named."""
        self._target = target or self._target
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        assert self._server is not None, "it was mended before"
        self._server.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Breaks the open connections; new ones are accepted."""
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(self._target)
        responses, requests = await asyncio.open_connection(target.hostname, target.port)
        both = {writer, requests}
        self._open |= both
        await asyncio.gather(self._pass(reader, requests), self._pass(responses, writer, can_be_lost=True))
        self._open -= both

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, can_be_lost: bool = False
    ) -> None:
        try:
            while piece := await source.read(65_536):
                if can_be_lost and self.lost_responses:
                    self.lost_responses -= 1
                    break
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()
