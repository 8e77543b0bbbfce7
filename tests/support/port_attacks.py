"""Starts attacks on a port from another process, and measures the memory of services."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.processes import ServiceProcess

MEMORY_MB = 150
"""The most that an attack may cost a service."""


async def start_attack(
    port: int, kind: str, name: str, seconds: float, *, tls: bool = False
) -> asyncio.subprocess.Process:
    """Returns when the attack has started."""
    command = [sys.executable, "-m", "tests.abuse", kind, name, str(port), str(seconds), *(["tls"] if tls else [])]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"started\n"
    return process


def memory_mb(service: ServiceProcess) -> int:
    assert service.process is not None
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024
