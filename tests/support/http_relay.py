"""An HTTP relay whose connections and responses a test can drop."""

import asyncio
from urllib.parse import urlsplit

from tests.conftest import find_free_port


class HttpRelay:
    """Forwards connections from `url`, unless it is cut; drops the next `lost_responses` responses."""

    def __init__(self, target: str) -> None:
        self.lost_responses = 0
        self._target = target
        self._port = find_free_port()  # not an ephemeral one, which another process could take while the relay is cut
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._is_cut = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def restore(self, target: str | None = None) -> None:
        """Accepts connections, at the start or after `cut`; connects to another server if one is given."""
        self._target = target or self._target
        self._is_cut = False
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    def cut(self) -> None:
        assert self._server is not None, "the relay does not run"
        self._is_cut = True
        self._server.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Aborts the open connections; new ones are accepted."""
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:  # since this connection was accepted
            writer.close()
            return
        target = urlsplit(self._target)
        self._open.add(writer)
        responses, requests = await asyncio.open_connection(target.hostname, target.port)
        self._open.add(requests)
        await asyncio.gather(self._forward(reader, requests), self._forward(responses, writer, is_response=True))
        self._open -= {writer, requests}

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
