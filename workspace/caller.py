"""Who makes a tool call, and in which folder: what the tools depend on, and no client ever sees."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

from fastmcp import Context
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.tools import ToolResult

from common.tool_server import calls
from common.tool_server.calls import read_label, user_of_request
from workspace.commands import tools as running
from workspace.commands.errors import CommandError
from workspace.commands.running import Stopped
from workspace.files import answers, listing
from workspace.files.folder import Answer, Folder, Store
from workspace.refusals import NoFolder, Refused

_CONTEXT: Context = CurrentContext()
_locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()


@dataclass
class Room:
    """What all calls share."""

    store: Store
    commands: running.Commands
    confinement: str | None = None
    """What commands are confined by; None where there is nothing, and no command."""
    sweeping: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class Caller:
    person: str
    folder: str
    key: str | None
    room: Room

    async def read(self, work: Callable[[Folder], Answer]) -> ToolResult:
        """What the work finds in the folder, in a thread of its own."""
        return _told(await asyncio.to_thread(self._in_folder, work))

    async def change(self, tool: str, arguments: dict[str, Any], work: Callable[[Folder], Answer]) -> ToolResult:
        """What the work does to the folder, one after the other; what was done before under this key is told again."""
        asked = {"tool": tool, **arguments}

        def once(folder: Folder) -> Answer:
            if before := self._before(folder.answers, asked):
                return before
            answer = work(folder)
            self._keep(folder.answers, asked, answer)
            return answer

        async with one_at_a_time(self.person):
            calls.committing()  # a thread is not stopped half way
            return _told(await asyncio.to_thread(self._in_folder, once))

    async def search(self, **arguments: Any) -> ToolResult:
        path, _ = await asyncio.to_thread(self.room.store.paths, self.person, self.folder)
        return _told(await self._run(path, "search_files", arguments))

    async def run(self, tool: Literal["run_command", "run_python", "commit"], **arguments: Any) -> ToolResult:
        """Whoever sends it again with its key waits for its end, and is told that."""
        asked = {"tool": tool, **arguments}
        path, kept = await asyncio.to_thread(self.room.store.paths, self.person, self.folder)
        async with one_at_a_time(self.person, self.folder, self.key or object()):
            if before := await asyncio.to_thread(self._before, kept, asked):
                return _told(before)
            before = await asyncio.to_thread(self._state)
            answer = await self._run(path, tool, arguments)
            wrote = listing.changed(before, await asyncio.to_thread(self._state))
            answer = Answer(answer.text, {**answer.details, "files": wrote})
            await asyncio.to_thread(self._keep, kept, asked, answer)
            return _told(answer)

    def _state(self) -> dict[str, listing.Entry] | None:
        with self.room.store.folder(self.person, self.folder) as folder:
            return listing.state(folder)

    async def _run(self, path: Path, tool: str, arguments: dict[str, Any]) -> Answer:
        try:
            done = await getattr(self.room.commands, tool)(self.person, path, **arguments)
        except CommandError as error:
            raise Refused(sentence=str(error)) from None
        except Stopped as stopped:
            # Whoever cancels a command is told how far it came.
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            done = running.answer_of(stopped.ran)
        return Answer(done.text, done.details)

    def _in_folder(self, work: Callable[[Folder], Answer]) -> Answer:
        with self.room.store.folder(self.person, self.folder) as folder:
            return work(folder)

    def _before(self, kept: Path, asked: dict[str, Any]) -> Answer | None:
        return answers.find(kept, self.key, asked) if self.key else None

    def _keep(self, kept: Path, asked: dict[str, Any], answer: Answer) -> None:
        if self.key:
            answers.keep(kept, self.key, asked, answer)


@asynccontextmanager
async def one_at_a_time(*of: object) -> AsyncIterator[None]:
    lock = _locks.setdefault(of, asyncio.Lock())
    async with lock:
        yield


async def _caller(context: Context = _CONTEXT) -> Caller:
    person = user_of_request()
    assert person, "a call without a token does not come this far"
    if (call := calls.current.get()) is not None:
        call.owner = person
    request = context.request_context
    meta = (request and request.meta) or {}
    folder = read_label(meta, "todo/folder", longest=100)
    if folder is None:
        raise NoFolder
    key = read_label(meta, "todo/idempotency_key", longest=200)
    return Caller(person, folder, key, context.lifespan_context["room"])


CALLER: Caller = Depends(_caller)


def _told(answer: Answer) -> ToolResult:
    return ToolResult(content=answer.text, structured_content=dict(answer.details))
