"""`./todo chat --here`: a conversation in a directory of the user's, and to whom the owner's secret is sent."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import pytest

from cli import data_dir
from cli.chat.connection import OwnerSecret
from cli.services import composition
from tests.cli.chat.terminal import chat
from tests.conftest import ROOT, find_free_port
from tests.scripted_model import ScriptedModel
from tests.support.backends import LocalBackend, local_backend
from tests.support.script import call, calls, says, start_coder
from tests.support.stack import Services
from tests.workspace.accounts import accounts, done_as, fork
from tests.workspace_service import create_workspace_service

pytestmark = pytest.mark.long

_UP = """
import sys
from pathlib import Path
from cli.services import running
with running.claimed(Path(sys.argv[1])):
    running.StatusFile(Path(sys.argv[1]), {"page": sys.argv[2]}).update([])
    print("runs", flush=True)
    sys.stdin.read()
"""
WRITES = calls(call("write_file", path="notes.md", content="x\n"))


@pytest.fixture
def place() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="todo-here-")).resolve()
    root.chmod(0o711)
    (root / "data").mkdir()
    yield root
    shutil.rmtree(root)


@contextmanager
def running_up(directory: Path, page: str) -> Iterator[None]:
    """What others see of a `./todo up`."""
    command = [sys.executable, "-c", _UP, str(directory), page]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"runs\n"
        yield
        process.stdin.close()


@asynccontextmanager
async def served(services: Services, place: Path) -> AsyncIterator[tuple[LocalBackend, Path]]:
    """A backend as `./todo up` starts it, and a directory of its user's."""
    workspace, folders = create_workspace_service(place, AUTH_MODE="none", WORKSPACE_DATA_DIR=str(place / "data"))
    project = place / "project"
    project.mkdir()
    os.chown(project, folders.stat().st_uid, folders.stat().st_gid)
    workspace.start()
    workspace.wait_until_ready()
    settings = {"AUTH_MODE": "none", "AUTH_JWT_SECRET": "", "AUTH_ISSUER": "", "AUTH_AUDIENCE": "", "APPROVALS": "bulk"}
    settings |= {
        "OWNER_SECRET": data_dir.secret(place / "data", data_dir.OWNER_SECRET),
        "WORKSPACE_URL": f"{workspace.url}/mcp",
    }
    try:
        async with local_backend(services, **settings) as backend:
            yield backend, project
    finally:
        workspace.end()


async def test_works_in_the_directory(services: Services, model: ScriptedModel, place: Path) -> None:
    async with served(services, place) as (backend, project):
        options = ("--data-dir", str(place / "data"), "--directory", str(project))
        with running_up(place / "data", backend.url):
            await model.script(start_coder("write notes"), WRITES)
            asked = await chat(*options, "--exec", "write notes")
            assert asked.returncode == 3, asked
            assert str(project) in asked.stderr
            assert not (project / "notes.md").exists()

            await model.script(start_coder("write notes"), WRITES, says("Written."), says("Look at notes.md."))
            done = await chat(*options, "--yes", "--exec", "write notes")
            assert (done.returncode, done.stdout) == (0, "Look at notes.md.\n"), done
            assert (project / "notes.md").read_text() == "x\n"

            await model.script(says("Hello."))
            done = await chat("--data-dir", str(place / "data"), "--continue", "--exec", "hello")
            assert (done.returncode, done.stdout) == (0, "Hello.\n"), done

            rejected = await chat("--data-dir", str(place / "data"), "--directory", "/", "--exec", "x")
            assert rejected.returncode == 1
            assert "/ is not valid as a directory" in rejected.stderr


async def test_others_do_not_continue_it(services: Services, model: ScriptedModel, place: Path) -> None:
    """A terminal with another data directory, or whose `./todo up` does not run, has no secret to send."""
    async with served(services, place) as (backend, project):
        await model.script(says("Hello."))
        with running_up(place / "data", backend.url):
            begun = await chat("--data-dir", str(place / "data"), "--directory", str(project), "--exec", "hello")
            assert begun.returncode == 0, begun
        (place / "other").mkdir()
        for directory in ("data", "other"):
            others = await chat("--data-dir", str(place / directory), "--url", backend.url, "--continue", "--exec", "x")
            assert others.returncode == 1
            assert "in a directory of its owner" in others.stderr


async def test_the_secret_is_sent_to_nobody_else(place: Path) -> None:
    """Somebody may listen where the assistant was, or at an address that was given."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    secret = data_dir.secret(place / "data", data_dir.OWNER_SECRET).encode()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = ("--data-dir", str(place / "data"), "--exec", "hello")
    async with server:
        await chat(*options, BACKEND_PORT=str(port))
        await chat(*options, "--url", f"http://127.0.0.1:{port}")
        with running_up(place / "data", f"http://localhost:{find_free_port()}/"):
            await chat(*options, "--url", f"http://127.0.0.1:{port}")
        assert requests
        assert not [one for one in requests if secret in one]
        with running_up(place / "data", f"http://localhost:{port}/"):
            await chat(*options)
        assert secret in requests[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--here", "--continue"),
        ("--here", "--thread", "x"),
        ("--here", "--url", "http://x"),
    ],
)
async def test_options_that_do_not_fit(arguments: tuple[str, ...]) -> None:
    done = await chat(*arguments, "--exec", "x")
    assert done.returncode == 2


@contextmanager
def listening(account: int, port: int) -> Iterator[None]:
    """A process of an account that listens at a port."""
    reader, writer = os.pipe()
    process = fork()
    if process == 0:
        if account != os.getuid():
            os.setuid(account)
        with socket.create_server(("127.0.0.1", port)):
            os.write(writer, b"x")
            signal.pause()
    os.read(reader, 1)
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def test_the_secret_is_not_sent_to_another_account(place: Path) -> None:
    """It can listen while the backend starts again."""
    data_dir.secret(place / "data", data_dir.OWNER_SECRET)
    for account in {os.getuid(), *accounts().values()}:
        port = find_free_port()
        with running_up(place / "data", f"http://127.0.0.1:{port}"), listening(account, port):
            request = next(OwnerSecret(place / "data").auth_flow(httpx2.Request("GET", f"http://127.0.0.1:{port}/")))
            assert ("X-Owner-Secret" in request.headers) is (account == os.getuid())


def test_the_secret_is_readable_by_its_owner_only(place: Path) -> None:
    data_dir.secret(place / "data", data_dir.OWNER_SECRET)
    assert stat.S_IMODE((place / "data/owner_secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", ["none", "jwt"])
def test_what_is_set_for_whom(place: Path, mode: str) -> None:
    """Root and those who sign in have no directories to work in; who is neither has."""

    async def settings() -> dict[str, str]:
        return composition.create_directory_settings({"AUTH_MODE": mode}, place / "data")

    nothing = {"OWNER_SECRET": "", "WORKSPACE_DATA_DIR": ""}
    if os.getuid() == 0:
        assert done_as(0, settings) == nothing
        os.chown(place / "data", 61_005, 61_005)
    given = done_as(61_005 if os.getuid() == 0 else os.getuid(), settings)
    if mode == "none":
        assert (len(given["OWNER_SECRET"]), given["WORKSPACE_DATA_DIR"]) == (64, str(place / "data"))
    else:
        assert given == nothing


def test_the_status_has_no_secret(place: Path) -> None:
    data_dir.secret(place / "data", data_dir.OWNER_SECRET)
    with running_up(place / "data", "http://localhost:1/"):
        status = json.loads((place / "data/up.json").read_text())
    assert set(status) == {"page", "parts"}
