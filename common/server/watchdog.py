import asyncio
import faulthandler
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def watchdog(*, seconds: float = 60) -> AsyncIterator[None]:
    """Ends the process with a traceback on standard error if its event loop hangs for `seconds`."""
    task = asyncio.create_task(_rearm(seconds), name="watchdog")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        faulthandler.cancel_dump_traceback_later()


async def _rearm(seconds: float) -> None:
    while True:
        faulthandler.dump_traceback_later(seconds, exit=True)
        await asyncio.sleep(seconds / 12)
