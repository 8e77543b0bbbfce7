"""A service of three workers that says who it is; `python tests/workers/small_service.py [trouble]`."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn

import workers


async def who_am_i(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})


def serve(trouble: str, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    if trouble == "gives up":
        sys.exit("The moon is not full: wait.")
    if trouble == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "is deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        on_ready()
        while True:
            signal.pause()
    config = uvicorn.Config(who_am_i, lifespan="off", log_config=None, timeout_graceful_shutdown=5)
    workers.Server(config, on_ready).run(sockets=[listener])


if __name__ == "__main__":
    logging.basicConfig(level="WARNING", format="%(message)s")
    logging.getLogger("workers").setLevel("INFO")
    listener = workers.bind("127.0.0.1", 0)
    status = workers.run(
        partial(serve, "".join(sys.argv[1:])),
        listener,
        count=3,
        grace_seconds=1,
        on_ready=lambda: print(workers.address(listener), flush=True),  # noqa: T201
    )
    sys.exit(status)
