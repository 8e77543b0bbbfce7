"""The paths of the page's task list: `/tasks` and below it, JSON for the signed-in user."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import NaiveDatetime

from backend.api.body import UserRoute
from backend.api.dependencies import AppServices, IdempotencyKey, LimitedUser, PollingUser, forbid_caching
from backend.api.tasks import schemas
from backend.api.tasks.metrics import Report
from backend.api.tasks.service import TaskQuery
from backend.errors import InvalidRequest

_LARGEST = 2**63 - 1
_MOST = 100
_MOST_ALSO = 99

TaskId = Annotated[int, Path(ge=1, le=_LARGEST)]
Number = Annotated[int | None, Query(ge=0, le=_LARGEST)]
Limit = Annotated[int, Query(ge=1, le=_MOST)]


router = APIRouter(route_class=UserRoute, include_in_schema=False, dependencies=[Depends(forbid_caching)])


@router.get("/tasks")
async def list_tasks(
    report: Report,
    services: AppServices,
    user: LimitedUser,
    view: schemas.View,
    query: str | None = None,
    label: str | None = None,
    priority: Literal["high", "medium", "low", "none"] | None = None,
    cursor: str | None = None,
    limit: Limit = _MOST,
) -> schemas.TaskPage:
    """Returns a page of a view of the task list."""
    page = await services.task_list.load_page(TaskQuery(view, limit, cursor or None, query, label, priority), user)
    report.tasks = len(page.tasks)
    return page


@router.get("/tasks/changes")
async def get_changes(_: Report, services: AppServices, user: PollingUser, after: Number = None) -> schemas.TaskChanges:
    """Returns which tasks have changed since a number; the page asks every second and a half."""
    return await services.task_list.load_changes(after, user)


@router.get("/tasks/preview")
async def preview_task(
    _: Report,
    services: AppServices,
    user: PollingUser,
    text: Annotated[str, Query(max_length=schemas.LONGEST_TEXT)],
    mode: Literal["task", "date"] = "task",
    dates: bool = True,
    written: NaiveDatetime | None = None,
) -> schemas.TaskPreview:
    """Returns what a text says of a new task; with `mode=date`, which date it is, if it is nothing else."""
    if mode == "date":
        return await services.task_list.preview_date(text, user, written)
    return await services.task_list.preview(schemas.TaskText(text=text or " ", dates=dates, written=written), user)


@router.get("/tasks/{task_id}")
async def get_task(_: Report, services: AppServices, user: LimitedUser, task_id: TaskId) -> schemas.Task:
    """Returns a task in any state."""
    return await services.task_list.find(task_id, user)


@router.post("/tasks", status_code=201)
async def add_task(
    report: Report, services: AppServices, user: LimitedUser, key: IdempotencyKey, body: schemas.NewTaskBody
) -> schemas.ChangedTasks:
    """Adds a task of its fields or of a text; under the same idempotency key once. `report` measures the request."""
    if isinstance(body, schemas.TaskText):
        return report.count(await services.task_list.add_text(body, user, key))
    return report.count(await services.task_list.add(body, user, key))


@router.post("/tasks/undo")
async def undo(
    report: Report, services: AppServices, user: LimitedUser, key: IdempotencyKey, body: schemas.Undo
) -> schemas.ChangedTasks:
    """Undoes all changes of a batch."""
    return report.count(await services.task_list.undo(body.batch, user, key))


@router.patch("/tasks/{task_id}")
async def update_task(
    report: Report,
    services: AppServices,
    user: LimitedUser,
    key: IdempotencyKey,
    task_id: TaskId,
    body: schemas.TaskUpdate,
) -> schemas.ChangedTasks:
    """Changes a task by hand, completes or reopens it, or undoes its last change; `also` names other tasks."""
    return report.count(await services.task_list.update(task_id, body, user, key))


@router.delete("/tasks/{task_id}")
async def delete_task(
    report: Report, services: AppServices, user: LimitedUser, key: IdempotencyKey, task_id: TaskId, also: str = ""
) -> schemas.ChangedTasks:
    """Deletes a task, and the tasks in `also`."""
    return report.count(await services.task_list.delete(task_id, _parse_ids(also), user, key))


def _parse_ids(also: str) -> list[int]:
    """Parses task numbers separated by commas. Raises `InvalidRequest`."""
    parts = [part.strip() for part in also.split(",")] if also else []
    if len(parts) > _MOST_ALSO or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InvalidRequest(f"also must be a list of up to {_MOST_ALSO} task numbers, separated by commas.")
    return [*map(int, parts)]
