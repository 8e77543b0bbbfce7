"""Runs commands in folders or in directories of users, within all limits."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from common.tool_server.errors import CallError
from workspace.commands.disk_watch import DiskWatch
from workspace.commands.running import KILLED_CODE, LIMIT_CODE, CommandResult, Limits, run_process
from workspace.commands.tools import Command
from workspace.confinement.base import Confinement, Directory
from workspace.errors import CommandFailed, DirectoryNotConfined, FolderBusy, NoConfinement, UserBusy, WorkspaceBusy
from workspace.files import walking
from workspace.files.directories import find_obstacle, keep_git_directory
from workspace.files.quota import Quota, measure

_DIRECTORIES = Path("/")  # stands for all directories of users
_MAX_COMMANDS = 16
_WAIT_SECONDS = 60.0


class ConcurrencyLimits:
    """Limits how many commands run at once for a folder, a user and in all. Waiting commands start in order."""

    def __init__(self, of_user: int, *, of_all: int = _MAX_COMMANDS, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._of_user = of_user
        self._of_all = of_all
        self._wait_seconds = wait_seconds
        self._used = WeakValueDictionary[Path | str, asyncio.Semaphore]()  # of folders and users
        self._all = asyncio.Semaphore(of_all)

    @asynccontextmanager
    async def acquire(self, user: str, folder: Path) -> AsyncIterator[None]:
        """Waits for the folder first, so that waiting commands do not count for their user."""
        of_folder = self._used.setdefault(folder, asyncio.Semaphore(1))
        of_user = self._used.setdefault(user, asyncio.Semaphore(self._of_user))
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


class CommandRunner:
    def __init__(self, quota: Quota, *, at_once: int = 4) -> None:
        self.confinement: Confinement | None = None
        self._quota = quota
        self._concurrency = ConcurrencyLimits(at_once)
        self._stops: dict[Path, asyncio.Event] = {}

    def stop(self, folder: Path) -> bool:
        """Returns whether a command ran; its caller gets the output so far."""
        if (stop := self._stops.get(folder)) is None:
            return False
        stop.set()
        return True

    async def run(self, user: str, folder: Path, command: Command, directory: Directory | None = None) -> CommandResult:
        if self.confinement is None:
            raise NoConfinement
        if directory and self.confinement.directories is None:
            raise DirectoryNotConfined
        async with AsyncExitStack() as stack:
            # One in all directories at a time: one of them may be inside another.
            await stack.enter_async_context(self._concurrency.acquire(user, _DIRECTORIES if directory else folder))
            os.chmod(folder, 0o700)  # an earlier command may have closed it
            watch, note = DiskWatch(self._quota, folder), None
            if directory and not command.only_reads:
                note = await asyncio.to_thread(_explain_read_only, self.confinement, directory)
                if note is None:
                    directory = replace(directory, is_writable=True)
                    stack.enter_context(keep_git_directory(directory.descriptor))
                    held = await asyncio.to_thread(measure, Path(directory.path), repair=False)
                    watch = DiskWatch(self._quota.extend(held), Path(directory.path))
            ran = await self._run_within_limits(self.confinement, folder, command, directory, watch)
        return ran.add_note(note) if note else ran

    async def _run_within_limits(
        self, confinement: Confinement, folder: Path, command: Command, directory: Directory | None, watch: DiskWatch
    ) -> CommandResult:
        is_full = await watch.begin()
        stop = self._stops[folder] = asyncio.Event()
        try:
            ran = await run_process(
                *(confinement, folder, command.argv),
                timeout_s=command.timeout_s,
                stdin=command.stdin,
                directory=directory,
                limits=Limits(file_bytes=0) if is_full else None,
                stop=stop,
                watch=watch.wait,
            )
        except OSError as error:
            raise CommandFailed(reason=error.strerror) from error
        finally:
            del self._stops[folder]  # one at a time
        if watch.killed_for and ran.exit_code == KILLED_CODE:
            return replace(ran, exit_code=LIMIT_CODE).add_note(f"ended: {watch.killed_for}")
        is_full = await watch.find_problem()
        return ran.add_note(is_full) if is_full and is_full not in ran.stderr else ran


def _explain_read_only(confinement: Confinement, directory: Directory) -> str | None:
    """Returns the reason for the model, or None if the directory is writable."""
    if confinement.directories == "read":
        why = f"the sandbox {confinement.name} cannot protect what git keeps there"
    else:
        try:
            why = find_obstacle(directory.descriptor)
        except walking.DirectoryMoved:
            why = "directories were moved while they were looked at"
    if why is None:
        return None
    return f"commands can only read this directory, as {why}; write_file and edit_file can change files"
