"""The user, the folder and the shared state of a tool call, which clients cannot choose."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

from fastmcp import Context
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.server.dependencies import get_access_token
from fastmcp.tools import ToolResult

from common.tokens import DIRECTORY
from common.tool_server import calls
from common.tool_server.calls import get_user_id, read_meta_text
from workspace.commands.running import CommandStopped
from workspace.commands.tools import Commands, render_result
from workspace.confinement.base import Directory
from workspace.errors import NoFolder
from workspace.files import listing
from workspace.files.folder import Folder, Store
from workspace.results import CallResult, find_result, store_result

_CONTEXT: Context = CurrentContext()
_locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()


@dataclass
class Workspace:
    store: Store
    commands: Commands
    confinement: str | None = None
    """The sandbox's name; None if there is none, so that no command can run."""
    cleanup: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class CallContext:
    user: str
    folder: str
    idempotency_key: str | None
    workspace: Workspace
    directory: str | None = None
    """A directory of the user that replaces the folder."""

    async def inspect(self, work: Callable[[Folder], CallResult]) -> ToolResult:
        return _create_tool_result(await asyncio.to_thread(self._in_folder, work))

    async def change(self, tool: str, arguments: dict[str, Any], work: Callable[[Folder], CallResult]) -> ToolResult:
        """Runs `work` after other changes of the user; a repeated call gets the result of the first one."""
        call = {"tool": tool, **arguments}

        def change_once(folder: Folder) -> CallResult:
            if earlier := self._find_result(folder.results, call):
                return earlier
            result = work(folder)
            self._store_result(folder.results, call, result)
            return result

        async with hold_lock(self.user):
            calls.mark_committing()  # a thread cannot be cancelled
            return _create_tool_result(await asyncio.to_thread(self._in_folder, change_once))

    async def search(self, **arguments: Any) -> ToolResult:
        path, _ = await asyncio.to_thread(self.workspace.store.create_paths, self.user, self.folder)
        return _create_tool_result(await self._run(path, "search_files", arguments))

    async def run(self, tool: Literal["run_command", "run_python", "commit"], **arguments: Any) -> ToolResult:
        """Runs a command; a repeated call waits for the first one and gets its result."""
        call = {"tool": tool, **arguments}
        path, results = await asyncio.to_thread(self.workspace.store.create_paths, self.user, self.folder)
        async with hold_lock(self.user, self.folder, self.idempotency_key or object()):
            if earlier := await asyncio.to_thread(self._find_result, results, call):
                return _create_tool_result(earlier)
            before = await asyncio.to_thread(self._list_states)
            result = await self._run(path, tool, arguments)
            changes = listing.list_changes(before, await asyncio.to_thread(self._list_states))
            result = CallResult(result.text, {**result.details, "files": changes})
            await asyncio.to_thread(self._store_result, results, call, result)
            return _create_tool_result(result)

    def _list_states(self) -> dict[str, listing.FileState] | None:
        with self._open() as folder:
            return listing.list_states(folder)

    async def _run(self, path: Path, tool: str, arguments: dict[str, Any]) -> CallResult:
        run = partial(getattr(self.workspace.commands, tool), self.user, path, **arguments)
        try:
            if self.directory is None:
                return await run()
            with self.workspace.store.directories.open(self.directory) as descriptor:
                return await run(directory=Directory(self.directory, descriptor))
        except CommandStopped as stopped:
            # A client that cancels a command gets its output so far.
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            return render_result(stopped.result)

    def _in_folder(self, work: Callable[[Folder], CallResult]) -> CallResult:
        with self._open() as folder:
            return work(folder)

    def _open(self) -> AbstractContextManager[Folder]:
        return self.workspace.store.open_folder(self.user, self.folder, self.directory)

    def _find_result(self, results: Path, call: dict[str, Any]) -> CallResult | None:
        return find_result(results, self.idempotency_key, call) if self.idempotency_key else None

    def _store_result(self, results: Path, call: dict[str, Any], result: CallResult) -> None:
        if self.idempotency_key:
            store_result(results, self.idempotency_key, call, result)


def get_request_directory() -> str | None:
    token = get_access_token()
    directory = token.claims.get(DIRECTORY) if token else None
    return str(directory) if directory is not None else None


@asynccontextmanager
async def hold_lock(*of: object) -> AsyncIterator[None]:
    lock = _locks.setdefault(of, asyncio.Lock())
    async with lock:
        yield


async def _create_caller(context: Context = _CONTEXT) -> CallContext:
    user = get_user_id()
    assert user, "a call without a token does not come this far"
    if (call := calls.current.get()) is not None:
        call.owner = user
    request = context.request_context
    meta = (request and request.meta) or {}
    folder = read_meta_text(meta, "todo/folder", max_length=100)
    if folder is None:
        raise NoFolder
    key = read_meta_text(meta, "todo/idempotency_key", max_length=200)
    return CallContext(user, folder, key, context.lifespan_context["workspace"], get_request_directory())


CALLER: CallContext = Depends(_create_caller)


def _create_tool_result(result: CallResult) -> ToolResult:
    return ToolResult(content=result.text, structured_content=dict(result.details))
