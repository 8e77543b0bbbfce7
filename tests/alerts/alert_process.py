"""A process with the clock and the sender of a backend, and nothing else; its leases and pauses are short."""

import asyncio
import sys

from backend.alerts.available_channels import AvailableChannels, OpenChannels
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.webhook import WebhookChannel
from backend.alerts.clock import AlertClock
from backend.alerts.composer import Composer
from backend.alerts.sender import Sender
from backend.settings import ChannelSettings
from backend.tools.caller_token import CallerToken
from backend.tools.task_tools import TaskTools
from common.clock import utc_now
from common.database import Database, run_sweeps
from common.web_origins import AllowedOrigins
from tests.tokens import MCP_TOKEN_SECRET

LEASE_SECONDS, CHANNEL_SECONDS = 6.0, 1.5
TICK_SECONDS = 0.3


async def main(database_url: str, mcp_url: str, receiver: str, prepared: str, singly: str) -> None:
    tools = TaskTools(mcp_url, CallerToken(MCP_TOKEN_SECRET, mcp_url), resend_seconds=1)
    async with Database(database_url, prepared=prepared == "true") as database, tools.http:
        webhooks = WebhookChannel(HttpSender(AllowedOrigins([receiver]), seconds=CHANNEL_SECONDS))
        channels = AvailableChannels(database, ChannelSettings(), OpenChannels({"webhook": webhooks}, ""))
        composer = Composer(database, tools, time_zone="UTC", address="http://localhost")
        sender = Sender(database, composer, channels, utc_now, lease_seconds=LEASE_SECONDS, at_once=20)
        clock = AlertClock(database, utc_now, "UTC", singly=int(singly))
        async with (
            run_sweeps(clock.tick, every_seconds=TICK_SECONDS),
            run_sweeps(sender.send_due, every_seconds=TICK_SECONDS),
        ):
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
