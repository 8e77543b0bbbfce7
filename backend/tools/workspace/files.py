"""The folders' files for their person, as the workspace's own door has them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2

from backend.conversation.errors import BackendError
from backend.tools.task_tools import KEY, USER, calling_for
from backend.tools.workspace.tools import FOLDER, WorkspaceTools, WorkspaceUnavailable, text_of
from service.database import new_id


class NoFile(BackendError):
    """There is no such file: it was deleted, or never written."""


class FileRefused(BackendError):
    """The file cannot be kept."""


class FileTooLarge(FileRefused):
    """The file is too large, or the folder is full."""


class NotCommitted(BackendError):
    """Nothing was committed."""


class FolderFiles:
    """Raises `WorkspaceUnavailable`, and the workspace's own sentence where it refuses."""

    def __init__(self, tools: WorkspaceTools) -> None:
        self._tools = tools

    def agents(self) -> dict[str, object]:
        """Whether they may be started now, and what their commands are confined by."""
        return {"offered": self._tools.may_start, "confinement": self._tools.confinement}

    async def list(self, folder: str, *, user_id: str) -> dict[str, Any]:
        async with self._sent("GET", f"files/{folder}", user_id) as response:
            await response.aread()
            return response.json()

    @asynccontextmanager
    async def opened(self, folder: str, path: str, *, user_id: str) -> AsyncIterator[httpx2.Response]:
        """The file as it comes, with its length in the headers."""
        async with self._sent("GET", _place(folder, path), user_id) as response:
            yield response

    async def put(
        self, folder: str, path: str, content: AsyncIterator[bytes], headers: Mapping[str, str], *, user_id: str
    ) -> tuple[int, dict[str, Any]]:
        """Hand it on as it comes, never held whole; returns the status and what is told."""
        where = _place(folder, path)
        async with self._sent("PUT", where, user_id, content=content, headers=headers) as response:
            await response.aread()
            return response.status_code, response.json()

    async def commit(self, folder: str, message: str, *, user_id: str) -> str:
        """Keep a version of the folder; what is said of it. Raises `NotCommitted`."""
        meta = {USER: user_id, FOLDER: folder, KEY: new_id("key")}
        result = await self._tools.call_tool("commit", {"message": message}, meta)
        self._tools.details(meta[KEY])
        if result.is_error:
            raise NotCommitted(text_of(result))
        return text_of(result)

    @asynccontextmanager
    async def _sent(self, method: str, path: str, user_id: str, **more: Any) -> AsyncIterator[httpx2.Response]:
        with calling_for(user_id):
            request = self._tools.http.build_request(method, path, **more)
            try:
                response = await self._tools.http.send(request, stream=True)
            except httpx2.TransportError as error:
                raise WorkspaceUnavailable from error
        try:
            if not response.is_success:
                await response.aread()
                raise _refusal(response)
            yield response
        except httpx2.TransportError as error:
            raise WorkspaceUnavailable from error
        finally:
            await response.aclose()


def _place(folder: str, path: str) -> str:
    """The file's own address, which none of its parts leads away from."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise NoFile
    return f"files/{folder}/{quote(path)}"


def _refusal(response: httpx2.Response) -> BackendError:
    try:
        sentence = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return WorkspaceUnavailable()
    if response.status_code >= 500 or not isinstance(sentence, str):
        return WorkspaceUnavailable()
    if response.status_code == 413:
        return FileTooLarge(sentence)
    return NoFile() if response.status_code == 404 else FileRefused(sentence)
