"""The paths of the page's task list: `/tasks` and below it, JSON for the signed-in user."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import NaiveDatetime

from backend.api.body import UserRoute
from backend.api.dependencies import AppServices, IdempotencyKey, LimitedUser, PollingUser, forbid_caching
from backend.api.tasks import schemas
from backend.errors import InvalidRequest

_LARGEST = 2**63 - 1
_MOST_ALSO = 99

TaskId = Annotated[int, Path(ge=1, le=_LARGEST)]
Number = Annotated[int | None, Query(ge=0, le=_LARGEST)]

router = APIRouter(route_class=UserRoute, include_in_schema=False, dependencies=[Depends(forbid_caching)])


@router.get("/tasks")
async def list_tasks(
    services: AppServices, user: LimitedUser, query: Annotated[schemas.TaskQuery, Query()]
) -> schemas.TaskPage:
    return await services.task_list.load_page(query, user)


@router.get("/tasks/changes")
async def get_changes(services: AppServices, user: PollingUser, after: Number = None) -> schemas.TaskChanges:
    return await services.task_list.load_changes(after, user)


@router.get("/tasks/preview")
async def preview_task(
    services: AppServices,
    user: PollingUser,
    text: Annotated[str, Query(max_length=schemas.LONGEST_TEXT)],
    mode: Literal["task", "date"] = "task",
    dates: bool = True,
    written: NaiveDatetime | None = None,
) -> schemas.TaskPreview:
    """Returns what a text says of a new task; with `mode=date`, which date it is, if it is nothing else."""
    if mode == "date":
        reading = await services.task_list.read_date(text, user, written)
    else:
        new = schemas.TaskText(text=text or " ", dates=dates, written=written)
        reading = await services.task_list.read_text(new, user)
    return schemas.TaskPreview.from_reading(reading)


@router.get("/tasks/{task_id}")
async def get_task(services: AppServices, user: LimitedUser, task_id: TaskId) -> schemas.Task:
    return await services.task_list.find(task_id, user)


@router.post("/tasks", status_code=201)
async def add_task(
    services: AppServices, user: LimitedUser, key: IdempotencyKey, body: schemas.NewTaskBody
) -> schemas.ChangedTasks:
    if isinstance(body, schemas.TaskText):
        return await services.task_list.add_text(body, user, key)
    return await services.task_list.change("add_task", body.model_dump(exclude_none=True), user, key)


@router.post("/tasks/undo")
async def undo(
    services: AppServices, user: LimitedUser, key: IdempotencyKey, body: schemas.Undo
) -> schemas.ChangedTasks:
    # Which task is named is not looked at: all of the batch's are restored.
    return await services.task_list.change("update_task", {"task_id": 1}, user, key, undo_batch=body.batch)


@router.patch("/tasks/{task_id}")
async def update_task(
    services: AppServices, user: LimitedUser, key: IdempotencyKey, task_id: TaskId, body: schemas.TaskUpdate
) -> schemas.ChangedTasks:
    return await services.task_list.update(task_id, body, user, key)


@router.delete("/tasks/{task_id}")
async def delete_task(
    services: AppServices, user: LimitedUser, key: IdempotencyKey, task_id: TaskId, also: str = ""
) -> schemas.ChangedTasks:
    arguments = {"task_id": task_id, "also": _parse_ids(also)}
    return await services.task_list.change("delete_task", arguments, user, key)


def _parse_ids(also: str) -> list[int]:
    parts = [part.strip() for part in also.split(",")] if also else []
    if len(parts) > _MOST_ALSO or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InvalidRequest(f"also must be a list of up to {_MOST_ALSO} task numbers, separated by commas.")
    return [*map(int, parts)]
