"""The paths of a conversation's files, and of what sub-agents did and wrote."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from backend.api.body import UserRoute
from backend.api.dependencies import AppServices, LimitedUser, Owner
from backend.api.files.service import CreatedConversation
from backend.conversations.errors import OwnerOnly

_FILES = "/chats/{chat_id}/files"
_FILE = f"{_FILES}/{{path:path}}"
TaskId = Annotated[int, Path(ge=1, lt=2**63)]
Number = Annotated[int, Path(ge=0, lt=2**31)]

_NO_OWNER = (
    "Only the owner of a directory can begin a conversation there: with ./todo chat --here, while ./todo up runs "
    "without sign-in and not as root."
)

router = APIRouter(route_class=UserRoute)


class Commit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(min_length=1, max_length=1_000)


class Title(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=1_000)
    left: str | None = None
    """The id or the name of the conversation that is cleared, so that this one begins in its place."""
    directory: str | None = Field(default=None, min_length=1, max_length=4_000)
    """The full path of a directory on this machine in which the conversation works; only its owner may send it."""


@router.post("/conversations", status_code=201)
async def create_conversation(services: AppServices, user: LimitedUser, body: Title) -> CreatedConversation:
    """Creates a conversation without messages: for files that are uploaded before the first one, or in a directory."""
    if body.directory is not None and not user.is_owner:
        raise OwnerOnly(_NO_OWNER)
    return await services.files.create_conversation(
        user.user_id, body.title, replaced=body.left, directory=body.directory
    )


@router.get("/chats/{chat_id}/work/{item_id}/{number}")
async def get_details(
    services: AppServices, user: LimitedUser, chat_id: str, item_id: str, number: Number
) -> dict[str, Any]:
    """Returns the full details of a call that a step of a sub-agent shows shortened."""
    return await services.files.get_call_details(user.user_id, chat_id, item_id, number)


@router.get("/tasks/{task_id}/files")
async def list_files_of_task(services: AppServices, user: LimitedUser, task_id: TaskId) -> dict[str, Any]:
    """Lists the files that sub-agents wrote for a task."""
    return await services.files.list_for_task(user.user_id, task_id)


@router.get(_FILES)
async def list_files(services: AppServices, user: Owner, chat_id: str) -> dict[str, Any]:
    """Lists the files of a conversation."""
    return await services.files.list(user.user_id, chat_id)


@router.get(_FILE)
async def get_file(services: AppServices, user: Owner, chat_id: str, path: str) -> Response:
    """Serves a file: short text to be shown as text, everything else as a download."""
    return await services.files.get(user.user_id, chat_id, path)


@router.put(_FILE)
async def put_file(request: Request, services: AppServices, user: Owner, chat_id: str, path: str) -> Response:
    """Stores a file in a conversation's folder."""
    return await services.files.put(user.user_id, chat_id, path, request)


@router.delete(_FILE, status_code=204)
async def delete_file(services: AppServices, user: Owner, chat_id: str, path: str) -> None:
    await services.files.delete(user.user_id, chat_id, path)


@router.post("/chats/{chat_id}/commit")
async def commit(services: AppServices, user: Owner, chat_id: str, body: Commit) -> dict[str, Any]:
    """Commits the conversation's files with git."""
    return await services.files.commit(user.user_id, chat_id, body.message)
