import asyncio
import logging
from collections.abc import Callable, Mapping

import psycopg
from sqlalchemy import URL

logger = logging.getLogger(__name__)


async def listen(url: URL, heard: Mapping[str, Callable[[str], object]], *, again_seconds: float) -> None:
    """Call each channel's function with what is notified on it, on one connection of their own, until cancelled.

    What is notified while the database is away is not heard.
    """
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                address, autocommit=True, connect_timeout=5, application_name="todo-assistant"
            ) as connection:
                await connection.execute("; ".join(f"LISTEN {channel}" for channel in heard).encode())
                async for notification in connection.notifies():
                    heard[notification.channel](notification.payload)
        except (psycopg.Error, OSError) as error:
            logger.warning("not listening to %s: %s", ", ".join(heard), type(error).__name__)
        await asyncio.sleep(again_seconds)
