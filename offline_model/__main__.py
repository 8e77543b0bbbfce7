import socket
import sys
from contextlib import suppress

import uvicorn
from pydantic import ValidationError

from offline_model.app import create_app
from offline_model.protocol import sentence_of
from offline_model.settings import Settings


class Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """At once: an open stream has nothing to save."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


def main() -> None:
    try:
        settings = Settings()
    except ValidationError as error:
        sys.exit(f"OFFLINE_ settings: {sentence_of(error)}")
    config = uvicorn.Config(
        create_app(settings), host=settings.host, port=settings.port, lifespan="off", access_log=False
    )
    server = Server(config)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(1)


if __name__ == "__main__":
    main()
