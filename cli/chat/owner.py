"""The secret by which `./todo up` knows the user who runs it."""

from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from cli import data_dir
from cli.services import running

_HEADER = "X-Owner-Secret"


class OwnerSecret(httpx2.Auth):
    """Adds the secret of a data directory to requests, as long as its `./todo up` runs and serves their port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        state = running.read_state(self._directory) or {}
        port = urlsplit(state.get("page", "")).port
        secret = data_dir.known_owner_secret(self._directory)
        if secret and port is not None and port == request.url.port:
            request.headers[_HEADER] = secret
        yield request
