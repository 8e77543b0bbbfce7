"""The paths of the page's list: `/tasks` and below it, JSON for whoever is signed in."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from backend.conversation.acting import Acting
from backend.conversation.errors import InvalidRequest
from backend.doors.chatkit.stream import check_pace
from backend.doors.identity import Identity
from backend.doors.parts import parts_of
from backend.doors.runs.asked import asked_by, key_of, read
from backend.doors.tasks import shapes
from backend.doors.tasks.door import Asked, TasksDoor
from backend.doors.tasks.reports import reported
from backend.doors.tasks.shapes import Change, NewTask, Undo

_LARGEST = 2**63 - 1
_MOST = 100
_MOST_ALSO = 99

TaskId = Annotated[int, Path(ge=1, le=_LARGEST)]
Number = Annotated[int | None, Query(ge=0, le=_LARGEST)]
Limit = Annotated[int, Query(ge=1, le=_MOST)]


def tasks(identity: Identity) -> APIRouter:
    """A view of the list, what was changed since, and what a person changes by hand."""
    router = APIRouter(include_in_schema=False)
    _let_read(router, identity)
    _let_change(router, identity)
    return router


def _let_read(router: APIRouter, identity: Identity) -> None:
    @router.get("/tasks")
    async def view(
        request: Request,
        view: shapes.View,
        query: str | None = None,
        label: str | None = None,
        priority: Literal["high", "medium", "low", "none"] | None = None,
        cursor: str | None = None,
        limit: Limit = _MOST,
    ) -> Response:
        asked = Asked(view, limit, cursor or None, query, label, priority)
        async with reported(request, "/tasks") as told:
            acting = told.by(await asked_by(request, identity))
            page = await _door(request).page(asked, acting)
            told.tasks = len(page.tasks)
            return _json(page)

    @router.get("/tasks/changes")
    async def changes(request: Request, after: Number = None) -> Response:
        parts = parts_of(request)
        async with reported(request, "/tasks/changes"):
            user_id = await identity.user_of(request, parts.engine)
            check_pace(parts.polls, user_id)  # every second and a half, for as long as the page is open
            return _json(await parts.tasks.news(after, Acting(user_id)))

    @router.get("/tasks/{task_id}")
    async def one(request: Request, task_id: TaskId) -> Response:
        async with reported(request, "/tasks/{id}") as told:
            return _json(await _door(request).one(task_id, told.by(await asked_by(request, identity))))


def _let_change(router: APIRouter, identity: Identity) -> None:
    @router.post("/tasks")
    async def add(request: Request) -> Response:
        async with reported(request, "/tasks") as told:
            acting, key = told.by(await asked_by(request, identity)), key_of(request)
            return _done(told.of(await _door(request).add(await read(request, NewTask), acting, key)), status=201)

    @router.post("/tasks/undo")
    async def undo(request: Request) -> Response:
        async with reported(request, "/tasks/undo") as told:
            acting, key = told.by(await asked_by(request, identity)), key_of(request)
            return _done(told.of(await _door(request).undo((await read(request, Undo)).batch, acting, key)))

    @router.patch("/tasks/{task_id}")
    async def update(request: Request, task_id: TaskId) -> Response:
        async with reported(request, "/tasks/{id}") as told:
            acting, key = told.by(await asked_by(request, identity)), key_of(request)
            change = await read(request, Change)
            return _done(told.of(await _door(request).update(task_id, change, acting, key)))

    @router.delete("/tasks/{task_id}")
    async def delete(request: Request, task_id: TaskId, also: str = "") -> Response:
        async with reported(request, "/tasks/{id}") as told:
            acting, key = told.by(await asked_by(request, identity)), key_of(request)
            return _done(told.of(await _door(request).delete(task_id, _ids(also), acting, key)))


def _ids(also: str) -> list[int]:
    found = [part.strip() for part in also.split(",")] if also else []
    if len(found) > _MOST_ALSO or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in found):
        raise InvalidRequest(f"also is a list of at most {_MOST_ALSO} numbers of tasks, with commas between them.")
    return [*map(int, found)]


def _door(request: Request) -> TasksDoor:
    return parts_of(request).tasks


def _json(shape: BaseModel) -> Response:
    return Response(shape.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


def _done(done: shapes.Done, *, status: int = 200) -> Response:
    answer = _json(done)
    answer.status_code = status
    return answer
