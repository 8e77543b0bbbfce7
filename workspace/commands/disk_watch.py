"""Ends a command if its folder exceeds the quota or the disk is nearly full.

Counting a folder takes long and reading the free space does not. Free space is read two hundred times a second, and the
folder is counted when as much has gone from the disk as the folder may still take.
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
_TOLERATED = 0.025  # of a limit
_TO_REMOVE = Amount(64 * 1024, 16)  # needed to start in a full folder
_TO_TIDY = Amount(1024**2, 100)  # may be written there, up to a tenth above the limit


class DiskWatch:
    def __init__(self, quota: Quota, folder: Path) -> None:
        self._quota = quota
        self._folder = folder
        self._most: Amount | None = None  # the limit of a folder that was full when the command began
        self._left = NOTHING

    async def begin(self) -> str | None:
        """Returns why a command may only remove files; raises `DiskNearlyFull` if none may run."""
        self._check_disk()
        if full := await self.find_problem():
            held = await asyncio.to_thread(quotas.measure, self._folder, repair=self._quota.repair)
            self._most = _get_larger(held.plus(_TO_REMOVE), _cap(held.plus(_TO_TIDY), self._quota.of_folder))
        return full

    async def find_problem(self) -> str | None:
        try:
            self._left = await asyncio.to_thread(self._quota.check, self._folder)
        except CallError as full:
            return str(full)
        return None

    async def wait(self, process: int) -> str:
        """Returns why the command with this first process must be ended."""
        free, counted, pause = self._check_disk(), time.monotonic(), _COUNT_SECONDS
        while True:
            began = time.monotonic()
            await asyncio.sleep(_PAUSE_SECONDS)
            try:
                now = self._check_disk()
            except CallError as full:
                return str(full)
            is_urgent = free.minus(now).find_excess(self._get_tolerance()) is not None
            if not is_urgent and began - counted < pause:
                continue
            began = time.monotonic()
            if problem := await asyncio.to_thread(self._count, process, is_urgent=is_urgent):
                return problem
            free, counted = now, time.monotonic()
            pause = max(_COUNT_SECONDS, (counted - began) / _COUNT_SHARE)

    def _check_disk(self) -> Amount:
        disk = os.statvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        if free < min(LEAST_FREE_BYTES, int(disk.f_blocks * disk.f_frsize * LEAST_FREE_SHARE)):
            raise DiskNearlyFull
        return Amount(free, disk.f_favail)

    def _get_tolerance(self) -> Amount:
        least = Amount(int(self._quota.bytes * _TOLERATED), int(self._quota.files * _TOLERATED))
        return _TO_REMOVE if self._most else _get_larger(self._left, least)

    def _count(self, process: int, *, is_urgent: bool) -> str | None:
        """Stops the command while it is counted, if it may have exceeded the limit, and kills it if it has."""
        processes = list_descendants(process)
        if is_urgent:
            _signal(processes, signal.SIGSTOP)
        unlinked = Amount(quotas.measure_unlinked(self._folder, processes), 0)
        try:
            if self._most is None:
                self._left = self._quota.check(self._folder, more=unlinked)
            elif quotas.measure(self._folder, repair=self._quota.repair).plus(unlinked).find_excess(self._most):
                self._quota.check(self._folder, more=unlinked)
        except CallError as full:
            _signal(list_descendants(process), signal.SIGKILL)  # also those that began since
            return str(full)
        if is_urgent:
            _signal(processes, signal.SIGCONT)
        return None


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(OSError):  # it has ended
            os.kill(process, number)


def _get_larger(one: Amount, other: Amount) -> Amount:
    return Amount(max(one.bytes, other.bytes), max(one.files, other.files))


def _cap(amount: Amount, limit: Amount) -> Amount:
    return Amount(min(amount.bytes, limit.bytes * 11 // 10), min(amount.files, limit.files * 11 // 10))
