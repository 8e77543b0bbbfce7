"""The settings of a running `./todo up`, for the other commands of its account.

They come over a Unix socket in a directory that only this account can enter, so that keys which were set in the
terminal of `up` are in no file, and work on every system. `up` tells the path of the socket in its status file.
"""

import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.database.postgres import SOCKETS
from cli.errors import CliError, explain_os_error
from cli.services import environment, running
from common.child_environment import is_known, is_setting

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

_PREFIX = "todo-up-"
_SECONDS = 30  # while `up` starts PostgreSQL, it answers nobody


@dataclass(frozen=True)
class Settings:
    variables: dict[str, str]
    process: int | None
    """The `up` whose settings these are; None if they are those of `.env` and this terminal."""

    @property
    def source(self) -> str:
        if self.process is None:
            return "Settings of .env and this terminal."
        return f"Settings of the running ./todo up (process {self.process})."


@contextlib.asynccontextmanager
async def publish(data_dir: Path, loaded: Mapping[str, str], settings: Mapping[str, str]) -> AsyncIterator[str]:
    """Yields the path of the socket. `loaded` is what was read, `settings` what became of it."""
    import asyncio

    left = Path(running.read_file(data_dir).get("settings", "")).parent
    if left.match(f"{SOCKETS}/{_PREFIX}*"):  # by an `up` that was killed
        shutil.rmtree(left, ignore_errors=True)
    chosen = {name: value for name, value in settings.items() if is_setting(name)}
    chosen |= environment.list_server_variables(settings)
    answer = json.dumps({"loaded": {name: loaded[name] for name in loaded if is_known(name)}, "settings": chosen})

    async def send(_: "StreamReader", writer: "StreamWriter") -> None:
        writer.write(answer.encode())
        writer.close()

    with explain_os_error(f"{SOCKETS} cannot be written"):
        private = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=SOCKETS)
    with private as directory:
        path = f"{directory}/settings"
        server = await asyncio.start_unix_server(send, path)
        try:
            yield path
        finally:
            server.close()


def load(directory: Path) -> Settings:
    """Returns the settings of the `up` that runs with this data directory, else those of `.env` and this terminal.

    Who sets something else in this terminal wants that: then nothing is taken of those that run, because a mixture
    could be of two databases.
    """
    state = running.read_state(directory) or {}
    if "settings" in state:
        answer = _ask(state)
        given = {name: value for name, value in os.environ.items() if value}
        if all(answer["loaded"].get(name) == value for name, value in given.items() if is_known(name)):
            return Settings({**given, **answer["settings"]}, state["pid"])
    return Settings(environment.load(), None)


def _ask(state: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(state["settings"])
            with connection.makefile("rb") as answer:
                return json.load(answer)
    except (OSError, ValueError):
        raise CliError(
            f"./todo up, process {state['pid']}, does not answer which settings it has. Try again when ./todo status "
            "shows that it is ready."
        ) from None
