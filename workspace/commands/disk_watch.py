"""Ends a command if its folder exceeds the quota or the disk is nearly full.

Counting a folder takes long and reading the free space does not. Free space is read two hundred times a second, also
while the folder is counted. When as much has gone from the disk as the folder may still take, the command is stopped
and the folder counted.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from common.tool_server.errors import CallError
from workspace.confinement.launcher import list_descendants
from workspace.errors import DiskNearlyFull
from workspace.files import quota as quotas
from workspace.files.quota import NOTHING, Amount, Quota

LEAST_FREE_BYTES, LEAST_FREE_SHARE = 512 * 1024**2, 0.05  # the smaller one
_PAUSE_SECONDS = 0.005
_COUNT_SECONDS = 0.5  # for entries that take no space, such as hard links
_COUNT_SHARE = 0.05  # of the time
_TOLERATED_SHARE = 0.025  # of a limit
_TO_REMOVE = Amount(64 * 1024, 16)  # may be written in a full folder: a command needs some to start


class DiskWatch:
    def __init__(self, quota: Quota, folder: Path) -> None:
        self._quota = quota
        self._folder = folder
        self._most: Amount | None = None  # the limit of a folder that was full when the command began
        self._left = NOTHING
        self.killed_for: str | None = None
        """Why it has killed the command, whose end may be known before `wait` returns."""

    async def begin(self) -> str | None:
        """Returns why a command may only remove files; raises `DiskNearlyFull` if none may run."""
        self._check_disk()
        if full := await self.find_problem():
            held = await asyncio.to_thread(quotas.measure, self._folder, repair=self._quota.repair)
            self._most = held.plus(_TO_REMOVE)
        return full

    async def find_problem(self) -> str | None:
        try:
            self._left = await asyncio.to_thread(self._quota.check, self._folder)
        except CallError as full:
            return str(full)
        return None

    async def wait(self, process: int) -> str:
        """Returns why the command with this first process must be ended."""
        pause, counting = _COUNT_SECONDS, None
        try:
            free = self._check_disk()
            while True:
                began = time.monotonic()
                counting = asyncio.create_task(self._count_after(pause, process))
                while not counting.done() and not self._may_be_full(free):
                    await asyncio.sleep(_PAUSE_SECONDS)
                if not counting.done():
                    counting.cancel()
                    counting = asyncio.create_task(asyncio.to_thread(self._count, process, stop=True))
                free, self._left = await counting
                pause = max(_COUNT_SECONDS, (time.monotonic() - began - pause) / _COUNT_SHARE)
        except CallError as full:
            return str(full)
        finally:
            if counting:
                counting.cancel()

    async def _count_after(self, seconds: float, process: int) -> tuple[Amount, Amount]:
        await asyncio.sleep(seconds)
        return await asyncio.to_thread(self._count, process)

    def _may_be_full(self, free: Amount) -> bool:
        """Compares what has gone from the disk, since so much was free, with what the folder could take then."""
        return free.minus(self._check_disk()).find_excess(self._get_tolerance()) is not None

    def _check_disk(self) -> Amount:
        disk = os.statvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        if free < min(LEAST_FREE_BYTES, int(disk.f_blocks * disk.f_frsize * LEAST_FREE_SHARE)):
            raise DiskNearlyFull
        return Amount(free, disk.f_favail)

    def _get_tolerance(self) -> Amount:
        least = [int(limit * _TOLERATED_SHARE) for limit in self._quota.of_folder]
        return _TO_REMOVE if self._most else Amount(*map(max, self._left, least))

    def _count(self, process: int, *, stop: bool = False) -> tuple[Amount, Amount]:
        """Returns the free space before the count and what the folder may still take; kills the command if it is full.

        With `stop` the command is stopped while it is counted.
        """
        free, processes = self._check_disk(), list_descendants(process)
        if stop:
            _signal(processes, signal.SIGSTOP)
        unlinked = Amount(quotas.measure_unlinked(self._folder, processes), 0)
        left = self._left
        try:
            if self._most is None:
                left = self._quota.check(self._folder, more=unlinked)
            elif quotas.measure(self._folder, repair=self._quota.repair).plus(unlinked).find_excess(self._most):
                self._quota.check(self._folder, more=unlinked)
        except CallError as full:
            self.killed_for = str(full)
            _signal(list_descendants(process), signal.SIGKILL)  # also those that began since
            raise
        if stop:
            _signal(processes, signal.SIGCONT)
        return free, left


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(OSError):  # it has ended
            os.kill(process, number)
