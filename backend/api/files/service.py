"""A conversation's files over HTTP: what a sub-agent wrote is served as if a stranger had sent it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from backend.cards.agent_workflow import call_of_workflow, find_call
from backend.conversations import conversations, entries, sub_agents
from backend.conversations.conversations import Conversation, check_chat_id, is_valid
from backend.errors import BackendError, NotFound
from backend.tools.workspace import call_steps
from backend.tools.workspace.files import FolderFiles
from backend.users.limits import UserLimits
from common.database import Database

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


class InDirectory(BackendError):
    """This conversation works in a directory of yours: add, delete and commit files there yourself."""

    code, status = "in_directory", 409


class CreatedConversation(BaseModel):
    """A conversation in which nothing is said yet."""

    id: str
    title: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FilesService:
    """Raises `NotFound` for conversations of others; `folder_files` is None without a workspace."""

    database: Database
    folder_files: FolderFiles | None
    limits: UserLimits

    async def create_conversation(
        self, user_id: str, title: str, *, replaced: str | None, directory: str | None = None
    ) -> CreatedConversation:
        """Creates a conversation without messages, for files or in a directory; `replaced` is the id or name of the one
        that the user cleared. Raises `NoWorkspace`, `NotFound`, `LimitReached`, and `FileRefused` for a directory in
        which no conversation may work.
        """
        if self.folder_files is None:
            raise NoWorkspace
        details: dict[str, str] = {}
        if directory is not None:
            await self.folder_files.check_directory(directory, user_id=user_id)
            details["directory"] = directory
        if replaced is not None:
            details["left"] = (await self._find(user_id, replaced)).id
        conversation_id, head = await conversations.create(
            self.database, user_id, title=title, details=details, limits=self.limits
        )
        return CreatedConversation(id=conversation_id, title=head.title or "", created_at=head.created_at)

    async def get_call_details(self, user_id: str, chat_id: str, item_id: str, number: int) -> dict[str, Any]:
        """Returns the details of the call that a step of a sub-agent's item shows.

        Raises `NotFound`, also before its result.
        """
        conversation_id = (await self._find(user_id, chat_id)).id
        if (call_id := call_of_workflow(item_id)) is None or not is_valid(call_id):
            raise NotFound
        run = await sub_agents.find_in_conversation(self.database, user_id, conversation_id, call_id)
        history = await sub_agents.load_run(self.database, run)
        call = find_call(history.of_run(run.id), number)
        if call is None or call.result_seq is None:
            raise NotFound
        return call.details or {}

    async def list_for_task(self, user_id: str, task_id: int) -> dict[str, Any]:
        """Lists the files that sub-agents wrote for a task and that still exist, with their sizes now, of up to 50."""
        if self.folder_files is None:
            raise NoWorkspace
        calls = await sub_agents.load_calls_for_task(self.database, user_id, task_id)
        paths = (
            (call.conversation_id, path) for call in calls for path in call_steps.written_files(call.tool, call.details)
        )
        folders: dict[str, dict[str, Any]] = {}
        files: list[dict[str, object]] = []
        for chat_id, path in islice(dict.fromkeys(paths), _MOST_OF_TASK):
            if chat_id not in folders:
                folders[chat_id] = await self.folder_files.list(chat_id, user_id=user_id)
            sizes = {file["path"]: file["size"] for file in folders[chat_id]["files"]}
            if path in sizes or folders[chat_id]["more"]:
                files.append({"chat_id": chat_id, "path": path, "size": sizes.get(path)})
        return {"files": files}

    async def list(self, user_id: str, chat_id: str) -> dict[str, Any]:
        """Lists the files of a conversation. Raises `NotFound` and `NoWorkspace`."""
        chat, files = await self._open(user_id, chat_id)
        return await files.list(chat.id, user_id=user_id, directory=chat.directory)

    async def get(self, user_id: str, chat_id: str, path: str) -> Response:
        """Returns a file: short text to be shown as plain text, everything else as a download.

        It never runs as a page.
        """
        chat, files = await self._open(user_id, chat_id)
        async with AsyncExitStack() as stack:
            opening = files.open_file(chat.id, path, user_id=user_id, directory=chat.directory)
            file = await stack.enter_async_context(opening)
            size = int(file.headers.get("content-length", _SHOWN_BYTES + 1))
            if size <= _SHOWN_BYTES:
                content = await file.aread()
                if _is_text(content):
                    return Response(content, media_type="text/plain; charset=utf-8", headers=_SAFE)
                return Response(content, media_type=_BYTES, headers=_SAFE | _as_attachment(path))
            until_sent = stack.pop_all()
        headers = {**_SAFE, **_as_attachment(path), "Content-Length": str(size)}
        return StreamingResponse(_stream(file.aiter_bytes(), until_sent), media_type=_BYTES, headers=headers)

    async def put(self, user_id: str, chat_id: str, path: str, request: Request) -> Response:
        """Streams a file to the conversation's folder and stores the command `/put PATH` for its event log; returns the
        workspace's response. The body's content type is ignored.
        """
        folder, files = await self._open_to_change(user_id, chat_id)
        length = request.headers.get("content-length")
        headers = {"Content-Length": length} if length is not None else {}
        status, content = await files.put(folder, path, request.stream(), headers, user_id=user_id)
        await entries.add_command(self.database, user_id, folder, f"/put {path}", content)
        return JSONResponse(content, status_code=status)

    async def delete(self, user_id: str, chat_id: str, path: str) -> None:
        """Deletes a file."""
        folder, files = await self._open_to_change(user_id, chat_id)
        await files.delete(folder, path, user_id=user_id)

    async def commit(self, user_id: str, chat_id: str, message: str) -> dict[str, Any]:
        """Commits the conversation's files and stores the command `/commit` for its event log."""
        folder, files = await self._open_to_change(user_id, chat_id)
        result = {"message": await files.commit(folder, message, user_id=user_id)}
        await entries.add_command(self.database, user_id, folder, f"/commit {message}", result)
        return result

    async def _open_to_change(self, user_id: str, chat_id: str) -> tuple[str, FolderFiles]:
        """Returns the conversation's folder, which is named by its id, and the files.

        Raises `InDirectory`, `NotFound` and `NoWorkspace`.
        """
        chat, files = await self._open(user_id, chat_id)
        if chat.directory is not None:
            raise InDirectory
        return chat.id, files

    async def _open(self, user_id: str, chat_id: str) -> tuple[Conversation, FolderFiles]:
        """Returns the conversation and the files. Raises `NotFound` and `NoWorkspace`."""
        chat = await self._find(user_id, chat_id)
        if self.folder_files is None:
            raise NoWorkspace
        return chat, self.folder_files

    async def _find(self, user_id: str, chat_id: str) -> Conversation:
        """Loads a conversation by its id or name. Raises `NotFound` and `InvalidRequest`."""
        check_chat_id(chat_id)
        return await conversations.find(self.database, user_id, chat_id)


async def _stream(chunks: AsyncIterator[bytes], until_sent: AsyncExitStack) -> AsyncIterator[bytes]:
    """Yields the chunks of a file and closes it afterwards."""
    async with until_sent:
        async for chunk in chunks:
            yield chunk


def _is_text(content: bytes) -> bool:
    """Whether the content is UTF-8 without NUL."""
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _as_attachment(path: str) -> dict[str, str]:
    """Returns the header that makes a browser download the file under its name."""
    name = quote(path.rpartition("/")[2], safe="")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
