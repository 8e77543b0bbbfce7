"""Where a service listens, and how it ends if it cannot start or is asked to, with one process and with several."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.conftest import ROOT, find_free_port
from tests.waiting import WAIT_SECONDS, until

pytestmark = pytest.mark.long(seconds=2)

PROGRAM = """
import errno
import logging
import os
import socket
import sys
from pathlib import Path

from common.server.limits import ClientLimits
from common.server.serving import ServedApplication, serve


async def respond(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["scheme"].encode()})


async def start(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup." + ("failed" if sys.argv[1] == "startup" else "complete")})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


def create(address):
    if sys.argv[1] == "creation":
        raise RuntimeError("no application")

    async def app(scope, receive, send):
        await (start if scope["type"] == "lifespan" else respond)(scope, receive, send)

    return ServedApplication(app, drain_seconds=float(sys.argv[4]), is_busy=Path("busy").exists)


class SocketWithoutIPv6(socket.socket):
    def __init__(self, family=-1, *options):
        self.refuse(family, "EAFNOSUPPORT")
        super().__init__(family, *options)

    def bind(self, address):
        self.refuse(self.family, "EADDRNOTAVAIL")
        super().bind(address)

    def refuse(self, family, reason):
        if family == socket.AF_INET6 and os.environ["IPV6_ERROR"] == reason:
            raise OSError(getattr(errno, reason), reason)


if __name__ == "__main__":
    logging.basicConfig(level="ERROR")
    if "IPV6_ERROR" in os.environ:
        socket.socket = SocketWithoutIPv6
    where = {"prefix": "X", "host": os.environ.get("HOST", "127.0.0.1"), "port": int(sys.argv[2])}
    proxies = os.environ.get("PROXIES", "").split(",")
    options = {"workers": int(sys.argv[3]), "trusted_proxies": proxies, "grace_seconds": 5}
    serve(create, ClientLimits(), **where, **options)
"""


LOOPBACK = ("127.0.0.1", "::1")
LISTENS = "0A"  # the state of a socket in /proc/net/tcp


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with ExitStack() as cleanup:

        def run(
            failure: str = "none", *, workers: int = 1, port: int = 0, drain: float = 0, **environment: str
        ) -> subprocess.Popen[bytes]:
            command = [sys.executable, str(program), failure, str(port), str(workers), str(drain)]
            variables = {"PYTHONPATH": str(ROOT), **environment}
            process = cleanup.enter_context(
                subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE)
            )
            cleanup.callback(process.kill)
            return process

        yield run


@pytest.mark.parametrize(("workers", "failure"), [(1, "creation"), (2, "startup")])
def test_service_that_cannot_start(start: Start, workers: int, failure: str) -> None:
    """It does not try again for ever."""
    process = start(failure, workers=workers)
    _, log = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 3, log.decode()
    assert failure == "startup" or b"no application" in log


async def test_service_that_drains(start: Start, tmp_path: Path) -> None:
    """It serves on, and says that it is not ready; asked twice, it ends at the same time."""
    port = find_free_port()
    (tmp_path / "busy").touch()
    process = start(port=port, drain=60)
    await until(lambda: answers(port, "/ready"))
    process.send_signal(signal.SIGTERM)
    await until(lambda: not answers(port, "/ready"))
    process.send_signal(signal.SIGTERM)
    assert answers(port, "/")
    (tmp_path / "busy").unlink()
    process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize(("host", "workers"), [("127.0.0.1", 1), ("localhost", 2), ("::1", 1)])
async def test_both_loopback_addresses_and_no_other(start: Start, host: str, workers: int) -> None:
    port = find_free_port()
    process = start(workers=workers, port=port, HOST=host)
    for address in LOOPBACK:
        await until(lambda address=address: answers(port, "/", address))
    assert list_listeners(port) == set(LOOPBACK)
    process.terminate()
    process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0


async def test_one_other_address(start: Start) -> None:
    port = find_free_port()
    process = start(port=port, HOST="127.0.0.2")
    await until(lambda: answers(port, "/", "127.0.0.2"))
    assert list_listeners(port) == {"127.0.0.2"}
    process.terminate()
    process.communicate(timeout=WAIT_SECONDS)


@pytest.mark.parametrize(
    ("proxies", "scheme"), [("127.0.0.1", "https"), ("::1,10.0.0.7", "https"), ("10.0.0.7", "http")]
)
async def test_trusted_proxy_on_this_machine(start: Start, proxies: str, scheme: str) -> None:
    """It reaches the service at either address, and is trusted by either."""
    port = find_free_port()
    start(port=port, PROXIES=proxies)
    await until(lambda: answers(port, "/"))
    for host in ("127.0.0.1", "[::1]"):
        by_https = {"X-Forwarded-Proto": "https"}
        assert httpx2.get(f"http://{host}:{port}/", headers=by_https, trust_env=False, verify=False).text == scheme


@pytest.mark.parametrize("reason", ["EAFNOSUPPORT", "EADDRNOTAVAIL"])
async def test_machine_without_ipv6(start: Start, reason: str) -> None:
    port = find_free_port()
    process = start(port=port, IPV6_ERROR=reason)
    await until(lambda: answers(port, "/"))
    assert list_listeners(port) == {"127.0.0.1"}
    process.terminate()
    process.communicate(timeout=WAIT_SECONDS)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_address_that_is_taken(start: Start, family: socket.AddressFamily, address: str) -> None:
    """Another program would answer some of the clients of localhost."""
    port = find_free_port()
    with socket.socket(family) as other:
        other.bind((address, port))
        other.listen()
        _, log = start(port=port).communicate(timeout=WAIT_SECONDS)
    assert log.decode() == (
        f"Cannot listen on {address} port {port} (Address already in use): set X_HOST and X_PORT to an address of this "
        "machine and a free port.\n"
    )


def list_listeners(port: int) -> set[str]:
    """Returns the addresses at which this port is open (Linux only)."""
    found: set[str] = set()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            number, _, of_port = local.partition(":")
            if state == LISTENS and int(of_port, 16) == port:
                words = [bytes.fromhex(number[start : start + 8])[::-1] for start in range(0, len(number), 8)]
                found.add(socket.inet_ntop(family, b"".join(words)))
    return found


def answers(port: int, path: str, host: str = "127.0.0.1") -> bool:
    address = f"[{host}]" if ":" in host else host
    try:
        return httpx2.get(f"http://{address}:{port}{path}", trust_env=False, verify=False).status_code == 200
    except httpx2.TransportError:
        return False
