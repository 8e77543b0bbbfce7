"""The user, the folder and the shared state of a tool call, which clients cannot choose."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from fastmcp import Context
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.server.dependencies import get_access_token
from fastmcp.tools import ToolResult

from common.fair_shares import FairQueue, QueueTimeout, ShareExceeded
from common.tokens import DIRECTORY
from common.tool_server import calls
from common.tool_server.calls import get_user_id, read_meta_text
from common.tool_server.errors import TooManyAtOnce
from workspace.commands.runner import CommandRunner
from workspace.commands.tools import Command
from workspace.confinement.base import Directory
from workspace.errors import NoFolder
from workspace.files import listing
from workspace.files.folder import Folder, Store
from workspace.results import CallResult, find_result, store_result

_READINGS_AT_ONCE = 2  # of one user; asyncio has as few as five threads, for all users
_MAX_WAITING, _WAIT_SECONDS = 60, 10.0
Result = TypeVar("Result")
_CONTEXT: Context = CurrentContext()
_locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()


def _create_queue() -> FairQueue:
    return FairQueue(None, _READINGS_AT_ONCE, most_waiting=_MAX_WAITING, timeout_seconds=_WAIT_SECONDS)


@dataclass
class Workspace:
    store: Store
    commands: CommandRunner
    readings: FairQueue = field(default_factory=_create_queue)

    async def read(self, user: str, work: Callable[[], Result]) -> Result:
        """Runs `work` in a thread; further readings of the user wait, so that threads are free for other users.

        Raises `TooManyAtOnce`.
        """
        try:
            release = await self.readings.take(user)
        except (ShareExceeded, QueueTimeout):
            raise TooManyAtOnce from None
        reading = asyncio.create_task(asyncio.to_thread(work))
        reading.add_done_callback(lambda _: release())
        return await asyncio.shield(reading)  # a thread cannot be cancelled


@dataclass(frozen=True)
class CallContext:
    """Runs tools; the name of a tool's function is stored with its result."""

    user: str
    folder: str
    idempotency_key: str | None
    workspace: Workspace
    directory: str | None = None
    """A directory of the user that replaces the folder."""

    async def run_reading(self, work: Callable[..., CallResult], **arguments: Any) -> ToolResult:
        def read_folder() -> CallResult:
            with self._open() as folder:
                return work(folder, **arguments)

        return _create_tool_result(await self.workspace.read(self.user, read_folder))

    async def run_writing(self, work: Callable[..., CallResult], **arguments: Any) -> ToolResult:
        """Runs `work` after other changes of the user; a repeated call gets the result of the first one."""
        call = {"tool": work.__name__, **arguments}

        def write() -> CallResult:
            with self._open() as folder:
                if earlier := find_result(folder.results, self.idempotency_key, call):
                    return earlier
                result = work(folder, **arguments)
                store_result(folder.results, self.idempotency_key, call, result)
                return result

        async with hold_lock(self.user):
            calls.mark_committing()  # a thread cannot be cancelled
            return _create_tool_result(await asyncio.to_thread(write))

    async def run_command(self, create: Callable[..., Command], **arguments: Any) -> ToolResult:
        """Runs a command; a repeated call waits for the first one and gets its result."""
        command, call = create(**arguments), {"tool": create.__name__, **arguments}
        path, results = await asyncio.to_thread(self.workspace.store.create_paths, self.user, self.folder)
        if command.only_reads:
            return _create_tool_result(await self._run(path, command))
        async with hold_lock(self.user, self.folder, self.idempotency_key or object()):
            if earlier := await asyncio.to_thread(find_result, results, self.idempotency_key, call):
                return _create_tool_result(earlier)
            before = await asyncio.to_thread(self._list_states)
            result = await self._run(path, command)
            changes = listing.list_changes(before, await asyncio.to_thread(self._list_states))
            result = CallResult(result.text, {**result.details, "files": changes})
            await asyncio.to_thread(store_result, results, self.idempotency_key, call, result)
            return _create_tool_result(result)

    def _list_states(self) -> dict[str, listing.FileState] | None:
        with self._open() as folder:
            return listing.list_states(folder)

    async def _run(self, path: Path, command: Command) -> CallResult:
        with ExitStack() as stack:
            directory = None
            if self.directory is not None:
                opened = stack.enter_context(self.workspace.store.open_directory(self.directory))
                directory = Directory(self.directory, opened)
            ran = await self.workspace.commands.run(self.user, path, command, directory)
        return await asyncio.to_thread(command.render, ran)  # of long output, that takes a while

    def _open(self) -> AbstractContextManager[Folder]:
        return self.workspace.store.open_folder(self.user, self.folder, self.directory)


def get_user() -> str:
    user = get_user_id()
    assert user, "a request without a token does not come this far"
    return user


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
    user = get_user()
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
