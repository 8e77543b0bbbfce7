"""A driver in a process of its own: it reads one command per line and answers with one line of JSON."""

import asyncio
import gc
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from bench.drivers import load
from bench.drivers.load import Load, Timing

Turn = Callable[[str], Coroutine[Any, Any, Timing]]
_LINE_BYTES = 16 * 1024 * 1024


async def serve(turn: Turn) -> None:
    """In the driver: do what the commands say until there is no reader any more."""
    await turn("add")
    gc.collect()
    gc.freeze()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    held: set[asyncio.Task[Timing]] = set()
    _tell("ready")
    async for line in reader:
        command = json.loads(line)
        text = command["text"]
        if callers := command.get("hold"):
            held = {asyncio.create_task(turn(text)) for _ in range(callers)}
            await asyncio.sleep(command["seconds"])
            _tell("held")
        elif command.get("release"):
            await asyncio.gather(*held)
            _tell("released")
        else:
            done = await load.run(partial(turn, text), callers=command["callers"], seconds=command["seconds"])
            _tell([done.elapsed, [(timing.first, timing.total) for timing in done.timings]])


def _tell(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Worker:
    """The other end of `serve`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    async def start(cls, module: str, *arguments: str) -> "Worker":
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, *arguments, stdin=PIPE, stdout=PIPE, limit=_LINE_BYTES
        )
        return cls(process)

    async def ready(self) -> None:
        assert await self._answer() == "ready"

    async def run(self, text: str, *, callers: int, seconds: float) -> Load:
        elapsed, timings = await self._ask(text=text, callers=callers, seconds=seconds)
        return Load([Timing(*timing) for timing in timings], elapsed)

    async def hold(self, text: str, callers: int, *, seconds: float) -> None:
        """Begin calls that stay open, and give them so long to reach that point."""
        await self._ask(text=text, hold=callers, seconds=seconds)

    async def release(self) -> None:
        """Wait for the calls that were held; somebody else lets them end."""
        await self._ask(text="", release=True)

    async def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()

    async def _ask(self, **command: Any) -> Any:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        return await self._answer()

    async def _answer(self) -> Any:
        assert self._process.stdout
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a driver has ended before its answer")
        return json.loads(line)
