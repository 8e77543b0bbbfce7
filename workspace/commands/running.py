"""Runs a sandboxed command until it ends, reaches a limit or is stopped."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workspace.commands.output import Output
from workspace.confinement.base import Confinement, Directory, Launch

TIMEOUT_CODE, STOP_CODE, LIMIT_CODE = 124, 130, 153
KILLED_CODE = 128 + signal.SIGKILL
_GRACE_SECONDS = 5.0  # until killed processes are gone
# Shells name the number of processes -u or -p.
_SCRIPT = """
ulimit -c 0
ulimit -f "$1"
ulimit -d "$2"
ulimit -t "$3"
ulimit -n "$4"
[ "$5" = - ] || ulimit -u "$5" || ulimit -p "$5"
shift 5
exec 2>&3 3>&-
exec "$@"
"""
_OTHER_COMMANDS = 4
Watch = Callable[[int], Coroutine[Any, Any, str]]
"""Given the first process of a command, returns a sentence when the command must be ended."""


@dataclass(frozen=True)
class Limits:
    file_bytes: int = 200 * 1024**2
    memory_bytes: int = 2 * 1024**3
    """Data of one process; not its addresses, of which Java and Node.js reserve far more than they use."""
    processes: int = 64
    open_files: int = 256

    def wrap_command(self, argv: Sequence[str], seconds: int, *, others: int | None) -> list[str]:
        """Wraps a command in a shell that sets the limits; `others` are the account's processes, if counted."""
        processes = "-" if others is None else self.processes * (_OTHER_COMMANDS if others else 1) + others
        processor_seconds = seconds * (os.cpu_count() or 1) + 5  # in case the time limit fails
        values = (self.file_bytes // 512, self.memory_bytes // 1024, processor_seconds, self.open_files, processes)
        return ["sh", "-c", f"exec 3>&2 2>/dev/null{_SCRIPT}", "sh", *map(str, values), *argv]


@dataclass(frozen=True)
class CommandResult:
    """The end of a command; an exit code other than 0 is no error."""

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    stopped: bool
    seconds: float

    def add_note(self, note: str) -> "CommandResult":
        separator = "\n" if self.stderr and not self.stderr.endswith("\n") else ""
        return replace(self, stderr=f"{self.stderr}{separator}[{note}]")


async def run_process(
    confinement: Confinement,
    folder: Path,
    argv: Sequence[str],
    *,
    timeout_s: int,
    stdin: bytes | None = None,
    directory: Directory | None = None,
    limits: Limits | None = None,
    stop: asyncio.Event | None = None,
    watch: Watch | None = None,
) -> CommandResult:
    """Kills all that the command started before it returns. Cancelling the caller stops the command as `stop` does."""
    stop = stop or asyncio.Event()

    async def run_to_end() -> CommandResult:
        began = time.monotonic()
        others = 0 if confinement.has_separate_count else await asyncio.to_thread(_count_account_threads)
        limited = (limits or Limits()).wrap_command(argv, timeout_s, others=others)
        with confinement.launch(folder, limited, directory) as launch:
            process = await _start(launch, stdin)
        try:
            reason = await _wait_for_end(process, timeout_s, stop, watch)
        finally:
            await process.end()
        return _create_result(process, reason, time.monotonic() - began, timeout_s)

    caller, running = asyncio.current_task(), asyncio.ensure_future(run_to_end())
    assert caller is not None
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            caller.uncancel()
            stop.set()
    return running.result()


def _create_result(process: "_Process", reason: str, seconds: float, timeout_s: int) -> CommandResult:
    exit_code, note = {
        "ended": (process.exit_code, ""),
        "time": (TIMEOUT_CODE, f"stopped at the time limit of {timeout_s} seconds"),
        "stop": (STOP_CODE, "stopped"),
    }.get(reason, (LIMIT_CODE, f"ended: {reason}"))
    result = CommandResult(
        exit_code,
        process.stdout.text(),
        process.stderr.text(),
        truncated=process.stdout.truncated or process.stderr.truncated,
        timed_out=reason == "time",
        stopped=reason == "stop",
        seconds=round(seconds, 3),
    )
    return result.add_note(note) if note else result


async def _wait_for_end(process: "_Process", timeout_s: int, stop: asyncio.Event, watch: Watch | None) -> str:
    """Returns "ended", "time", "stop", or the sentence of the watch."""
    exited, stopped = (asyncio.ensure_future(event.wait()) for event in (process.exited, stop))
    watching = asyncio.ensure_future(watch(process.id)) if watch else None
    waits = [exited, stopped, *([watching] if watching else [])]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if watching and watching.done():
            return watching.result()
        return "ended" if exited.done() else "stop" if stopped.done() else "time"
    finally:
        for wait in waits:
            wait.cancel()


async def _start(launch: Launch, stdin: bytes | None) -> "_Process":
    transport, process = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Process(ends_descendants=launch.ends_descendants),
        *launch.argv,
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        env=dict(launch.environment),
        cwd=launch.directory,
        pass_fds=launch.descriptors,
        start_new_session=True,
    )
    pipe = transport.get_pipe_transport(0)
    if stdin is not None and isinstance(pipe, asyncio.WriteTransport):
        pipe.write(stdin)
        pipe.close()
    return process


class _Process(asyncio.SubprocessProtocol):
    def __init__(self, *, ends_descendants: bool) -> None:
        self.stdout, self.stderr = Output(), Output()
        self.exited, self._closed = asyncio.Event(), asyncio.Event()
        self._ends_descendants = ends_descendants

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self.id = transport.get_pid()

    @property
    def exit_code(self) -> int:
        code = self._transport.get_returncode()
        if code is None:
            return KILLED_CODE  # it is being killed
        return code if code >= 0 else 128 - code

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.stdout if fd == 1 else self.stderr).add(data)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()

    async def end(self) -> None:
        """Kills the remaining processes and reads the rest of the output."""
        if self._ends_descendants and not self.exited.is_set():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(self.id, signal.SIGTERM)  # `terminate` would take the exit status from asyncio's own thread
            await _wait_for_event(_GRACE_SECONDS, self.exited)
        if not (self._ends_descendants and self.exited.is_set()):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
                os.killpg(self.id, signal.SIGKILL)
            await _wait_for_event(_GRACE_SECONDS, self.exited)
        await _wait_for_event(_GRACE_SECONDS, self._closed)
        self._transport.close()


async def _wait_for_event(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _count_account_threads() -> int | None:
    """Returns the number of the account's threads, which the kernel limits, or None if unknown."""
    if sys.platform != "linux":
        return None
    account, threads = os.getuid(), 0
    with os.scandir("/proc") as found:
        for entry in found:
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # it has ended
                    if entry.stat().st_uid == account:
                        threads += len(os.listdir(f"/proc/{entry.name}/task"))
    return threads
