import asyncio
import gc
import math
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, Literal

import uvicorn

from common.workers.connection import Connection
from common.workers.graceful_shutdown import Leaving
from common.workers.limits import ClientLimits
from common.workers.proxies import THIS_MACHINE
from common.workers.watch import Watch

_COLLECT = (100_000, 0, 0)
"""How many objects more make a look for garbage: at the new ones, then at older ones too, then at all, in turn.

The loop stands still meanwhile: with 300 answers at once for up to a quarter of a second, as nearly all their objects
came after the last look. What is finished is freed without one, so there are looks
when answers become more, and where failures leave something: that is found after 300,000 objects more.
"""


class Server(uvicorn.Server):
    """uvicorn with limits on what a client may cost; tells when it serves."""

    def __init__(
        self,
        app: Any,
        limits: ClientLimits,
        *,
        grace_seconds: int,
        drain_seconds: float = 0,
        trusted_proxies: Sequence[str] = THIS_MACHINE,
        on_ready: Callable[[], None] = lambda: None,
        lifespan: Literal["on", "off"] = "on",
        loop: str = "auto",
    ) -> None:
        """`loop` is the event loop, as uvicorn names it."""
        self._on_ready = on_ready
        self._watch = Watch(limits)
        self._leaving = Leaving(app, drain_seconds)
        protocol: Any = partial(Connection, self._watch)
        super().__init__(
            uvicorn.Config(
                self._leaving,
                http=protocol,
                ws="none",  # nothing here speaks it, and it would take the connection out of our hands
                log_config=None,
                access_log=False,
                server_header=False,
                forwarded_allow_ips="*" if "*" in trusted_proxies else list(trusted_proxies),
                lifespan=lifespan,
                loop=loop,
                timeout_keep_alive=math.ceil(limits.idle_timeout_seconds),
                timeout_graceful_shutdown=grace_seconds,
            )
        )

    def is_busy(self) -> bool:
        """Whether it has begun something that it should finish before it ends."""
        return False

    def end(self) -> None:
        """Called when it ends: what still goes on is to end, too. May be called from a signal handler."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and self.started and self._leaving.begin():
            return
        self.end()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if not self.should_exit and self._leaving.is_over(busy=self.is_busy()):
            self.end()
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            connections: Any = self.server_state.connections
            self._looking = asyncio.create_task(self._watch.look(connections))
            self._on_ready()

    async def main_loop(self) -> None:
        # What exists now lives as long as the process: collections need not walk it.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT)
        await super().main_loop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._looking.cancel()
