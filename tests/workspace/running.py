"""A workspace as a process of its own, and what the backend asks of it."""

import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from common.tokens import make_call_token
from tests import workspace_service
from tests.conftest import find_memory
from tests.processes import ServiceProcess
from tests.serving import http_client
from tests.tokens import MCP_TOKEN_SECRET

URL = "http://workspace:8003/mcp"
SECRET = MCP_TOKEN_SECRET
ACCOUNT = workspace_service.ACCOUNT if os.getuid() == 0 else None


@contextmanager
def directory() -> Iterator[Path]:
    """One that the workspace's account owns alone, in one that it may enter."""
    place = Path(tempfile.mkdtemp(prefix="todo-workspace-", dir=find_memory()))
    place.chmod(0o711)
    (place / "workspaces").mkdir(mode=0o700)
    if ACCOUNT:
        os.chown(place / "workspaces", ACCOUNT, ACCOUNT)
    try:
        yield place / "workspaces"
    finally:
        shutil.rmtree(place)


def service(root: Path, log: Path, **variables: str) -> ServiceProcess:
    options = [f"--account={ACCOUNT}"] if ACCOUNT else []
    given = {"WORKSPACE_DIR": str(root), "WORKSPACE_URL": URL, "WORKSPACE_TOKEN_SECRET": SECRET, "LOG_FORMAT": "text"}
    return ServiceProcess("workspace", "WORKSPACE_PORT", log, *options, **(given | variables))


def token(person: str, directory: str | None = None) -> str:
    return make_call_token(SECRET, person, audience=URL, expires=int(time.time()) + 600, directory=directory)


class Person:
    """What the backend does for somebody."""

    def __init__(self, client: Client, http: httpx2.AsyncClient) -> None:
        self.client, self.http = client, http

    async def call(
        self, tool: str, *, folder: object = "cnv_1", key: str | None = None, **arguments: Any
    ) -> tuple[str, dict[str, Any]]:
        """What the model and the person are told; an AssertionError with the sentence of a refusal."""
        told = await self._called(tool, folder, key, arguments)
        assert not told.is_error, told.content[0].text
        return told.content[0].text, told.structured_content

    async def refusal(self, tool: str, *, folder: object = "cnv_1", key: str | None = None, **arguments: Any) -> str:
        told = await self._called(tool, folder, key, arguments)
        assert told.is_error, told.structured_content
        assert told.structured_content is None
        return told.content[0].text

    async def put(self, path: str, content: bytes | str) -> None:
        raw = content.encode() if isinstance(content, str) else content
        assert (await self.http.put(f"/files/cnv_1/{path}", content=raw)).is_success

    async def _called(self, tool: str, folder: object, key: str | None, arguments: dict[str, Any]) -> Any:
        meta = {"todo/folder": folder, "todo/idempotency_key": key}
        meta = {name: value for name, value in meta.items() if value is not None}
        return await self.client.call_tool_mcp(tool, arguments, meta=meta)


@asynccontextmanager
async def acting(base: str, person: str = "alice", *, directory: str | None = None) -> AsyncIterator[Person]:
    """With a `directory`, in a conversation that works there."""
    headers = {"authorization": f"Bearer {token(person, directory)}"}
    transport = StreamableHttpTransport(f"{base}/mcp", headers=headers, verify=False)
    async with (
        Client(transport) as client,
        http_client(base, headers=headers) as http,
    ):
        yield Person(client, http)
