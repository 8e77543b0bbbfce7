"""The folder of the conversation in a request's path, and how one of its files is sent to a browser."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Response
from fastapi.responses import StreamingResponse

from backend.api.dependencies import AppServices, Owner
from backend.conversations.conversations import Conversation
from backend.errors import BackendError
from backend.tools.workspace.files import FolderFiles

_SHOWN_BYTES = 200_000
_BYTES = "application/octet-stream"
# What a sub-agent wrote is served as if a stranger had sent it: it never runs as a page.
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


@dataclass(frozen=True, slots=True)
class ConversationFolder:
    """The files of a conversation, whose folder is named by its id."""

    files: FolderFiles
    user_id: str
    chat: Conversation

    async def send_file(self, path: str) -> Response:
        """Sends short text to be shown as plain text, and everything else as a download."""
        async with AsyncExitStack() as stack:
            opening = self.files.open_file(self.chat.id, path, user_id=self.user_id, directory=self.chat.directory)
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


async def open_folder(services: AppServices, user: Owner, chat_id: str) -> ConversationFolder:
    chat = await services.interactions.find(user.user_id, chat_id)
    if services.folder_files is None:
        raise NoWorkspace
    return ConversationFolder(services.folder_files, user.user_id, chat)


OpenFolder = Annotated[ConversationFolder, Depends(open_folder)]


async def open_folder_to_change(folder: OpenFolder) -> ConversationFolder:
    if folder.chat.directory is not None:
        raise InDirectory
    return folder


ChangedFolder = Annotated[ConversationFolder, Depends(open_folder_to_change)]


async def _stream(chunks: AsyncIterator[bytes], until_sent: AsyncExitStack) -> AsyncIterator[bytes]:
    async with until_sent:
        async for chunk in chunks:
            yield chunk


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _as_attachment(path: str) -> dict[str, str]:
    name = quote(path.rpartition("/")[2], safe="")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
