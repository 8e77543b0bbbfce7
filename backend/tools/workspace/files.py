"""Files of conversations for their users, over the workspace's HTTP API."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, get_args
from urllib.parse import quote, unquote

import httpx2
from mcp.shared.exceptions import MCPError

from backend.errors import BackendError, LimitReached, NotFound
from backend.ids import new_id
from backend.tools.caller_token import calling_for
from backend.tools.connection import KEY, USER, text_of
from backend.tools.connectors.configuration import AgentName
from backend.tools.workspace.tools import DISK_FULL, FOLDER, WorkspaceTools, WorkspaceUnavailable, get_agent_folder

logger = logging.getLogger(__name__)

_UNCONFINED = (
    "Nothing was committed. There is no sandbox here, and git could run programs that an agent wrote. Ask an agent to "
    "commit, which needs your approval, or commit by hand."
)
_REMOVE_TIMEOUT = httpx2.Timeout(10, connect=1.5)
_MAX_REQUESTS = 8  # of one user at once; a browser sends six


class FileRejected(BackendError):
    """The file could not be saved."""

    code, status = "file_rejected", 400


class WorkspaceFileTooLarge(FileRejected):
    """The file is too large, or the folder is full."""

    code, status = "file_too_large", 413


class WorkspaceDiskFull(BackendError):
    """The disk of the workspace is full: try again later."""

    code, status = "disk_full", 507


class NotCommitted(BackendError):
    """Nothing was committed."""

    code, status = "not_committed", 409


class FolderFiles:
    """Raises `WorkspaceUnavailable`, and `FileRejected` with the workspace's sentence."""

    def __init__(self, tools: WorkspaceTools) -> None:
        self._tools = tools
        self._under_way = Counter[str]()  # by user

    @property
    def is_starting(self) -> bool:
        return self._tools.is_starting

    def agents(self) -> dict[str, object]:
        confinement = self._tools.confinement if self._tools.runs_commands else None
        return {"offered": self._tools.may_start, "confinement": confinement}

    async def check_directory(self, directory: str, *, user_id: str) -> None:
        async with self._send("GET", "directory", user_id, directory=directory):
            pass

    async def list(self, folder: str, *, user_id: str, directory: str | None = None) -> dict[str, Any]:
        async with self._send("GET", f"files/{folder}", user_id, directory=directory) as response:
            await response.aread()
            return response.json()

    def open_file(
        self, folder: str, path: str, *, user_id: str, directory: str | None = None
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        return self._send("GET", _build_path(folder, path), user_id, directory=directory)

    async def put(
        self, folder: str, path: str, content: AsyncIterator[bytes], headers: Mapping[str, str], *, user_id: str
    ) -> tuple[int, dict[str, Any]]:
        where = _build_path(folder, path)
        async with self._send("PUT", where, user_id, content=content, headers=headers) as response:
            await response.aread()
            return response.status_code, response.json()

    async def delete(self, folder: str, path: str, *, user_id: str) -> None:
        async with self._send("DELETE", _build_path(folder, path), user_id):
            pass

    async def commit(self, folder: str, message: str, *, user_id: str) -> str:
        """Commits the files of a folder in a sandbox, as git runs the folder's hooks; raises `NotCommitted`."""
        if self._tools.is_unconfined:
            raise NotCommitted(_UNCONFINED)
        meta = {USER: user_id, FOLDER: folder, KEY: new_id("key")}
        try:
            result = await self._tools.call_tool("commit", {"message": message}, meta)
        except MCPError as error:  # the server is not the workspace, or rejects the tokens
            raise WorkspaceUnavailable from error
        if result.is_error:
            raise NotCommitted(text_of(result))
        return text_of(result)

    async def remove_all(self, conversation_id: str, *, user_id: str) -> None:
        """Deletes the conversation's folders; errors are only logged, as the service deletes unused ones."""
        for folder in (conversation_id, *(get_agent_folder(conversation_id, agent) for agent in get_args(AgentName))):
            with calling_for(user_id):
                try:
                    response = await self._tools.http.delete(f"files/{folder}", timeout=_REMOVE_TIMEOUT)
                    response.raise_for_status()
                except httpx2.HTTPError as error:
                    logger.warning("the folder of a deleted conversation may be left: %s", type(error).__name__)

    @contextmanager
    def _count_transfer(self, user_id: str) -> Iterator[None]:
        if self._under_way[user_id] >= _MAX_REQUESTS:
            raise LimitReached(
                f"{_MAX_REQUESTS} of your files are being transferred. Wait until they are done and try again."
            )
        self._under_way[user_id] += 1
        try:
            yield
        finally:
            self._under_way[user_id] -= 1
            if not self._under_way[user_id]:
                del self._under_way[user_id]

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, user_id: str, *, directory: str | None = None, **more: Any
    ) -> AsyncIterator[httpx2.Response]:
        with self._count_transfer(user_id):
            with calling_for(user_id, directory):
                request = self._tools.http.build_request(method, path, **more)
                try:
                    response = await self._tools.http.send(request, stream=True)
                except httpx2.TransportError as error:
                    raise WorkspaceUnavailable from error
            try:
                if not response.is_success:
                    await response.aread()
                    raise _read_error(response, path)
                yield response
            except httpx2.TransportError as error:
                raise WorkspaceUnavailable from error
            finally:
                await response.aclose()


def _build_path(folder: str, path: str) -> str:
    """Returns the path of a file in the workspace's HTTP API; raises `NotFound` for parts like ".."."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise NotFound.of("file", path)
    return f"files/{folder}/{quote(path)}"


def _read_error(response: httpx2.Response, path: str) -> BackendError:
    """`path` is that of a file in the workspace's HTTP API."""
    try:
        sentence = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return WorkspaceUnavailable()
    if response.status_code == DISK_FULL:
        return WorkspaceDiskFull(str(sentence))
    if response.status_code == 401 or response.status_code >= 500 or not isinstance(sentence, str):
        return WorkspaceUnavailable()
    if response.status_code == 413:
        return WorkspaceFileTooLarge(sentence)
    if response.status_code == 404:
        file = unquote(path.partition("/")[2].partition("/")[2])
        return NotFound.of("file", file) if file else NotFound(sentence)
    return FileRejected(sentence)
