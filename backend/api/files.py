"""The paths of a conversation's files, and of what sub-agents did and wrote."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from backend.api.dependencies import AppServices, EndTurn, LimitedUser, Owner, UserRoute
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.api.sse import UserStream
from backend.cards.agent_steps import list_written_files
from backend.cards.agent_workflow import find_call
from backend.cards.widget import record_of_item
from backend.conversations import conversations, sub_agents
from backend.conversations.conversations import Conversation, is_valid
from backend.conversations.errors import OwnerOnly
from backend.errors import BackendError, NotFound
from backend.tools.workspace.files import FolderFiles
from common.text import remove_invisible

_FILES = "/chats/{chat_id}/files"
_FILE = f"{_FILES}/{{path:path}}"
TaskId = Annotated[int, Path(ge=1, lt=2**63)]
Number = Annotated[int, Path(ge=0, lt=2**31)]

_MAX_FILES_OF_TASK = 50
_NO_OWNER = (
    "Only the owner of a directory can begin a conversation there: with ./todo chat --here, while ./todo up runs "
    "without sign-in and not as root."
)

_SHOWN_BYTES = 200_000
_BYTES = "application/octet-stream"
_BINARY = {"type": "string", "format": "binary"}
_CONTENT = {
    200: {"description": "The file.", "content": {"text/plain": {"schema": _BINARY}, _BYTES: {"schema": _BINARY}}}
}
_UPLOAD = {"requestBody": {"required": True, "content": {"*/*": {"schema": _BINARY}}}}
# What a sub-agent wrote is served as if a stranger had sent it: it never runs as a page.
_SAFE = {
    "Content-Security-Policy": "sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
}

router = APIRouter(route_class=UserRoute)


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
        return UserStream(_stream(file.aiter_bytes(), until_sent), media_type=_BYTES, headers=headers)


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


class Commit(RequestBody):
    message: str = Field(min_length=1, max_length=1_000)


class NewConversation(RequestBody):
    title: str = Field(min_length=1, max_length=1_000)
    left: str | None = None
    """The id or the name of the conversation that is cleared, so that this one begins in its place."""
    directory: str | None = Field(default=None, min_length=1, max_length=4_000)
    """The full path of a directory on this machine in which the conversation works; only its owner may send it."""


class StoredFile(BaseModel):
    path: str
    kind: Literal["file"]
    size: int = Field(description="In bytes.")
    modified: datetime


class StoredFiles(BaseModel):
    files: list[StoredFile]
    more: bool = Field(description="Whether there are more files, which are not listed.")


class WrittenFile(BaseModel):
    path: str
    bytes: int
    created: bool = Field(description="false: it replaced a file.")


_REPLACED = {200: {"model": WrittenFile, "description": "The file was replaced."}}


class FileOfTask(BaseModel):
    chat_id: str
    path: str
    size: int | None = Field(description="In bytes; null: not known, as the folder has too many files.")


class FilesOfTask(BaseModel):
    files: list[FileOfTask]


class Committed(BaseModel):
    message: str = Field(description="What git printed.")


class CreatedConversation(BaseModel):
    id: str
    title: str
    created_at: datetime


@router.post("/conversations", status_code=201, responses=errors(404))
async def create_conversation(services: AppServices, user: LimitedUser, body: NewConversation) -> CreatedConversation:
    """Creates a conversation without messages: for files that are uploaded before the first one, or in a directory."""
    if body.directory is not None and not user.is_owner:
        raise OwnerOnly(_NO_OWNER)
    if services.folder_files is None:
        raise NoWorkspace
    details: dict[str, str] = {}
    if body.directory is not None:
        await services.folder_files.check_directory(body.directory, user_id=user.user_id)
        details["directory"] = body.directory
    if body.left is not None:
        details["left"] = (await services.interactions.find(user.user_id, body.left)).id
    conversation_id, head = await conversations.create(
        services.database, user.user_id, title=body.title, details=details, limits=services.runs.limits
    )
    return CreatedConversation(id=conversation_id, title=head.title or "", created_at=head.created_at)


@router.get("/chats/{chat_id}/work/{item_id}/{number}", responses=errors(404))
async def get_call_details(
    services: AppServices, user: LimitedUser, chat_id: str, item_id: str, number: Number
) -> dict[str, Any]:
    """Returns the full details of a call that a step of a sub-agent shows shortened."""
    conversation = await services.interactions.find(user.user_id, chat_id)
    if not is_valid(call_id := record_of_item(item_id)):
        raise NotFound.of("item", item_id)
    run = await sub_agents.find_in_conversation(services.database, user.user_id, conversation.id, call_id)
    history = await sub_agents.load_run(services.database, run)
    call = find_call(history.of_run(run.id).records, number)
    if call is None or call.result_seq is None:
        raise NotFound.of("step", f"{number} of {item_id}")
    return call.details or {}


@router.get("/tasks/{task_id}/files", responses=errors(404))
async def list_files_of_task(services: AppServices, user: LimitedUser, task_id: TaskId) -> FilesOfTask:
    """Lists the newest files that sub-agents wrote for a task and that still exist, with their sizes now."""
    if (folder_files := services.folder_files) is None:
        raise NoWorkspace
    calls = await sub_agents.load_calls_for_task(services.database, user.user_id, task_id)
    paths = [(call.conversation_id, path) for call in calls for path in list_written_files(call.tool, call.details)]
    folders: dict[str, dict[str, Any]] = {}
    files: list[FileOfTask] = []
    for chat_id, path in islice(dict.fromkeys(paths), _MAX_FILES_OF_TASK):
        if chat_id not in folders:
            folders[chat_id] = await folder_files.list(chat_id, user_id=user.user_id)
        sizes = {file["path"]: file["size"] for file in folders[chat_id]["files"]}
        if path in sizes or folders[chat_id]["more"]:
            files.append(FileOfTask(chat_id=chat_id, path=path, size=sizes.get(path)))
    return FilesOfTask(files=files)


@router.get(_FILES, responses=errors(404))
async def list_files(folder: OpenFolder) -> StoredFiles:
    found = await folder.files.list(folder.chat.id, user_id=folder.user_id, directory=folder.chat.directory)
    return StoredFiles.model_validate(found)


@router.get(_FILE, response_class=Response, responses=_CONTENT | errors(404))
async def get_file(folder: OpenFolder, path: str) -> Response:
    return await folder.send_file(path)


@router.put(
    _FILE,
    status_code=201,
    response_model=WrittenFile,
    responses=_REPLACED | errors(404, 409, 507),
    openapi_extra=_UPLOAD,
)
async def put_file(
    request: Request, services: AppServices, folder: ChangedFolder, path: str, end_turn: EndTurn
) -> Response:
    """Streams a file to the conversation's folder, whatever content type it has; returns the workspace's response."""
    end_turn()  # the workspace counts transfers
    length = request.headers.get("content-length")
    headers = {"Content-Length": length} if length is not None else {}
    status, content = await folder.files.put(folder.chat.id, path, request.stream(), headers, user_id=folder.user_id)
    await conversations.add_command(services.database, folder.user_id, folder.chat.id, f"/put {path}", content)
    return JSONResponse(content, status_code=status)


@router.delete(_FILE, status_code=204, responses=errors(404, 409))
async def delete_file(folder: ChangedFolder, path: str) -> None:
    await folder.files.delete(folder.chat.id, path, user_id=folder.user_id)


@router.post("/chats/{chat_id}/commit", responses=errors(404, 409))
async def commit(services: AppServices, folder: ChangedFolder, body: Commit) -> Committed:
    message = await folder.files.commit(folder.chat.id, body.message, user_id=folder.user_id)
    await conversations.add_command(
        services.database, folder.user_id, folder.chat.id, f"/commit {body.message}", {"message": message}
    )
    return Committed(message=message)


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
    name = quote(remove_invisible(path.rpartition("/")[2]), safe="")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
