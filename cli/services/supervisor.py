import contextlib
import functools
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cli import terminal
from cli.errors import CliError
from cli.processes.children import die_with_parent, fresh_log
from cli.processes.keeper import Keeper
from cli.processes.signals import Signals
from cli.services import parts, probe
from cli.services.parts import Child, Service
from common.workers.restarts import Restarts, ending

READY_SECONDS = 90
STOP_SECONDS = 30
PROBE_EVERY = 0.05
FOLLOW_EVERY = 0.2


class StopWanted(Exception):
    """Ctrl-C or SIGTERM."""


class Supervisor:
    """Starts services, starts again what dies, and stops them in the order in which they were started.

    `lock` is a descriptor that the services inherit. `changed` is called with all parts when one started or died.
    """

    def __init__(
        self,
        logs: Path,
        signals: Signals,
        keeper: Keeper,
        *,
        cwd: Path,
        verbose: bool = False,
        lock: int | None = None,
        restarts: Callable[[], Restarts] = Restarts,
        changed: Callable[[Sequence[Child]], None] = lambda _: None,
    ) -> None:
        self._logs = logs
        self._signals = signals
        self._keeper = keeper
        self._cwd = cwd
        self._verbose = verbose
        self._inherited = () if lock is None else (lock,)
        self._restarts = restarts
        self._changed = changed
        self._children: list[Child] = []

    def start(self, service: Service) -> None:
        terminal.starting(service.name)
        log = fresh_log(self._logs / f"{service.name.lower().replace(' ', '-')}.log")
        spawn = functools.partial(self._spawn, service, log)
        self._children.append(Child(service.name, spawn(), log, spawn, self._restarts(), service))
        self._changed(self._children)

    def adopt(
        self, name: str, process: subprocess.Popen[bytes], log: Path, start: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        """Look after a process that somebody else starts, with `start` after its death, and stops."""
        child = Child(name, process, log, start, self._restarts(), ready=True, was_ready=True)
        child.ready_at = time.monotonic()
        self._children.append(child)
        self._changed(self._children)

    def wait_until_ready(self) -> dict[str, str]:
        """What each service answered, by its name."""
        began = time.monotonic()
        while late := [child for child in self._children if not child.ready]:
            self._look()
            if any(child.ends_by_itself for child in late):  # migrations take as long as there is data
                began = time.monotonic()
            if time.monotonic() - began > READY_SECONDS:
                raise CliError(f"{late[0].name} is not ready after {READY_SECONDS} seconds: {parts.about(late[0])}")
            self._signals.wait(PROBE_EVERY)
        return {child.name: child.answer for child in self._children}

    def watch(self) -> None:
        """Until a stop is wanted, or something cannot be kept running: it ends by an exception."""
        while True:
            self._look()
            self._signals.wait(self._pause())

    def stop(self) -> None:
        """In order; a second request to stop, or too long a wait, gets a service killed."""
        for child in self._children.copy():
            if child.service:
                self._end(child)
                self._drop(child)

    def _pause(self) -> float | None:
        """Until something has to be looked at again."""
        pauses = [child.next_start - time.monotonic() for child in self._children if child.next_start is not None]
        if any(not child.ready and child.next_start is None for child in self._children):
            pauses.append(PROBE_EVERY)
        if self._verbose:
            pauses.append(FOLLOW_EVERY)
        return max(0.0, min(pauses)) if pauses else None

    def _look(self) -> None:
        self._follow()
        if self._signals.stops_wanted:
            raise StopWanted
        for child in self._children.copy():
            if child.next_start is not None:
                if time.monotonic() >= child.next_start:
                    self._start_again(child)
                continue
            code = child.process.poll()
            if code is not None and not (child.ends_by_itself and code == 0):
                self._after_death(child, code)
            elif not child.ready and self._is_ready(child):
                self._note_ready(child)

    def _note_ready(self, child: Child) -> None:
        assert child.service
        terminal.ready(child.name, "again" if child.was_ready else child.service.note)
        child.ready = child.was_ready = True
        child.ready_at = time.monotonic()
        if child.ends_by_itself:
            self._drop(child)
        self._changed(self._children)

    def _after_death(self, child: Child, code: int) -> None:
        """Plans the next start, or gives up: what ends by itself before it was ever ready has said why."""
        served = time.monotonic() - child.ready_at if child.ready else 0.0
        self._clear_away(child)
        hopeless = code == os.EX_CONFIG or (code > 0 and not child.was_ready)
        pause = None if hopeless else child.restarts.after_death(served)
        if pause is None:
            times = (
                "" if hopeless else f" for the {child.restarts.deaths}th time within a short time, and is not restarted"
            )
            raise CliError(f"{child.name} {ending(code)}{times}; {parts.about(child)}")
        when = f"in {pause:g} s" if pause else "now"
        terminal.died(child.name, f"{ending(code)}; it restarts {when} (log: {child.log})")
        child.ready = False
        child.next_start = time.monotonic() + pause
        self._changed(self._children)

    def _start_again(self, child: Child) -> None:
        child.process = child.start()
        child.next_start, child.answer = None, ""
        child.since = time.time()
        if child.service is None:
            child.ready, child.ready_at = True, time.monotonic()
            terminal.ready(child.name, "again")
        self._changed(self._children)

    def _spawn(self, service: Service, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*service.command],
                cwd=self._cwd,
                env=service.environment,
                stdin=subprocess.DEVNULL,
                stdout=None if service.shows_output else output,
                stderr=output,
                start_new_session=True,
                pass_fds=self._inherited,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self._keeper.watch(process.pid)
        return process

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
        self._clear_away(child)
        self._follow()
        if child.follower:
            child.follower.close()
        self._children.remove(child)

    def _clear_away(self, child: Child) -> None:
        """What a service left behind; once for each death, at once: later its process id may be somebody else's."""
        if child.service is None or child.next_start is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGKILL)
        self._keeper.release(child.process.pid)

    def _is_ready(self, child: Child) -> bool:
        if child.service is None or child.service.port is None:
            return child.process.poll() == 0
        status, child.answer = probe.get(child.service.port, child.service.ready_path)
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
