"""Where the assistant is, and starting it where it is not."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cli import data_dir
from cli.chat.token_errors import is_sendable
from cli.data_dir import CHECKOUT
from cli.errors import CliError
from cli.services import environment, running

if TYPE_CHECKING:
    from cli.chat.connection import Connection

PORT = 8000
START_SECONDS = 180
LOG = "up.log"


def find(directory: Path) -> str:
    """Returns the address of the `./todo up` of a data directory, or where it would be."""
    state = running.read_state(directory)
    if state is not None and "page" in state:
        return f"http://127.0.0.1:{urlsplit(state['page']).port or PORT}"
    return f"http://127.0.0.1:{environment.port(environment.load(), 'BACKEND_PORT', PORT)}"


def check_token(url: str, token: str | None) -> None:
    parts = urlsplit(url)
    if token is not None and parts.scheme != "https" and parts.hostname not in environment.THIS_MACHINE:
        raise CliError(f"TODO_TOKEN is not sent to {url}, because others could read it on the way. Use https.")
    if token and not is_sendable(token):
        raise CliError("TODO_TOKEN has spaces or other characters that no token has. Set it again.")


async def start_and_wait(directory: Path, connection: "Connection") -> bool:
    from todo_client.connection import ApiError, ConnectionLost

    process = _start(directory)
    with suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while process.poll() is None:
                with suppress(ApiError, ConnectionLost):
                    await connection.runs.ready()
                    return True
                await asyncio.sleep(0.2)
    return False


def _start(directory: Path) -> "subprocess.Popen[bytes]":
    data_dir.prepare(directory)
    with data_dir.explain_write_error(directory):
        output = (data_dir.logs(directory) / LOG).open("ab")
    with output as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "cli", "up", "--data-dir", str(directory)],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
