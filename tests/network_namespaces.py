"""Two machines of a local network, as network namespaces that a virtual cable joins (Linux, as root)."""

import ctypes
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_LISTENS = "0A"  # the state of a socket, in /proc/net/tcp


@dataclass(frozen=True)
class Machine:
    namespace: str
    address: str

    @property
    def enter(self) -> list[str]:
        """What comes before a command that runs there."""
        return ["ip", "netns", "exec", self.namespace]

    def add_address(self, address: str) -> None:
        _run("-n", self.namespace, "address", "add", f"{address}/24", "dev", "eth0")

    def connect(self, host: str, port: int, *, source: str = "") -> socket.socket:
        """Returns a connection from there, from one of its addresses. Raises `OSError`."""
        return self._make(lambda: socket.create_connection((host, port), timeout=30, source_address=(source, 0)))

    def listen(self, host: str, port: int) -> socket.socket:
        """Returns a socket that listens there."""
        return self._make(lambda: socket.create_server((host, port)))

    def _make(self, create: Callable[[], socket.socket]) -> socket.socket:
        """Creates a socket there, in a thread, as a thread has a namespace of its own."""
        made: list[socket.socket | OSError] = []

        def run() -> None:
            try:
                with Path(f"/run/netns/{self.namespace}").open() as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                made.append(create())
            except OSError as error:
                made.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    def list_listening(self) -> set[tuple[str, int]]:
        """Returns the addresses and ports at which programs there accept connections (TCP)."""
        found = set[tuple[str, int]]()
        for version in ("tcp", "tcp6"):
            command = [*self.enter, "cat", f"/proc/self/net/{version}"]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[1:]
            for local, state in ((line.split()[1], line.split()[3]) for line in lines):
                if state == _LISTENS:
                    host, _, port = local.partition(":")
                    found.add((_read_address(host), int(port, 16)))
        return found


def _read_address(text: str) -> str:
    """Reads an address of /proc/net/tcp, which has words of four bytes in the order of the machine."""
    words = [int(text[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(text), 8)]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))


def is_possible() -> bool:
    """Whether this machine lets us make network namespaces."""
    if os.geteuid() != 0:
        return False
    try:
        with _add_namespace("probe"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def local_network() -> Iterator[tuple[Machine, Machine]]:
    """Yields two machines at 10.77.0.1 and 10.77.0.2, which reach each other and nothing else."""
    with _add_namespace("computer") as one, _add_namespace("phone") as other:
        machines = Machine(one, "10.77.0.1"), Machine(other, "10.77.0.2")
        _run("link", "add", "eth0", "netns", one, "type", "veth", "peer", "name", "eth0", "netns", other)
        for machine in machines:
            inside = "-n", machine.namespace
            machine.add_address(machine.address)
            for device in ("lo", "eth0"):
                _run(*inside, "link", "set", device, "up")
        yield machines


@contextmanager
def _add_namespace(name: str) -> Iterator[str]:
    name = f"todo-{name}-{secrets.token_hex(3)}"
    _run("netns", "add", name)
    try:
        yield name
    finally:
        _run("netns", "delete", name)


def _run(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
