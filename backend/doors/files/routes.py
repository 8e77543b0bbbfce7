"""The paths of a conversation's files, and of what its agents did."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from backend.api.dependencies import LimitedUser, Services
from backend.api.routing import UserRoute

_FILES = "/chats/{chat_id}/files"
_FILE = f"{_FILES}/{{path:path}}"
TaskId = Annotated[int, Path(ge=1, lt=2**63)]
Number = Annotated[int, Path(ge=0, lt=2**31)]

router = APIRouter(route_class=UserRoute)


class Commit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(min_length=1, max_length=1_000)


class NewConversation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=1_000)
    left: str | None = None
    """The id or the name of the conversation that is cleared, so that this one begins in its place."""


@router.post("/conversations", status_code=201)
async def create_conversation(services: Services, user: LimitedUser, body: NewConversation) -> dict[str, Any]:
    return await services.files.begin(body.title, user, left=body.left)


@router.get("/chats/{chat_id}/work/{item_id}/{number}")
async def get_details(
    services: Services, user: LimitedUser, chat_id: str, item_id: str, number: Number
) -> dict[str, Any]:
    return await services.files.details(chat_id, item_id, number, user)


@router.get("/tasks/{task_id}/files")
async def list_files_of_task(services: Services, user: LimitedUser, task_id: TaskId) -> dict[str, Any]:
    return await services.files.of_task(task_id, user)


@router.get(_FILES)
async def list_files(services: Services, user: LimitedUser, chat_id: str) -> dict[str, Any]:
    return await services.files.list(chat_id, user)


@router.get(_FILE)
async def get_file(services: Services, user: LimitedUser, chat_id: str, path: str) -> Response:
    return await services.files.get(chat_id, path, user)


@router.put(_FILE)
async def put_file(request: Request, services: Services, user: LimitedUser, chat_id: str, path: str) -> Response:
    return await services.files.put(chat_id, path, request, user)


@router.delete(_FILE, status_code=204)
async def delete_file(services: Services, user: LimitedUser, chat_id: str, path: str) -> None:
    await services.files.delete(chat_id, path, user)


@router.post("/chats/{chat_id}/commit")
async def commit(services: Services, user: LimitedUser, chat_id: str, body: Commit) -> dict[str, Any]:
    return await services.files.commit(chat_id, body.message, user)
