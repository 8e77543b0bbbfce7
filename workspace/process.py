import asyncio
import logging
import selectors
import socket
from collections.abc import Callable
from functools import partial

from common import process, workers
from common.tool_server import logs
from workspace import account as accounts
from workspace.maintenance import check as check_command
from workspace.settings import Settings

log = logging.getLogger("workspace")

_GRACE_SECONDS = 10


def main(account: int | None = None) -> None:
    """Serve; started by root, as `account`."""
    settings = check_command.run()
    accounts.check(account)
    logs.configure(settings.log_level, settings.log_format)
    process.run(
        settings,
        partial(_serve, settings, account),
        app="workspace.server",
        grace_seconds=_GRACE_SECONDS + 5,
        announce=_announce,
    )


def _serve(settings: Settings, account: int | None, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """The one process: what a folder's commands and files wait for is known to it alone."""
    from workspace.server import create_app

    server = workers.Server(
        create_app(settings, account=account),
        settings,
        grace_seconds=_GRACE_SECONDS,
        drain_seconds=settings.drain_seconds,
        trusted_proxies=settings.trusted_proxies,
        on_ready=on_ready,
        loop="workspace.process:create_event_loop",
    )
    server.run(sockets=[listener])


def create_event_loop() -> asyncio.AbstractEventLoop:
    """A loop without epoll, whose watches are counted for the whole account: commands that run unconfined share it."""
    return asyncio.SelectorEventLoop(selectors.PollSelector())


def _announce(address: str) -> None:
    log.info("workspace listens on %s/mcp", address)
