"""Runs services and other programs as processes that tests can stop, kill and restart."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2

from cli.processes.children import die_with_parent
from tests.conftest import ROOT, find_free_port
from tests.waiting import WAIT_SECONDS

POOLED = ("LISTEN_DATABASE_URL", "DATABASE_PREPARED")  # with --pooled
INHERITED = (*POOLED, "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
# A busy machine delays the event loop of every service.
PATIENT_SETTINGS = {"LIMIT_LAG_SECONDS": "60"}


class Program:
    """A process that logs to a file, and ends with the tests at the latest."""

    def __init__(self, log: Path) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._log = log

    def launch(self, command: Sequence[str], **options: Any) -> None:
        kill = die_with_parent(signal.SIGKILL)
        with self._log.open("ab") as log:
            self.process = subprocess.Popen[bytes](command, stdout=log, stderr=log, preexec_fn=kill, **options)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits for the condition; fails if the program ends before, or after `WAIT_SECONDS`."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            assert self.is_running, f"{self._log}: it ended:\n{self.log_text[-2000:]}"
            if condition():
                return
            assert time.monotonic() < deadline, f"{self._log}: it is not ready:\n{self.log_text[-2000:]}"
            time.sleep(0.02)

    def send(self, request: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(request)

    def end(self, request: signal.Signals = signal.SIGTERM, *, timeout: float = WAIT_SECONDS) -> int:
        """Sends the signal, waits for the end, and returns the exit status; 0 if it was never started."""
        if self.process is None:
            return 0
        self.process.send_signal(request)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log_text(self) -> str:
        return self._log.read_text(errors="replace")


class ServiceProcess(Program):
    """Runs `python -m MODULE [ARGUMENT…]` on a port that stays the same over restarts."""

    def __init__(self, module: str, port_variable: str, log: Path, *arguments: str, **environment: str) -> None:
        super().__init__(log)
        self.module = module
        self.directory = ROOT
        self._arguments = arguments
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.environment = {**inherited, **PATIENT_SETTINGS, **environment, port_variable: str(self.port)}

    def start(self) -> None:
        self.launch([sys.executable, "-m", self.module, *self._arguments], cwd=self.directory, env=self.environment)

    def wait_until_ready(self, *, path: str = "/ready") -> None:
        self.wait_until(lambda: self._listens and self._answers(path))

    @property
    def _listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(2)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _answers(self, path: str) -> bool:
        try:
            return httpx2.get(self.url + path, timeout=30, trust_env=False, verify=False).status_code == 200
        except httpx2.TransportError:
            return False

    def wait_until_all_serve(self, count: int) -> None:
        """Waits until all workers listen: the service is ready with the first of them."""
        self.wait_until(lambda: len(self.workers) == count and self._listening_workers.issuperset(self.workers))

    def find_socket(self, client_port: int) -> str | None:
        """Returns the link in /proc of the service's end of a connection, if it has not closed it (Linux only)."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, *_, inode = line.split()[:10]
            if (int(local.split(":")[1], 16), int(remote.split(":")[1], 16)) == (self.port, client_port):
                return f"socket:[{inode}]"
        return None

    def has_open(self, link: str | None) -> bool:
        assert self.process is not None
        return link in {_read_link_if_there(path) for path in Path(f"/proc/{self.process.pid}/fd").iterdir()}

    @property
    def workers(self) -> list[int]:
        """The process ids of the workers of a service with several (Linux only)."""
        assert self.process is not None
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        commands = {int(child): Path(f"/proc/{child}/cmdline") for child in children}
        return [child for child, command in commands.items() if b"spawn_main" in _read_if_there(command)]

    @property
    def _listening_workers(self) -> set[int]:
        return {int(pid) for pid in re.findall(r"listens on \S+ \(process (\d+)\)", self.log_text)}


def _read_if_there(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _read_link_if_there(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def run_service(service: ServiceProcess, path: str = "/ready") -> Iterator[ServiceProcess]:
    """Runs the service during a fixture."""
    service.start()
    try:
        service.wait_until_ready(path=path)
        yield service
    finally:
        service.end()


def run(service: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A service, or one of its commands, that ends by itself."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    command = [sys.executable, "-m", service, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=inherited | settings, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
