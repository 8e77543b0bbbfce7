import asyncio
import sys
import time
from collections.abc import Sequence

from backend.conversations import runs
from backend.users import data
from common import data_commands
from common.database import Database

_STOP_SECONDS = 10.0  # a run whose process is gone is not waited for any longer
_LOOK_SECONDS = 0.1


def run(arguments: Sequence[str]) -> None:
    data_commands.run_for_user(
        _forget,
        arguments,
        name="forget",
        description="Deletes all that is stored of a user's conversations.",
    )


async def delete_user(database: Database, *, user: str) -> dict[str, int]:
    """Deletes all that this service stores of a user, and returns how many rows of each table."""
    await stop_runs(database, user)
    return await data.delete_all(database, user)


async def _forget(database: Database, *, user: str) -> None:
    counts = await delete_user(database, user=user)
    if not any(counts.values()):
        raise data_commands.NothingStored(user)
    deleted = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items())
    sys.stdout.write(f"Deleted for good: {deleted}.\n")


async def stop_runs(database: Database, user: str) -> None:
    """Requests that a user's runs stop, in whichever process, and waits up to ten seconds for that."""
    running = await runs.load_running(database, user)
    for one in running:
        await runs.request_stop(database, one)
    give_up_at = time.monotonic() + _STOP_SECONDS
    while running and time.monotonic() < give_up_at:
        await asyncio.sleep(_LOOK_SECONDS)
        running = await runs.load_running(database, user)
