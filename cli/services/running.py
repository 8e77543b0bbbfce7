"""The status file of `./todo up`, which is valid as long as its writer owns the data directory."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.data_dir import explain_write_error, get_option
from cli.errors import CliError
from cli.processes import ownership
from cli.processes.ownership import InUseError, Ownership

if TYPE_CHECKING:  # `status` reads without what a supervisor needs
    from cli.services.parts import RunningPart

PREFIX = "up."
PROBE_SECONDS = 5


@contextlib.contextmanager
def claimed(data_dir: Path) -> Iterator[Ownership]:
    """Makes this process the only `up` of the directory; services of an `up` that was killed are waited for."""
    try:
        with explain_write_error(data_dir):
            owned = ownership.take(data_dir, prefix=PREFIX)
    except InUseError as error:
        page = (read_state(data_dir) or {}).get("page", "")
        raise CliError(
            f"The data directory {data_dir} is in use by process {error.owner}, which is ./todo up"
            f"{' with the page at ' + page if page else ''}. ./todo status{get_option(data_dir)} shows it. "
            "To run a second one, choose another --data-dir, --port and --mcp-port."
        ) from None
    try:
        yield owned
    finally:
        with contextlib.suppress(OSError):
            _get_state_path(data_dir).unlink()
        owned.release()


class StatusFile:
    """What `read_state` returns; `addresses` are the page's and those that other commands need.

    It is written when something changed. A full disk is no reason to stop: the next update tries again.
    """

    def __init__(self, data_dir: Path, addresses: Mapping[str, str]) -> None:
        self._file = _get_state_path(data_dir)
        self._addresses = addresses
        self._written = ""

    def update(self, parts: "Sequence[RunningPart]") -> None:
        text = json.dumps({**self._addresses, "parts": [_describe(part) for part in parts]})
        if text == self._written:
            return
        fresh = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):
            fresh.write_text(text)
            fresh.chmod(0o600)
            fresh.replace(self._file)
            self._written = text


def read_state(data_dir: Path) -> dict[str, Any] | None:
    """Returns what the running `up` has written; None if none runs."""
    owner = ownership.find_owner(data_dir, prefix=PREFIX)
    return None if owner is None else {"parts": [], **read_file(data_dir), "pid": owner}


def read_file(data_dir: Path) -> dict[str, Any]:
    """Returns what the status file says, which may be that of an `up` that was killed; nothing if there is none."""
    try:
        return json.loads(_get_state_path(data_dir).read_text())
    except (OSError, ValueError):
        return {}


def probe(port: int, path: str) -> tuple[int, str]:
    """Returns the status of a response and its beginning; 0 if there is none."""
    import http.client  # which few commands need

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(10_000).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def _describe(part: "RunningPart") -> dict[str, Any]:
    return {
        "name": part.name,
        "pid": part.process.pid if part.process else None,
        "since": part.since,
        "port": part.service.port if part.service else None,
        "path": part.service.ready_path if part.service else "",
        "keeps_dying": part.restarts.is_slow,
    }


def _get_state_path(data_dir: Path) -> Path:
    return data_dir / "up.json"
