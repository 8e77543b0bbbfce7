import logging
import socket
import sys
from collections.abc import Callable
from functools import partial

from common import workers
from common.environment import or_stop, read
from offline_model.app import create_app
from offline_model.settings import Settings

logger = logging.getLogger("offline_model")

_GRACE_SECONDS = 5
_CONVERSATION = 4  # times as much as one request to the other services: what was said before comes with it


class Server(workers.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """At once: an open stream has nothing to save."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


def main() -> None:
    logging.basicConfig(level="INFO", format="%(levelname)s: %(message)s")
    logging.getLogger("uvicorn").setLevel("WARNING")
    settings = or_stop(partial(read, Settings))
    limits = or_stop(partial(read, workers.ClientLimits))
    if sys.argv[1:] == ["check"]:
        return
    limits = limits.model_copy(update={"limit_request_bytes": _CONVERSATION * limits.limit_request_bytes})

    def serve(listener: socket.socket, on_ready: Callable[[], None]) -> None:
        server = Server(create_app(settings), limits, grace_seconds=_GRACE_SECONDS, on_ready=on_ready, lifespan="off")
        server.run(sockets=[listener])

    listener = workers.bind("OFFLINE", settings.host, settings.port)
    workers.run(
        serve,
        listener,
        count=1,
        grace_seconds=_GRACE_SECONDS,
        on_ready=partial(logger.info, "offline model running on %s", workers.address(listener)),
    )


if __name__ == "__main__":
    main()
