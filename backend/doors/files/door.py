"""A conversation's files over HTTP: what an agent wrote is opened as if a stranger had sent it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import chats, statements
from backend.conversation.acting import Acting
from backend.conversation.agents import steps
from backend.conversation.model_input import history
from backend.conversation.runs import limits
from backend.conversation.runs.limits import Limits
from backend.errors import BackendError, NotFound
from backend.tools.workspace.files import FolderFiles
from service.clock import Clock
from service.database import new_id, pipelined

_SHOWN_BYTES = 200_000
_MOST_OF_TASK = 50  # files
_BYTES = "application/octet-stream"
_SAFE = {
    "Content-Security-Policy": "sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
}


class NoWorkspace(BackendError):
    """Files are not available: this server has no workspace."""

    code, status = "no_workspace", 404


class FilesDoor:
    def __init__(self, engine: AsyncEngine, files: FolderFiles | None, allowed: Limits, clock: Clock) -> None:
        self._engine = engine
        self._files = files
        self._limits = allowed
        self._clock = clock

    @property
    def is_starting(self) -> bool:
        """Whether it is not known yet what agents may do."""
        return self._files is not None and self._files.is_starting

    def agents(self) -> dict[str, object] | None:
        """What people may know of agents; None where there is no workspace."""
        return self._files.agents() if self._files else None

    async def begin(self, title: str, acting: Acting, *, left: str | None = None) -> dict[str, Any]:
        """A conversation in which nothing is said yet, so that files can be put in; in place of one that is `left`."""
        if self._files is None:
            raise NoWorkspace
        left = await self._conversation(left, acting) if left is not None else None
        chat_id, title = new_id("thr"), history.title_from(title)
        async with pipelined(self._engine, acting.user_id) as pipeline:
            await limits.check(pipeline, self._limits, user_id=acting.user_id, is_new=True)
            await statements.send_conversation(pipeline, chat_id, user_id=acting.user_id, title=title, left=left)
        return {"id": chat_id, "title": title, "created_at": self._clock().isoformat()}

    async def details(self, chat_id: str, item_id: str, number: int, acting: Acting) -> dict[str, Any]:
        """What unfolds below a step of an agent's work."""
        conversation_id = await self._conversation(chat_id, acting)
        async with pipelined(self._engine, acting.user_id) as pipeline:
            sent = await steps.shown_at(pipeline, conversation_id, item_id, number, user_id=acting.user_id)
        found = await steps.read(sent)
        if not found:
            raise NotFound
        return found[0].details or {}

    async def of_task(self, task_id: int, acting: Acting) -> dict[str, Any]:
        """The files that agents wrote for a task, those that are still there, each as it is now."""
        if self._files is None:
            raise NoWorkspace
        async with pipelined(self._engine, acting.user_id) as pipeline:
            sent = await steps.written_for(pipeline, task_id, user_id=acting.user_id, most=_MOST_OF_TASK)
        listed: dict[str, dict[str, Any]] = {}
        found: list[dict[str, object]] = []
        for row in await sent.fetchall():
            chat_id, path = row["conversation_id"], row["path"]
            if chat_id not in listed:
                listed[chat_id] = await self._files.list(chat_id, user_id=acting.user_id)
            sizes = {one["path"]: one["size"] for one in listed[chat_id]["files"]}
            if path in sizes or listed[chat_id]["more"]:
                found.append({"chat_id": chat_id, "path": path, "size": sizes.get(path)})
        return {"files": found}

    async def list(self, chat_id: str, acting: Acting) -> dict[str, Any]:
        folder, files = await self._folder(chat_id, acting)
        return await files.list(folder, user_id=acting.user_id)

    async def get(self, chat_id: str, path: str, acting: Acting) -> Response:
        """Text that is not long is shown as text; all else is saved."""
        folder, files = await self._folder(chat_id, acting)
        async with AsyncExitStack() as stack:
            found = await stack.enter_async_context(files.opened(folder, path, user_id=acting.user_id))
            size = int(found.headers.get("content-length", _SHOWN_BYTES + 1))
            if size <= _SHOWN_BYTES:
                content = await found.aread()
                if _is_text(content):
                    return Response(content, media_type="text/plain; charset=utf-8", headers=_SAFE)
                return Response(content, media_type=_BYTES, headers=_SAFE | _saved(path))
            kept = stack.pop_all()
        headers = {**_SAFE, **_saved(path), "Content-Length": str(size)}
        return StreamingResponse(_pieces(found.aiter_bytes(), kept), media_type=_BYTES, headers=headers)

    async def put(self, chat_id: str, path: str, request: Request, acting: Acting) -> Response:
        folder, files = await self._folder(chat_id, acting)
        given = request.headers.get("content-length")
        headers = {"Content-Length": given} if given is not None else {}
        status, told = await files.put(folder, path, request.stream(), headers, user_id=acting.user_id)
        return JSONResponse(told, status_code=status)

    async def delete(self, chat_id: str, path: str, acting: Acting) -> None:
        folder, files = await self._folder(chat_id, acting)
        await files.delete(folder, path, user_id=acting.user_id)

    async def commit(self, chat_id: str, message: str, acting: Acting) -> dict[str, Any]:
        folder, files = await self._folder(chat_id, acting)
        return {"message": await files.commit(folder, message, user_id=acting.user_id)}

    async def _folder(self, chat_id: str, acting: Acting) -> tuple[str, FolderFiles]:
        """A conversation's, named as it is, and what opens it."""
        conversation_id = await self._conversation(chat_id, acting)
        if self._files is None:
            raise NoWorkspace
        return conversation_id, self._files

    async def _conversation(self, chat_id: str, acting: Acting) -> str:
        """Its own id; raises `NotFound` for one that is not this person's."""
        chats.check(chat_id)
        chat = await chats.find(self._engine, chat_id, user_id=acting.user_id)
        if chat is None:
            raise NotFound
        return chat.id


async def _pieces(pieces: AsyncIterator[bytes], kept: AsyncExitStack) -> AsyncIterator[bytes]:
    async with kept:
        async for piece in pieces:
            yield piece


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _saved(path: str) -> dict[str, str]:
    name = quote(path.rpartition("/")[2], safe="")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
