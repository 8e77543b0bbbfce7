"""Starts services as processes, and reads their resource usage from /proc."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from cli.errors import CliError
from cli.processes.children import die_with_parent
from cli.services.running import probe

START_SECONDS = 60
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "PYTHONPATH")


class Server:
    """Runs `python -m MODULE …` on its own port, with its output in a file."""

    def __init__(self, logs: Path, module: str, *arguments: str, port: int, **environment: str) -> None:
        self.port = port
        self._log = logs / f"{module}-{self.port}.log"
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**inherited, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait_until_ready(self, path: str = "/ready") -> None:
        deadline = time.monotonic() + START_SECONDS
        while (await asyncio.to_thread(probe, self.port, path))[0] != 200:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise CliError(f"{self._log.stem} is not ready:\n{self._log.read_text(errors='replace')[-2000:]}")
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def read_private_memory(pid: int) -> int:
    """Returns the private resident memory of a process in bytes."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line and not line[0].isdigit())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("Private_Clean", "Private_Dirty"))


def read_cpu_seconds(pid: int) -> float:
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


def count_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
