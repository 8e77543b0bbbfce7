"""How a service ends that cannot start, or is asked to end, with one process and with several."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.conftest import ROOT, find_free_port
from tests.waiting import until

PROGRAM = """
import logging
import sys
from pathlib import Path

from common.server.limits import ClientLimits
from common.server.serving import ServedApplication, serve


async def respond(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


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


if __name__ == "__main__":
    logging.basicConfig(level="ERROR")
    limits, where = ClientLimits(), {"prefix": "X", "host": "127.0.0.1", "port": int(sys.argv[2])}
    serve(create, limits, workers=int(sys.argv[3]), grace_seconds=5, **where)
"""


def start(directory: Path, failure: str, *, workers: int, port: int = 0, drain: float = 0) -> subprocess.Popen[bytes]:
    program = directory / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), failure, str(port), str(workers), str(drain)]
    return subprocess.Popen(command, cwd=directory, env={"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)


@pytest.mark.parametrize(("workers", "failure"), [(1, "creation"), (2, "startup")])
def test_service_that_cannot_start(tmp_path: Path, workers: int, failure: str) -> None:
    """It does not try again for ever."""
    process = start(tmp_path, failure, workers=workers)
    _, log = process.communicate(timeout=90)
    assert process.returncode == 3, log.decode()
    assert failure == "startup" or b"no application" in log


async def test_service_that_drains(tmp_path: Path) -> None:
    """It serves on, and says that it is not ready; asked twice, it ends at the same time."""
    port = find_free_port()
    (tmp_path / "busy").touch()
    process = start(tmp_path, "none", workers=1, port=port, drain=60)
    await until(lambda: answers(port, "/ready"), seconds=60)
    process.send_signal(signal.SIGTERM)
    await until(lambda: not answers(port, "/ready"))
    process.send_signal(signal.SIGTERM)
    assert answers(port, "/")
    (tmp_path / "busy").unlink()
    process.communicate(timeout=60)
    assert process.returncode == 0


def answers(port: int, path: str) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}{path}", trust_env=False, verify=False).status_code == 200
    except httpx2.TransportError:
        return False
