"""Attacks a port from another process, and measures the memory of services."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.conftest import ROOT
from tests.processes import ServiceProcess

MAX_GROWTH_MB = 150
"""The most memory that an attack may cost a service."""

Counts = dict[str, int]


@asynccontextmanager
async def attack(
    port: int, kind: str, name: str, seconds: float, *services: ServiceProcess, tls: bool = False
) -> AsyncIterator[asyncio.Task[Counts]]:
    """Attacks the port during the block; yields a task that is done with the attack and has its counts.

    It ends with an error if one of the services has grown too much.
    """
    before = {service: memory_mb(service) for service in services}
    command = [sys.executable, "-m", "tests.abuse", kind, name, str(port), str(seconds), *(["tls"] if tls else [])]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"started\n"
    attacking = asyncio.create_task(_read_counts(process))
    try:
        yield attacking
        await attacking
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    grown = {service.module: memory_mb(service) - megabytes for service, megabytes in before.items()}
    assert max(grown.values()) < MAX_GROWTH_MB, grown


async def _read_counts(process: asyncio.subprocess.Process) -> Counts:
    output, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(output)


def memory_mb(service: ServiceProcess) -> int:
    assert service.process is not None
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024
