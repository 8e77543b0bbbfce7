import asyncio
import logging
import selectors
from functools import partial

from starlette.types import ASGIApp

from common import process
from common.environment import read_or_stop, read_settings
from common.model_building import defer_model_building
from common.server.serving import ServedApplication
from common.telemetry import logs
from workspace import account as accounts
from workspace.settings import Settings

log = logging.getLogger("workspace")

_GRACE_SECONDS = 10


def main(account: int | None) -> None:
    settings = read_or_stop(read_settings, Settings)
    accounts.check_account(account)
    logs.configure(settings.log_level, settings.log_format, quiet=["uvicorn"])
    process.run_service(
        settings,
        partial(_create_app, settings, account),
        grace_seconds=_GRACE_SECONDS,
        loop="workspace.process:create_event_loop",
    )


def create_event_loop() -> asyncio.AbstractEventLoop:
    """Avoids epoll, whose watches are counted per account, which unconfined commands share."""
    return asyncio.SelectorEventLoop(selectors.PollSelector())


def _create_app(settings: Settings, account: int | None, address: str) -> ASGIApp:
    """There is one process, because locks of folders and running commands are in its memory."""
    # Here, after garbage collection was stopped, and before the account is switched.
    with defer_model_building():
        from common.tool_server.overrides import configure_logs
    from workspace.server import create_app

    configure_logs(settings.log_level, settings.log_format)
    return ServedApplication(
        create_app(settings, account=account),
        drain_seconds=settings.drain_seconds,
        on_ready=lambda: log.info("workspace listens on %s/mcp", address),
    )
