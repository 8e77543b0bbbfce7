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
from cli.processes.children import Reaper, die_with_parent, fresh_log
from cli.processes.signals import Signals
from cli.services import parts, running
from cli.services.parts import Child, Restarts, Service, describe_end

READY_SECONDS = 90
LOOK_SECONDS = 5.0
STOP_SECONDS = 30
PROBE_EVERY = 0.05


class StopWanted(Exception):
    """Ctrl-C or SIGTERM."""


class Supervisor:
    """Starts services, starts again what dies, and stops them in the order in which they were started.

    A part that cannot be started ends the first start, if the others need it. After that nothing does: a part that
    keeps dying is reported and tried again slowly, and the rest keeps running. `lock` is a descriptor that the services
    inherit. `changed` is called often, with all parts.
    """

    def __init__(
        self,
        logs: Path,
        signals: Signals,
        reaper: Reaper,
        *,
        cwd: Path,
        lock: int | None = None,
        restarts: Callable[[], Restarts] = Restarts,
        changed: Callable[[Sequence[Child]], None] = lambda _: None,
    ) -> None:
        self._logs = logs
        self._signals = signals
        self._reaper = reaper
        self._cwd = cwd
        self._inherited = () if lock is None else (lock,)
        self._restarts = restarts
        self._changed = changed
        self._children: list[Child] = []
        self._is_starting = True

    def start(self, service: Service) -> None:
        terminal.starting(service.name)
        log = fresh_log(self._logs / f"{service.name.lower().replace(' ', '-')}.log")
        spawn = functools.partial(self._spawn, service, log)
        self._children.append(Child(service.name, spawn(), log, spawn, self._restarts(), service))

    def adopt(
        self, name: str, process: subprocess.Popen[bytes], log: Path, start: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        """Look after a process that somebody else starts, with `start` after its death, and stops."""
        child = Child(name, process, log, start, self._restarts(), ready=True, was_ready=True)
        child.ready_at = time.monotonic()
        self._children.append(child)

    def wait_until_ready(self) -> dict[str, str]:
        """What each service that is ready answered, by its name. Raises `CliError` if one that is needed is not."""
        began = time.monotonic()
        while late := [child for child in self._children if not child.ready and not child.restarts.is_slow]:
            self._look()
            if any(child.ends_by_itself for child in late):  # migrations take as long as there is data
                began = time.monotonic()
            if time.monotonic() - began > READY_SECONDS:
                note = f"is not ready after {READY_SECONDS} seconds: {parts.describe(late[0])}"
                if not all(child.is_optional for child in late):
                    raise CliError(f"{late[0].name} {note}")
                terminal.died(late[0].name, note)
                break
            self._signals.wait(PROBE_EVERY)
        self._is_starting = False
        return {child.name: child.answer for child in self._children if child.ready}

    def watch(self) -> None:
        while True:
            self._look()
            self._signals.wait(self._pause())

    def stop(self) -> None:
        """In order; a second request to stop, or too long a wait, gets a service killed."""
        for child in self._children.copy():
            if child.service:
                self._end(child)
                self._drop(child)

    def _pause(self) -> float:
        pauses = [LOOK_SECONDS]
        for child in self._children:
            if child.next_start is not None:
                pauses.append(max(0.0, child.next_start - time.monotonic()))
            elif not child.ready:  # one that takes long is asked less often
                pauses.append(max(PROBE_EVERY, (time.time() - child.since) / 20))
        return min(pauses)

    def _look(self) -> None:
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
        self._changed(self._children)

    def _note_ready(self, child: Child) -> None:
        assert child.service
        terminal.ready(child.name, "again" if child.was_ready else child.service.note)
        child.ready = child.was_ready = True
        child.ready_at = time.monotonic()
        if child.ends_by_itself:
            self._drop(child)

    def _after_death(self, child: Child, code: int) -> None:
        self._clear_away(child)
        is_error = code == os.EX_CONFIG or (code > 0 and not child.is_optional)
        if self._is_starting and is_error and not child.was_ready:
            raise CliError(f"{child.name} {describe_end(code)}; {parts.describe(child)}")
        self._plan_start(child, describe_end(code))

    def _plan_start(self, child: Child, death: str) -> None:
        was_slow = child.restarts.is_slow
        pause = child.restarts.after_death(time.monotonic() - child.ready_at if child.ready else 0.0)
        child.ready = False
        child.next_start = time.monotonic() + pause
        if not child.restarts.is_slow:
            when = f"in {pause:g} s" if pause else "now"
            terminal.died(child.name, f"{death.rstrip('.')}; it restarts {when} (log: {child.log})")
            return
        note = f"{death.rstrip('.')}, for the {child.restarts.deaths}th time within a short time"
        if self._is_starting and not child.is_optional:
            raise CliError(f"{child.name} {note}; {parts.describe(child)}")
        if not was_slow:
            terminal.died(child.name, f"{note}. It is tried again every {pause:g} s; {parts.describe(child)}")

    def _start_again(self, child: Child) -> None:
        try:
            child.process = child.start()
        except (CliError, OSError, subprocess.SubprocessError) as error:
            reason = str(error).partition("; the end of ")[0]  # the log's end is reported once, at last
            self._plan_start(child, f"could not be started: {reason}")
            return
        child.next_start, child.answer = None, ""
        child.since = time.time()
        if child.service is None:
            child.ready, child.ready_at = True, time.monotonic()
            terminal.ready(child.name, "again")

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
        self._reaper.watch(process.pid)
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
        self._children.remove(child)

    def _clear_away(self, child: Child) -> None:
        """What a service left behind; once for each death, at once: later its process id may be somebody else's."""
        if child.service is None or child.next_start is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGKILL)
        self._reaper.release(child.process.pid)

    def _is_ready(self, child: Child) -> bool:
        if child.service is None or child.service.port is None:
            return child.process.poll() == 0
        status, child.answer = running.probe(child.service.port, child.service.ready_path)
        return status == http.client.OK
