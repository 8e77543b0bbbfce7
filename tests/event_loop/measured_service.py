"""Runs `python -m MODULE` with a timer that measures how long the event loop of the service is held.

It is the processor time of the loop's thread from one timer to the next, so that other processes do not count.
"""

import asyncio
import mmap
import runpy
import struct
import sys
import time
from pathlib import Path
from socket import socket

import uvicorn

from tests.conftest import ROOT
from tests.processes import ServiceProcess

_TIMER_SECONDS = 0.001
_SECONDS = struct.Struct("d")


class MeasuredService(ServiceProcess):
    """A service whose longest hold since the last reset can be read at any time."""

    def measure_with(self, file: Path) -> None:
        file.write_bytes(_SECONDS.pack(0))
        file.chmod(0o666)  # the workspace runs as another account
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), _SECONDS.size)
        self._file = file

    def start(self) -> None:
        command = [sys.executable, "-m", __name__, str(self._file), self.module, *self._arguments]
        self.launch(command, cwd=ROOT, env=self.environment)

    def reset(self) -> None:
        _SECONDS.pack_into(self._shared, 0, 0)

    def read_longest_hold(self) -> float:
        return _SECONDS.unpack_from(self._shared)[0]


async def _measure(shared: mmap.mmap) -> None:
    last = time.thread_time()
    while True:
        await asyncio.sleep(_TIMER_SECONDS)
        now = time.thread_time()
        if now - last > _SECONDS.unpack_from(shared)[0]:
            _SECONDS.pack_into(shared, 0, now - last)
        last = time.thread_time()


def _main() -> None:
    _, file, module, *arguments = sys.argv
    with Path(file).open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), _SECONDS.size)
    start_server = uvicorn.Server.startup

    async def start(self: uvicorn.Server, sockets: list[socket] | None = None) -> None:
        self.measuring = asyncio.create_task(_measure(shared))  # pyright: ignore[reportAttributeAccessIssue]
        await start_server(self, sockets)

    uvicorn.Server.startup = start
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
