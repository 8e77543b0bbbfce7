"""The processes of a service: one is this process; several are started, replaced when they die, and ended together."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NoReturn

from common.workers.restarts import Restarts, ending

logger = logging.getLogger(__name__)

Work = Callable[[socket.socket, Callable[[], None]], None]
"""Serves on the socket until SIGTERM or SIGINT, and calls the function once it does; can be pickled."""

# A fork shares the memory of what was imported, and starts at once; macOS' own libraries do not survive one.
_PROCESSES = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS = 0.1
_ASK_AGAIN_SECONDS = 1.0
_RAISE_AGAIN_SECONDS = 0.01


def run(
    work: Work,
    listener: socket.socket,
    *,
    count: int,
    grace_seconds: float,
    on_ready: Callable[[], None],
    restarts: Callable[[], Restarts] = Restarts,
) -> int:
    """Serve on the socket in so many processes until SIGTERM or SIGINT; returns the exit status."""
    if count == 1:
        _exit_on_signals()
        work(listener, on_ready)
        return 0
    start = partial(_work, work, listener, os.getpid())
    return _Supervisor(start, count, on_ready, restarts).run(listener, grace_seconds)


@dataclass(eq=False)
class _Worker:
    slot: int
    process: BaseProcess
    news: Connection  # says once that it serves
    ready_at: float | None = None


class _Supervisor:
    def __init__(
        self,
        work: Callable[[float, Connection], None],
        count: int,
        on_ready: Callable[[], None],
        restarts: Callable[[], Restarts],
    ) -> None:
        self._work = work
        self._count = count
        self._on_ready = on_ready
        self._workers: list[_Worker] = []
        self._restarts = [restarts() for _ in range(count)]
        self._pauses = [0.0] * count
        self._serving = False
        self._stop_wanted = False

    def run(self, listener: socket.socket, grace_seconds: float) -> int:
        for number in _STOP_SIGNALS:
            signal.signal(number, self._want_stop)
        status = None
        try:
            while status is None and not self._stop_wanted:
                self._start_missing()
                wait([each for worker in self._workers for each in _watched(worker)], timeout=_LOOK_SECONDS)
                status = self._look()
        finally:
            listener.close()
            self._stop(grace_seconds)
        return status or 0

    def _want_stop(self, *_: object) -> None:
        self._stop_wanted = True

    def _start_missing(self) -> None:
        """One alone at first: what keeps it from starting keeps all of them, and is said once."""
        taken = {worker.slot for worker in self._workers}
        for slot in set(range(self._count if self._serving else 1)) - taken:
            mine, theirs = _PROCESSES.Pipe(duplex=False)
            process = _PROCESSES.Process(target=self._work, args=(self._pauses[slot], theirs))
            process.start()
            theirs.close()
            self._workers.append(_Worker(slot, process, mine))

    def _look(self) -> int | None:
        """Notice who serves now and who has ended; returns the exit status once it is no use to go on."""
        for worker in self._workers.copy():
            if worker.ready_at is None and worker.news.poll() and _says_ready(worker.news):
                worker.ready_at = time.monotonic()
                logger.info("worker %s serves", worker.process.pid)
                if not self._serving:
                    self._serving = True
                    self._on_ready()
            if (code := worker.process.exitcode) is not None:
                self._workers.remove(worker)
                worker.news.close()
                if (status := self._about_end(worker, code)) is not None:
                    return status
        return None

    def _about_end(self, worker: _Worker, code: int) -> int | None:
        if worker.ready_at is None and code > 0:  # it gave up by itself and has said why: so would the next one
            return code
        logger.warning("worker %s %s", worker.process.pid, ending(code))
        served = 0.0 if worker.ready_at is None else time.monotonic() - worker.ready_at
        restarts = self._restarts[worker.slot]
        pause = restarts.after_death(served) if self._serving else None
        if pause is None:
            if self._serving:
                logger.error("workers died %d times within a short time: the service stops", restarts.deaths)
            return 1
        self._pauses[worker.slot] = pause
        return None

    def _stop(self, grace_seconds: float) -> None:
        deadline = time.monotonic() + grace_seconds
        while living := [worker.process for worker in self._workers if worker.process.is_alive()]:
            if time.monotonic() > deadline:
                logger.warning("%d workers did not stop within %g seconds and are killed", len(living), grace_seconds)
                for process in living:
                    process.kill()
                    process.join()
                return
            # Again and again: one that was just forked may not have heard it.
            for process in living:
                process.terminate()
            asked = time.monotonic()
            while time.monotonic() < asked + _ASK_AGAIN_SECONDS and any(process.is_alive() for process in living):
                wait([process.sentinel for process in living if process.is_alive()], timeout=_LOOK_SECONDS)


def _watched(worker: _Worker) -> list[Connection | int]:
    return [worker.process.sentinel, *([worker.news] if worker.ready_at is None else [])]


def _says_ready(news: Connection) -> bool:
    with suppress(EOFError):
        return news.recv()
    return False


def _work(
    work: Work,
    listener: socket.socket,
    supervisor: int,
    pause: float,
    news: Connection,
) -> None:
    """In a process of its own."""
    _exit_on_signals()
    threading.Thread(target=_end_with, args=(supervisor,), daemon=True).start()
    time.sleep(pause)
    work(listener, partial(news.send, True))


class _Stop(SystemExit):
    """Raised by a signal's handler, wherever the process then is."""


def _exit_on_signals() -> None:
    """What uvicorn leads to in the end: it stops gracefully on both signals, then raises them again."""
    for number in _STOP_SIGNALS:
        signal.signal(number, _exit)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
    sys.unraisablehook = _raise_again


def _exit(*_: object) -> NoReturn:
    for number in _STOP_SIGNALS:  # asked again, it would leave the event loop before the loop's threads have ended
        signal.signal(number, signal.SIG_IGN)
    raise _Stop(0)


def _raise_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Python drops what is raised in a weakref's callback or a finalizer: the stop comes again, when that is over."""
    if not isinstance(unraisable.exc_value, _Stop):
        sys.__unraisablehook__(unraisable)
        return
    _exit_on_signals()
    signal.setitimer(signal.ITIMER_REAL, _RAISE_AGAIN_SECONDS)


def _end_with(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
