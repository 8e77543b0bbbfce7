import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

from service.database.engine import connect_to_listen

logger = logging.getLogger(__name__)

_POOLED = (
    "LISTEN goes through a connection pooler. Unless it keeps sessions, messages of other processes arrive seconds "
    "late. Set LISTEN_DATABASE_URL to the address of PostgreSQL itself."
)


async def listen(engine: AsyncEngine, heard: Mapping[str, Callable[[str], object]], *, again_seconds: float) -> None:
    """Call each channel's function with what is notified on it, on one connection of their own, until cancelled.

    What is notified while the database is away is not heard.
    """
    while True:
        try:
            async with await connect_to_listen(engine) as connection:
                if await _is_pooled(connection):
                    logger.warning(_POOLED)
                await connection.execute("; ".join(f"LISTEN {channel}" for channel in heard).encode())
                async for notification in connection.notifies():
                    heard[notification.channel](notification.payload)
        except (psycopg.Error, OSError) as error:
            logger.warning("not listening to %s: %s", ", ".join(heard), type(error).__name__)
        await asyncio.sleep(again_seconds)


async def _is_pooled(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether the process that answers is another than the one that was connected to."""
    row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    return row != (connection.info.backend_pid,)
