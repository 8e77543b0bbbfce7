"""The conversation in a terminal: how soon one can type there, and how soon what was typed is answered."""

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from statistics import median

from bench.processes import HOST, INHERITED
from bench.rows import Row
from bench.stage import Stage

_SECONDS = 30  # at most, until something is shown
_WHERE, _HERE = b"\x1b[6n", b"\x1b[1;1R"  # where the cursor is: what a terminal is asked, and answers


async def terminal(stage: Stage) -> list[Row]:
    prompts, passes, keys, answers = list[float](), list[float](), list[float](), list[float]()
    for _ in range(stage.scale.long_rounds):
        passes.append(await _pass_ms())
        typed = _Terminal(stage)
        try:
            prompts.append(await typed.until(b">"))
            await typed.after(b"say 20\r", b"total")
            keys.append(await typed.after(b"s", b"s"))
            answers.append(await typed.after(b"ay 20\r", b"word"))
        finally:
            await typed.end()
    prompt, plain = median(prompts), median(passes)
    return [
        Row("the terminal's prompt", prompt, "ms", plain, "python -c pass", prompt / plain),
        Row("a key in the terminal, to its sign", median(keys), "ms"),
        Row("Enter in the terminal, to the first word", median(answers), "ms"),
    ]


async def _pass_ms() -> float:
    began = time.perf_counter()
    await (await asyncio.create_subprocess_exec(sys.executable, "-c", "pass")).wait()
    return (time.perf_counter() - began) * 1000


class _Terminal:
    """`./todo chat` in a terminal of its own."""

    def __init__(self, stage: Stage) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        url, directory = f"http://{HOST}:{stage.backend.port}", str(stage.place.work / "chat")
        self._seen, self._news, self._began = b"", asyncio.Event(), time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cli", "chat", "--url", url, "--data-dir", directory],
            env={name: os.environ[name] for name in INHERITED if name in os.environ} | {"TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        asyncio.get_running_loop().add_reader(self._master, self._read)

    async def after(self, keys: bytes, sign: bytes) -> float:
        """Milliseconds until this is shown, after these keys."""
        self._seen, self._began = b"", time.perf_counter()
        os.write(self._master, keys)
        return await self.until(sign)

    async def until(self, sign: bytes) -> float:
        async with asyncio.timeout(_SECONDS):
            while sign not in self._seen:
                self._news.clear()
                await self._news.wait()
        return (time.perf_counter() - self._began) * 1000

    async def end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        self._process.kill()
        await asyncio.to_thread(self._process.wait)
        os.close(self._master)

    def _read(self) -> None:
        with suppress(OSError):  # it has ended
            piece = os.read(self._master, 65_536)
            if _WHERE in piece:
                os.write(self._master, _HERE)
            self._seen += piece
            self._news.set()
