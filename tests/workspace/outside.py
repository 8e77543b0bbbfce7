"""What a command must not reach: another folder, a process with a secret, sockets of every kind."""

import asyncio
import ctypes
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_CREATE, _REMOVE = 0o1000 | 0o600, 0


@asynccontextmanager
async def outside(directory: Path, readable: Path | None = None) -> AsyncIterator[dict[str, Any]]:
    """As the account that asks; what `attempts.py` is to be told. `readable` is the account's file among programs."""
    folder = directory / "another"
    folder.mkdir(mode=0o700)
    for name in ("secret", "spare", "spare2", "spare3", "spare4"):
        (folder / name).write_text("the secret of somebody else\n")
    for name in ("directory", "empty"):
        (folder / name).mkdir()
    program = folder / "program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    mark = secrets.token_hex(8)
    sleeping = await asyncio.create_subprocess_exec("sleep", "300", env={"SECRET": mark, "PATH": os.environ["PATH"]})
    marked = await asyncio.create_subprocess_exec("sh", "-c", "sleep 300 & wait", mark, start_new_session=True)
    victim = await asyncio.create_subprocess_exec("sleep", "300")
    key = secrets.randbits(30) | 1
    shared = _libc.shmget(key, 4096, _CREATE)
    spare_shared = _libc.shmget(secrets.randbits(30) | 1, 4096, _CREATE)
    queue, semaphore = _libc.msgget(key, _CREATE), _libc.semget(key, 1, _CREATE)
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(str(folder / "datagrams"))
    unix, abstract = str(folder / "socket"), f"todo-{mark}"
    datagrams, _ = await asyncio.get_running_loop().create_datagram_endpoint(_Echo, ("127.0.0.1", 0))
    servers = [
        await asyncio.start_server(_greet, "127.0.0.1", 0),
        await asyncio.start_unix_server(_greet, unix),
        await asyncio.start_unix_server(_greet, "\0" + abstract),
    ]
    try:
        yield {
            "folder": str(folder),
            "secret": str(folder / "secret"),
            **{name: str(folder / name) for name in ("spare", "spare2", "spare3", "spare4", "program")},
            "readable": str(readable or folder / "secret"),
            "queue": key,
            "semaphore": key,
            "is_outside": True,
            "capabilities": os.geteuid() == 0,
            "mark": mark,
            "process": sleeping.pid,
            "victim": victim.pid,
            "bystander": marked.pid,
            "shared": key,
            "spare_shared": spare_shared,
            "tcp": servers[0].sockets[0].getsockname()[1],
            "udp": datagrams.get_extra_info("sockname")[1],
            "unix": unix,
            "datagrams": str(folder / "datagrams"),
            "abstract": abstract,
        }
    finally:
        for server in servers:
            server.close()
        datagrams.close()
        inbox.close()
        for segment in (shared, spare_shared):
            _libc.shmctl(segment, _REMOVE, None)
        _libc.msgctl(queue, _REMOVE, None)
        _libc.semctl(semaphore, 0, _REMOVE, None)
        os.killpg(marked.pid, signal.SIGKILL)
        for process in (sleeping, marked, victim):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"x")
    writer.close()


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(data, addr)
