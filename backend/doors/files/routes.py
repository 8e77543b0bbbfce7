"""The paths of a conversation's files, and of what its agents did."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from backend.doors.identity import Identity
from backend.doors.parts import parts_of
from backend.doors.runs.asked import asked_by, read

_FILES = "/chats/{chat_id}/files"
TaskId = Annotated[int, Path(ge=1, lt=2**63)]
Number = Annotated[int, Path(ge=0, lt=2**31)]


class Commit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str = Field(min_length=1, max_length=1_000)


class Beginning(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=1_000)
    left: str | None = None
    """The id or the name of the conversation that is cleared, so that this one begins in its place."""


def files(identity: Identity) -> APIRouter:
    router = APIRouter()

    @router.post("/conversations")
    async def begin(request: Request) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, Beginning)
        return await parts_of(request).files.begin(asked.title, acting, left=asked.left)

    @router.get("/chats/{chat_id}/work/{item_id}/{number}")
    async def get_details(request: Request, chat_id: str, item_id: str, number: Number) -> Response:
        return await parts_of(request).files.details(chat_id, item_id, number, await asked_by(request, identity))

    @router.get("/tasks/{task_id}/files")
    async def list_files_of_task(request: Request, task_id: TaskId) -> Response:
        return await parts_of(request).files.of_task(task_id, await asked_by(request, identity))

    @router.get(_FILES)
    async def list_files(request: Request, chat_id: str) -> Response:
        return await parts_of(request).files.list(chat_id, await asked_by(request, identity))

    @router.get(f"{_FILES}/{{path:path}}")
    async def get_file(request: Request, chat_id: str, path: str) -> Response:
        return await parts_of(request).files.get(chat_id, path, await asked_by(request, identity))

    @router.put(f"{_FILES}/{{path:path}}")
    async def put_file(request: Request, chat_id: str, path: str) -> Response:
        return await parts_of(request).files.put(chat_id, path, request, await asked_by(request, identity))

    @router.delete(f"{_FILES}/{{path:path}}")
    async def delete_file(request: Request, chat_id: str, path: str) -> Response:
        return await parts_of(request).files.delete(chat_id, path, await asked_by(request, identity))

    @router.post("/chats/{chat_id}/commit")
    async def commit(request: Request, chat_id: str) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, Commit)
        return await parts_of(request).files.commit(chat_id, asked.message, acting)

    return router
