"""Who may run a command now: one at a time in a folder, a few of a person. Who came first is first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from workspace.commands.errors import FolderBusy, PersonBusy

_AT_ONCE = 16
_WAIT_SECONDS = 60.0


class Places:
    """`of_person` commands of one person run at once, `of_all` of all people."""

    def __init__(self, of_person: int, *, of_all: int = _AT_ONCE, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._of_person = of_person
        self._wait_seconds = wait_seconds
        # They are forgotten when nobody waits for them or has them.
        self._folders = WeakValueDictionary[Path, asyncio.Semaphore]()
        self._people = WeakValueDictionary[str, asyncio.Semaphore]()
        self._all = asyncio.Semaphore(of_all)

    @asynccontextmanager
    async def taken(self, person: str, folder: Path) -> AsyncIterator[None]:
        """Raises `FolderBusy` or `PersonBusy` for who has waited too long.

        The folder comes first, so that commands that wait for theirs hold no place of their person's.
        """
        one = self._folders.setdefault(folder, asyncio.Semaphore(1))
        few = self._people.setdefault(person, asyncio.Semaphore(self._of_person))
        deadline = asyncio.get_running_loop().time() + self._wait_seconds
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout_at(deadline):
                    await held.enter_async_context(one)
            except TimeoutError:
                raise FolderBusy(seconds=f"{self._wait_seconds:.0f}") from None
            try:
                async with asyncio.timeout_at(deadline):
                    await held.enter_async_context(few)
                    await held.enter_async_context(self._all)
            except TimeoutError:
                raise PersonBusy(most=self._of_person) from None
            yield
