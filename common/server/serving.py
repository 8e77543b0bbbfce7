"""Serves an application with uvicorn on one port, in this process or in several."""

import asyncio
import errno
import gc
import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NoReturn

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from common.fair_shares import FairQueue
from common.server.connection import LimitedConnection
from common.server.freed_memory import give_back_freed_memory
from common.server.limits import THIS_MACHINE, ClientLimits

log = logging.getLogger(__name__)

_LOOPBACK_HOSTS = ("localhost", *THIS_MACHINE)
_NO_SUCH_ADDRESS = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)  # such as ::1 where IPv6 is off

_NOTICE_SECONDS = 3.0  # enough for a load balancer that asks /ready every two seconds
_DRAINING = {"status": "not ready", "reason": "The service is shutting down and finishes its running work."}
_HEALTH_CHECK_SECONDS = 60  # a worker that is still importing on a busy machine answers late
_RECEIVE_BUFFER_BYTES = 65_536  # for each connection
# What the kernel takes beyond what the client has room for. A megabyte, as by default, would be read unseen for minutes
# by a client that reads slowly, and kept by one that reads nothing. At half of it the kernel takes more.
_UNSENT_BYTES = 32_768
# Garbage collection stops the event loop, by default for up to a quarter of a second with 300 answers at once. Most
# objects are freed by their reference counts.
_GC_THRESHOLD = (100_000, 0, 0)


class ServedApplication:
    """Wraps the application of one process, and shuts that process down.

    After SIGTERM it goes on for at most `drain_seconds`, until it is not `is_busy`, while /ready returns 503. SIGINT
    ends it at once. `on_end` is called when the end begins.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        drain_seconds: float = 0,
        is_busy: Callable[[], bool] = lambda: False,
        on_end: Callable[[], object] = lambda: None,
        on_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self._app = app
        self._drain_seconds = drain_seconds
        self._is_busy = is_busy
        self._on_end = on_end
        self._on_ready = on_ready
        self._draining: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, partial(self._send_started, send))
        elif self._draining and scope["type"] == "http" and scope["path"] == "/ready":
            await JSONResponse(_DRAINING, status_code=503)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _send_started(self, send: Send, message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            self._replace_signal_handlers()
            # Objects that exist now live as long as the process, so that collections need not look at them.
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLD)
            gc.enable()
            self._on_ready()
        await send(message)
        if message["type"] == "lifespan.shutdown.complete":  # uvicorn ends its workers without Python's own end
            logging.shutdown()

    def _replace_signal_handlers(self) -> None:
        """uvicorn has set its own before, and restores the original ones when it ends."""
        loop = asyncio.get_running_loop()
        uvicorn_handlers: dict[int, Any] = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

        def end(number: int) -> None:
            self._on_end()
            uvicorn_handlers[number](number, None)

        def begin_draining() -> None:
            if not self._drain_seconds:
                end(signal.SIGTERM)
            elif self._draining is None:
                self._draining = loop.create_task(self._drain(partial(end, signal.SIGTERM)))

        loop.add_signal_handler(signal.SIGINT, end, signal.SIGINT)
        loop.add_signal_handler(signal.SIGTERM, begin_draining)

    async def _drain(self, end: Callable[[], None]) -> None:
        deadline = asyncio.get_running_loop().time() + self._drain_seconds
        await asyncio.sleep(min(_NOTICE_SECONDS, self._drain_seconds))
        while self._is_busy() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
        end()


def create_config(
    create_app: Callable[[], ASGIApp],
    limits: ClientLimits,
    *,
    grace_seconds: int,
    trusted_proxies: Sequence[str] = THIS_MACHINE,
    workers: int = 1,
    lifespan: Literal["on", "off"] = "on",
    loop: str = "auto",
) -> uvicorn.Config:
    """`loop` is uvicorn's name of an event loop."""
    # A proxy on this machine reaches the service at either loopback address.
    proxies = {*trusted_proxies, *(THIS_MACHINE if set(THIS_MACHINE) & {*trusted_proxies} else ())}
    protocol: Any = partial(LimitedConnection, limits, FairQueue(1, None))
    return uvicorn.Config(
        create_app,
        factory=True,
        workers=workers,
        http=protocol,
        ws="none",  # it would bypass LimitedConnection
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips="*" if "*" in proxies else sorted(proxies),
        lifespan=lifespan,
        loop=loop,
        timeout_keep_alive=math.ceil(limits.idle_timeout_seconds),
        timeout_graceful_shutdown=grace_seconds,
        timeout_worker_healthcheck=_HEALTH_CHECK_SECONDS,
    )


