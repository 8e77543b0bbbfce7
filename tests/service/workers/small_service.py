"""A service of three workers that says who it is; `python tests/service/workers/small_service.py [trouble]`."""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from service import workers
from service.workers.restarts import Restarts


async def who_am_i(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":  # its work goes on when the answer is there
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 1)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})


def ask_to_stop(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def wait_for_signals() -> NoReturn:
    while True:
        signal.pause()


class Thing:
    pass


class Finalized:
    __del__ = ask_to_stop


def serve(trouble: str, _: str, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    if trouble == "gives up":
        sys.exit("The moon is not full: wait.")
    if trouble == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "dies soon":
        on_ready()
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    if trouble == "is asked in a weakref's callback":
        thing = Thing()
        _watched = weakref.ref(thing, ask_to_stop)
        del thing
        wait_for_signals()
    if trouble == "is asked in a finalizer":
        Finalized()
        wait_for_signals()
    if trouble == "is deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        on_ready()
        wait_for_signals()
    server = workers.Server(who_am_i, workers.ClientLimits(), grace_seconds=5, on_ready=on_ready, lifespan="off")
    server.run(sockets=[listener])


def after_death(name: str) -> None:
    if not sys.argv[1:]:
        logging.getLogger("service.workers").info("%s begins", name)


if __name__ == "__main__":
    logging.basicConfig(level="WARNING", format="%(message)s")
    logging.getLogger("service.workers").setLevel("INFO")
    listener = workers.bind("SMALL", "127.0.0.1", 0)
    status = workers.run(
        partial(serve, "".join(sys.argv[1:])),
        listener,
        count=3,
        grace_seconds=1,
        name="small",
        after_death=after_death,
        restarts=partial(Restarts, pause_seconds=0.1),
        on_ready=lambda: print(workers.address(listener), flush=True),  # noqa: T201
    )
    sys.exit(status)
