import asyncio
import contextlib
import functools
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError, SettingsError
from cli.processes.children import Reaper, create_log, die_with_parent, rotate_large_logs
from cli.services import parts, running
from cli.services.parts import Restarts, RunningPart, Service, describe_end
from cli.services.running import StatusFile

READY_SECONDS = 90
LOOK_SECONDS = 0.2
STOP_SECONDS = 30
PROBE_SECONDS, MAX_PROBE_SECONDS = 0.05, 1.0


class StopWanted(Exception):
    """Ctrl-C or SIGTERM."""


class Supervisor:
    """Starts services, starts again what dies, and stops them in the order in which they were started.

    A part that cannot be started ends the first start, if the others need it. After that nothing does: a part that
    keeps dying is reported and tried again slowly, and the rest keeps running. `lock` is a descriptor that the services
    inherit.
    """

    def __init__(
        self,
        logs: Path,
        reaper: Reaper,
        status: StatusFile,
        *,
        lock: int | None = None,
        restarts: Callable[[], Restarts] = Restarts,
    ) -> None:
        self._logs = logs
        self._reaper = reaper
        self._status = status
        self._inherited = () if lock is None else (lock,)
        self._restarts = restarts
        self._parts: list[RunningPart] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_starting = True
        self._stops_wanted = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._request_stop)

    def start(self, service: Service) -> None:
        terminal.starting(service.name)
        log = create_log(self._logs / f"{service.name.lower().replace(' ', '-')}.log")
        spawn = functools.partial(self._spawn, service, log)
        self._add(RunningPart(service.name, log, spawn, self._restarts(), service))

    def adopt(
        self, name: str, process: subprocess.Popen[bytes], log: Path, start: Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        """Starts again, when it dies, what runs already and is stopped by somebody else, after all others."""
        self._add(
            RunningPart(name, log, start, self._restarts(), process=process, ready_at=time.monotonic(), was_ready=True)
        )

    async def wait_until_ready(self) -> dict[str, str]:
        """What each service that is ready answered, by its name. Raises `CliError` if one that is needed is not."""
        began = time.monotonic()
        while late := [part for part in self._parts if part.ready_at is None and not part.restarts.is_slow]:
            self._check()
            if any(part.ends_by_itself for part in late):  # migrations take as long as there is data
                began = time.monotonic()
            if time.monotonic() - began > READY_SECONDS:
                note = f"is not ready after {READY_SECONDS} seconds: {parts.describe(late[0])}"
                if not all(part.is_optional for part in late):
                    raise CliError(f"{late[0].name} {note}")
                terminal.died(late[0].name, note)
                break
            await asyncio.sleep(PROBE_SECONDS)
        self._check()
        self._is_starting = False
        return {part.name: part.answer for part in self._parts if part.ready_at is not None}

    async def watch(self) -> NoReturn:
        """Raises `StopWanted` when it is time to stop."""
        while True:
            self._check()
            await asyncio.sleep(LOOK_SECONDS)

    async def stop(self) -> None:
        """In order; a second request to stop, or too long a wait, gets a service killed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in self._parts:
            if part.service and part.process:
                await self._end(part, part.process)

    def _request_stop(self) -> None:
        self._stops_wanted += 1

    def _check(self) -> None:
        """Rotates logs. Raises `StopWanted`, and the error of a part that cannot be started."""
        rotate_large_logs(self._logs)
        if self._stops_wanted:
            raise StopWanted
        for task in self._tasks:
            if task.done():
                task.result()
        self._status.update(self._parts)

    def _add(self, part: RunningPart) -> None:
        self._parts.append(part)
        self._tasks.append(asyncio.create_task(self._keep_running(part)))

    async def _keep_running(self, part: RunningPart) -> None:
        while True:
            try:
                part.process = part.process or part.start()
            except (CliError, OSError, subprocess.SubprocessError) as error:
                reason = str(error).partition("; the end of ")[0]  # the log's end is reported once, at last
                pause = self._report_death(part, f"could not be started: {reason}")
            else:
                part.since, part.answer = time.time(), ""
                code = await self._wait_for_end(part, part.process)
                self._clear_away(part, part.process)
                if part.ends_by_itself and code == 0:
                    self._parts.remove(part)
                    terminal.ready(part.name)
                    return
                is_error = code == os.EX_CONFIG or (code > 0 and not part.is_optional)
                if self._is_starting and is_error and not part.was_ready:
                    kind = SettingsError if code == os.EX_CONFIG else CliError
                    raise kind(f"{part.name} {describe_end(code)}; {parts.describe(part)}")
                pause = self._report_death(part, describe_end(code))
            part.process = part.ready_at = None
            await asyncio.sleep(pause)

    async def _wait_for_end(self, part: RunningPart, process: subprocess.Popen[bytes]) -> int:
        while (code := process.poll()) is None:
            if part.ready_at is None and _is_ready(part):
                terminal.ready(part.name, part.service.note if part.service and not part.was_ready else "again")
                part.ready_at, part.was_ready = time.monotonic(), True
            pause = LOOK_SECONDS
            if part.ready_at is None:  # one that takes long is asked less often
                pause = min(max(PROBE_SECONDS, (time.time() - part.since) / 20), MAX_PROBE_SECONDS)
            await asyncio.sleep(pause)
        return code

    def _report_death(self, part: RunningPart, death: str) -> float:
        """Returns the seconds until the next start."""
        restarts, was_slow = part.restarts, part.restarts.is_slow
        pause = restarts.after_death(0.0 if part.ready_at is None else time.monotonic() - part.ready_at)
        if not restarts.is_slow:
            when = f"in {pause:g} s" if pause else "now"
            terminal.died(part.name, f"{death.rstrip('.')}; it restarts {when} (log: {part.log})")
            return pause
        note = f"{death.rstrip('.')}, for the {restarts.deaths}th time within a short time"
        if self._is_starting and not part.is_optional:
            raise CliError(f"{part.name} {note}; {parts.describe(part)}")
        if not was_slow:
            terminal.died(part.name, f"{note}. It is tried again every {pause:g} s; {parts.describe(part)}")
        return pause

    def _spawn(self, service: Service, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*service.command],
                cwd=CHECKOUT,
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

    async def _end(self, part: RunningPart, process: subprocess.Popen[bytes]) -> None:
        asked = max(self._stops_wanted, 1)
        deadline = time.monotonic() + STOP_SECONDS
        process.terminate()
        while process.poll() is None:
            if time.monotonic() > deadline or self._stops_wanted > asked:
                process.kill()
            await asyncio.sleep(PROBE_SECONDS)
        self._clear_away(part, process)

    def _clear_away(self, part: RunningPart, process: subprocess.Popen[bytes]) -> None:
        """What a service left behind, at once: later its process id may be somebody else's."""
        if part.service is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            self._reaper.release(process.pid)


def _is_ready(part: RunningPart) -> bool:
    if part.service is None:
        return True
    if part.service.port is None:
        return False
    status, part.answer = running.probe(part.service.port, part.service.ready_path)
    return status == http.client.OK