def serve(
    create_app: Callable[[str], ASGIApp],
    limits: ClientLimits,
    *,
    prefix: str,
    host: str,
    port: int,
    workers: int = 1,
    announce: Callable[[], None] = lambda: None,
    **options: Any,
) -> NoReturn:
    """Serves until SIGTERM or SIGINT, which end the process with status 0; `options` are those of `create_config`.

    Each worker calls `create_app` with the address, so it can be pickled. Workers that die are replaced; if one cannot
    start, the process ends with status 3. `announce` is called once before the workers start, if the address is usable.
    """
    listeners = _bind_all(prefix, host, port)
    announce()
    url = _get_address(listeners[0])
    config = create_config(partial(_create_app, create_app, url), limits, workers=workers, **options)
    if workers == 1:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))  # uvicorn raises the signal again when it has ended
        server = uvicorn.Server(config)
        server.run(sockets=listeners)
        sys.exit(0 if server.started else STARTUP_FAILURE)
    supervisor = _Supervisor(config, sockets=listeners)
    supervisor.run()
    failed = any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes)
    sys.exit(STARTUP_FAILURE if failed else 0)


class _Supervisor(Multiprocess):
    def keep_subprocess_alive(self) -> None:
        """uvicorn 0.54 keeps the worker's end of the pipe, and so would wait for the answer of a dead worker."""
        for process in self.processes:
            process.child_conn.close()
        super().keep_subprocess_alive()


def _create_app(create_app: Callable[[str], ASGIApp], url: str) -> ASGIApp:
    """Runs in each worker, which uvicorn restarts for ever unless it ends with `STARTUP_FAILURE`."""
    gc.disable()  # until it serves: imports create what stays, and collections would take a sixth of the start
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    give_back_freed_memory()
    try:
        return create_app(url)
    except Exception:
        log.exception("the application cannot be created")
        sys.exit(STARTUP_FAILURE)


def _end_after(parent: Any) -> None:
    """Ends this worker after its supervisor: uvicorn's worker would keep running and keep the port."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _bind_all(prefix: str, host: str, port: int) -> list[socket.socket]:
    """Returns sockets that do not listen yet, so that connections are refused until a worker is ready.

    A loopback host means both loopback addresses, as clients resolve `localhost` to either. If an address cannot be
    used, the process exits with a sentence that names the settings with `prefix`.
    """
    listeners: list[socket.socket] = []
    addresses = THIS_MACHINE if host in _LOOPBACK_HOSTS else (host,)
    for address in addresses:
        try:
            listeners.append(bind(address, port))
        except OSError as error:
            if error.errno in _NO_SUCH_ADDRESS and (listeners or address != addresses[-1]):
                continue
            sys.exit(
                f"Cannot listen on {address} port {port} ({error.strerror}): "
                f"set {prefix}_HOST and {prefix}_PORT to an address of this machine and a free port."
            )
        port = listeners[0].getsockname()[1]  # the one that was chosen, if it was 0
    return listeners


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Returns a socket that does not listen yet; a `shared` address can be bound by several processes."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host,
        port,
        type=socket.SOCK_STREAM,
        proto=socket.IPPROTO_TCP,  # asyncio turns Nagle's delay off only for a socket that names it
        flags=socket.AI_PASSIVE,
    )[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)  # every connection inherits it
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    try:
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _get_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
