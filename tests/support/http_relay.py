"""An HTTP relay whose connections and responses a test can drop."""

import asyncio
from urllib.parse import urlsplit


class HttpRelay:
    """Forwards connections from `url`, unless it is cut; drops the next `lost_responses` responses."""

    def __init__(self, target: str) -> None:
        self.lost_responses = 0
        self._target = target
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def restore(self, target: str | None = None) -> None:
        """Accepts connections, at the start or after `cut`; connects to another server if one is given."""
        self._target = target or self._target
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        assert self._server is not None, "the relay does not run"
        self._server.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Aborts the open connections; new ones are accepted."""
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(self._target)
        responses, requests = await asyncio.open_connection(target.hostname, target.port)
        both = {writer, requests}
        self._open |= both
        await asyncio.gather(self._forward(reader, requests), self._forward(responses, writer, is_response=True))
        self._open -= both

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_response: bool = False
    ) -> None:
        try:
            while piece := await source.read(65_536):
                if is_response and self.lost_responses:
                    self.lost_responses -= 1
                    break
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()
