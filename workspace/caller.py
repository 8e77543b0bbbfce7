"""Who makes a tool call, and in which folder: what the tools depend on, and no client ever sees."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from fastmcp import Context
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.tools import ToolResult

from service.tool_server import reports, running_calls
from service.tool_server.meta import label
from service.tool_server.running_calls import person_of_request
from workspace.files import answers
from workspace.files.folder import Answer, Folder, Store, hash_of
from workspace.refusals import NoFolder

_CONTEXT: Context = CurrentContext()
_locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()


@dataclass(frozen=True)
class Caller:
    person: str
    folder: str
    key: str | None
    store: Store

    async def read(self, work: Callable[[Folder], Answer]) -> ToolResult:
        """What the work finds in the folder, in a thread of its own."""
        return _told(await asyncio.to_thread(self._in_folder, work))

    async def change(self, tool: str, arguments: dict[str, Any], work: Callable[[Folder], Answer]) -> ToolResult:
        """What the work does to the folder, one after the other; what was done before under this key is told again."""
        asked = {"tool": tool, **arguments}

        def once(folder: Folder) -> Answer:
            if self.key and (before := answers.find(folder.answers, self.key, asked)):
                return before
            answer = work(folder)
            if self.key:
                answers.keep(folder.answers, self.key, asked, answer)
            return answer

        async with one_at_a_time(self.person, self.folder):
            running_calls.committing()  # a thread is not stopped half way
            return _told(await asyncio.to_thread(self._in_folder, once))

    def _in_folder(self, work: Callable[[Folder], Answer]) -> Answer:
        with self.store.folder(self.person, self.folder) as folder:
            return work(folder)


@contextlib.asynccontextmanager
async def one_at_a_time(*of: str) -> AsyncIterator[None]:
    lock = _locks.setdefault(of, asyncio.Lock())
    async with lock:
        yield


async def _caller(context: Context = _CONTEXT) -> Caller:
    person = person_of_request()
    assert person, "a call without a token does not come this far"
    if (call := reports.current.get()) is not None:
        call.owner = hash_of(person)
    request = context.request_context
    meta = (request and request.meta) or {}
    folder = label(meta, "todo/folder", longest=100)
    if folder is None:
        raise NoFolder
    key = label(meta, "todo/idempotency_key", longest=200)
    return Caller(person, folder, key, context.lifespan_context["store"])


CALLER: Caller = Depends(_caller)


def _told(answer: Answer) -> ToolResult:
    return ToolResult(content=answer.text, structured_content=dict(answer.details))
