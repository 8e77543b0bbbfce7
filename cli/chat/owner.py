"""The secret by which `./todo up` knows the user who runs it."""

import os
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from cli import data_dir
from cli.services import running

_HEADER = "X-Owner-Secret"
_LISTENS = "0A"  # the state of a socket, in /proc/net/tcp


class OwnerSecret(httpx2.Auth):
    """Adds the secret of a data directory to requests, as long as its `./todo up` runs and serves their port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        state = running.read_state(self._directory) or {}
        port = urlsplit(state.get("page", "")).port
        secret = data_dir.known_owner_secret(self._directory)
        if secret and port is not None and port == request.url.port and _is_served_by_user(port):
            request.headers[_HEADER] = secret
        yield request


def _is_served_by_user(port: int) -> bool:
    """Whether nobody but this user, or root, listens at a port: another user could while the backend starts again.

    True where the system does not say whose a socket is (macOS).
    """
    owners = set[int]()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
        except OSError:
            continue
        owners |= {int(row[7]) for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port}
    return owners <= {os.getuid(), 0}
