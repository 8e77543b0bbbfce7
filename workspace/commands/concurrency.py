"""Limits how many commands run at once for a folder, a user and in all. Waiting commands start in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from common.tool_server.errors import CallError
from workspace.errors import FolderBusy, UserBusy, WorkspaceBusy

_AT_ONCE = 16
_WAIT_SECONDS = 60.0


class ConcurrencyLimits:
    def __init__(self, of_user: int, *, of_all: int = _AT_ONCE, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._of_user = of_user
        self._of_all = of_all
        self._wait_seconds = wait_seconds
        # Unused semaphores are dropped.
        self._folders = WeakValueDictionary[Path, asyncio.Semaphore]()
        self._users = WeakValueDictionary[str, asyncio.Semaphore]()
        self._all = asyncio.Semaphore(of_all)

    @asynccontextmanager
    async def acquire(self, user: str, folder: Path) -> AsyncIterator[None]:
        """Waits for the folder first, so that waiting commands do not count for their user."""
        of_folder = self._folders.setdefault(folder, asyncio.Semaphore(1))
        of_user = self._users.setdefault(user, asyncio.Semaphore(self._of_user))
        deadline = asyncio.get_running_loop().time() + self._wait_seconds
        waits: list[tuple[asyncio.Semaphore, CallError]] = [
            (of_folder, FolderBusy(seconds=f"{self._wait_seconds:.0f}")),
            (of_user, UserBusy(most=self._of_user)),
            (self._all, WorkspaceBusy(most=self._of_all)),
        ]
        async with AsyncExitStack() as acquired:
            for semaphore, busy in waits:
                try:
                    async with asyncio.timeout_at(deadline):
                        await acquired.enter_async_context(semaphore)
                except TimeoutError:
                    raise busy from None
            yield
