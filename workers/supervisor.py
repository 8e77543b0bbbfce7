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

logger = logging.getLogger(__name__)

Work = Callable[[socket.socket, Callable[[], None]], None]
"""Serves on the socket until SIGTERM or SIGINT, and calls the function once it does; can be pickled."""

# A fork shares the memory of what was imported, and starts at once; macOS' own libraries do not survive one.
_PROCESSES = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS = 0.1
_ASK_AGAIN_SECONDS = 1.0


def run(work: Work, listener: socket.socket, *, count: int, grace_seconds: float, on_ready: Callable[[], None]) -> int:
    """Serve on the socket in so many processes until SIGTERM or SIGINT; returns the exit status."""
    if count == 1:
        _exit_on_signals()
        work(listener, on_ready)
        return 0
    return _Supervisor(partial(_work, work, listener, os.getpid()), count, on_ready).run(listener, grace_seconds)


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    news: Connection  # says once that it serves
    ready: bool = False


class _Supervisor:
    def __init__(self, work: Callable[[Connection], None], count: int, on_ready: Callable[[], None]) -> None:
        self._work = work
        self._count = count
        self._on_ready = on_ready
        self._workers: list[_Worker] = []
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
        while len(self._workers) < (self._count if self._serving else 1):
            mine, theirs = _PROCESSES.Pipe(duplex=False)
            process = _PROCESSES.Process(target=self._work, args=(theirs,))
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, mine))

    def _look(self) -> int | None:
        """Notice who serves now and who has ended; returns the exit status once it is no use to go on."""
        for worker in self._workers.copy():
            if not worker.ready and worker.news.poll() and _says_ready(worker.news):
                worker.ready = True
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
        if not worker.ready and code >= 0:  # it gave up by itself and has said why: so would the next one
            return code or 1
        logger.warning("worker %s %s", worker.process.pid, _ending(code))
        return None if self._serving else 1

    def _stop(self, grace_seconds: float) -> None:
        deadline = time.monotonic() + grace_seconds
        while living := [worker.process for worker in self._workers if worker.process.is_alive()]:
            if time.monotonic() > deadline:
                logger.warning("%d workers did not end in %g seconds and are killed", len(living), grace_seconds)
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


def _ending(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _watched(worker: _Worker) -> list[Connection | int]:
    return [worker.process.sentinel] if worker.ready else [worker.process.sentinel, worker.news]


def _says_ready(news: Connection) -> bool:
    with suppress(EOFError):
        return news.recv()
    return False


def _work(work: Work, listener: socket.socket, supervisor: int, news: Connection) -> None:
    """In a process of its own."""
    _exit_on_signals()
    threading.Thread(target=_end_with, args=(supervisor,), daemon=True).start()
    work(listener, partial(news.send, True))


def _exit_on_signals() -> None:
    """What uvicorn leads to in the end: it stops gracefully on both signals, then raises them again."""
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: sys.exit(0))


def _end_with(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
