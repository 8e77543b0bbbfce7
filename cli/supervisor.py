import contextlib
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from cli import terminal
from cli.errors import CliError
from cli.keeper import Keeper
from cli.processes import die_with_parent, fresh_log, last_lines
from cli.signals import Signals

READY_SECONDS = 90
STOP_SECONDS = 30
PROBE_SECONDS = 5
PROBE_EVERY = 0.05


class StopWanted(Exception):
    """Ctrl-C or SIGTERM."""


@dataclass(frozen=True)
class Service:
    """A process and how one knows that it is ready: by an address that answers 200, or by its end."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    port: int | None = None
    ready_path: str = "/ready"
    note: str = ""


@dataclass
class Child:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    service: Service | None = None
    ready: bool = False
    answer: str = ""
    follower: TextIO | None = field(default=None, repr=False)


class Supervisor:
    """Starts services, notices the death of any, and stops them in the order in which they were started."""

    def __init__(self, logs: Path, signals: Signals, keeper: Keeper, *, cwd: Path, verbose: bool = False) -> None:
        self._logs = logs
        self._signals = signals
        self._keeper = keeper
        self._cwd = cwd
        self._verbose = verbose
        self._children: list[Child] = []

    def start(self, service: Service) -> None:
        terminal.starting(service.name)
        log = fresh_log(self._logs / f"{service.name.lower().replace(' ', '-')}.log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                service.command,
                cwd=self._cwd,
                env=service.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self._keeper.watch(process.pid)
        self._children.append(Child(service.name, process, log, service))

    def adopt(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        """Notice the death of a process that somebody else starts and stops."""
        self._children.append(Child(name, process, log, ready=True))

    def wait_until_ready(self) -> dict[str, str]:
        """What each service answered, by its name."""
        began = time.monotonic()
        while waiting := [child for child in self._children if not child.ready]:
            self._check()
            for child in waiting:
                if self._is_ready(child):
                    child.ready = True
                    terminal.ready(child.name, child.service.note if child.service else "")
                    if _ends_by_itself(child):
                        self._drop(child)
            if time.monotonic() - began > READY_SECONDS:
                late = next(child for child in waiting if not child.ready)
                raise CliError(f"{late.name} is not ready after {READY_SECONDS} seconds: {_about(late)}")
            self._signals.wait(PROBE_EVERY)
        return {child.name: child.answer for child in self._children}

    def watch(self) -> None:
        """Until a stop is wanted or something dies: it ends by an exception."""
        while True:
            self._check()
            self._signals.wait(0.2 if self._verbose else None)

    def stop(self) -> None:
        """In order; a second request to stop, or too long a wait, gets a service killed."""
        for child in self._children.copy():
            if child.service:
                self._end(child)
                self._drop(child)

    def _end(self, child: Child) -> None:
        asked = max(self._signals.stops_wanted, 1)
        deadline = time.monotonic() + STOP_SECONDS
        child.process.terminate()
        while child.process.poll() is None:
            if time.monotonic() > deadline or self._signals.stops_wanted > asked:
                child.process.kill()
                child.process.wait()
            else:
                self._signals.wait(0.1)

    def _drop(self, child: Child) -> None:
        """At once when it has ended: later its process id may be somebody else's."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGKILL)  # what it left behind
        self._keeper.release(child.process.pid)
        self._follow()
        if child.follower:
            child.follower.close()
        self._children.remove(child)

    def _check(self) -> None:
        self._follow()
        if self._signals.stops_wanted:
            raise StopWanted
        for child in self._children:
            code = child.process.poll()
            if code is not None and not (_ends_by_itself(child) and code == 0):
                raise CliError(f"{child.name} {_ending(code)}; {_about(child)}")

    def _is_ready(self, child: Child) -> bool:
        if child.service is None or child.service.port is None:
            return child.process.poll() == 0
        status, child.answer = _get(child.service.port, child.service.ready_path)
        return status == http.client.OK

    def _follow(self) -> None:
        """Shows what was logged since the last time."""
        if not self._verbose:
            return
        for child in self._children:
            if child.follower is None:
                child.follower = child.log.open(errors="replace")
            for line in child.follower:
                terminal.log_line(child.name, line.rstrip("\n"))


def _ends_by_itself(child: Child) -> bool:
    return child.service is not None and child.service.port is None


def _ending(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _about(child: Child) -> str:
    answer = f"it answers {child.answer}; " if child.answer and not child.ready else ""
    return f"{answer}the end of {child.log}:\n{last_lines(child.log)}"


def _get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(10_000).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()
