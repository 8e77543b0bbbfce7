"""The paths of the page's task list, `/tasks` and below it: its views, and what the user changes there by hand."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

import english
from backend.api.dependencies import (
    AppServices,
    KeyedRequest,
    LimitedUser,
    PollingUser,
    Services,
    UserRoute,
    forbid_caching,
)
from backend.api.identity import AuthenticatedUser
from backend.api.openapi import errors
from backend.api.tasks import schemas
from backend.errors import BackendError, InvalidRequest, LimitReached, NotFound
from backend.tools.task_tools import PART_TASKS, CallRejected, ChangeCall, TasksUnavailable, derive_id
from backend.users import profiles
from backend.users.idempotency import IdempotencyKey
from common.clock import local_time

_MAX_ID = 2**63 - 1
_MAX_ALSO = 99
_DAYS = 28
_MAX_BATCHES = 100
# The words by which the tools remove the values of fields.
_REMOVED = dict.fromkeys({*schemas.OPTIONAL_FIELDS} - {"labels"}, "none") | {"remind": "default"}

TaskId = Annotated[int, Path(ge=1, le=_MAX_ID)]
Number = Annotated[int | None, Query(ge=0, le=_MAX_ID)]

router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])


class NotPossibleNow(BackendError):
    """This is not possible right now."""

    code, status = "not_possible_now", 409


_ERRORS: Mapping[str, type[BackendError]] = {
    "not_found": NotFound,
    "conflict": NotPossibleNow,
    "limit": LimitReached,
    "unavailable": TasksUnavailable,
}


@router.get("/tasks")
async def list_tasks(
    services: AppServices, user: LimitedUser, query: Annotated[schemas.TaskQuery, Query()]
) -> schemas.TaskPage:
    reader = await _get_reader(services, user)
    with _translated_errors():
        page = await services.tools.get_json("list", **reader, **query.model_dump(exclude_none=True))
        is_first_of_done = query.view == "done" and not query.cursor and not query.offset
        done = await services.tools.get_json("done", **reader, days=_DAYS) if is_first_of_done else {"days": None}
        return schemas.TaskPage(
            view=query.view,
            now=f"{datetime.fromisoformat(page['now']):%Y-%m-%dT%H:%M}",
            time_zone=page["time_zone"],
            total=page["total"],
            sections=page["sections"],
            tasks=[*map(schemas.ListedTask.from_tool, page["tasks"])],
            next_cursor=page["next_cursor"],
            last=page["last"],
            days=done["days"],
        )


@router.get("/tasks/changes")
async def get_changes(services: AppServices, user: PollingUser, after: Number = None) -> schemas.TaskChanges:
    since = {} if after is None else {"after": after}
    with _translated_errors():
        return schemas.TaskChanges.model_validate(
            await services.tools.get_json("changes", user_id=user.user_id, **since)
        )


@router.get("/tasks/counts")
async def count_tasks(services: AppServices, user: PollingUser) -> schemas.TaskCounts:
    with _translated_errors():
        counts = await services.tools.get_json("counts", **await _get_reader(services, user))
        return schemas.TaskCounts.model_validate(counts)


@router.get("/tasks/batches")
async def list_batches(
    services: AppServices, user: PollingUser, limit: Annotated[int, Query(ge=1, le=_MAX_BATCHES)] = 20
) -> schemas.Batches:
    """Lists what can be undone or redone, or was, the newest first."""
    with _translated_errors():
        return schemas.Batches.model_validate(
            await services.tools.get_json("batches", user_id=user.user_id, limit=limit)
        )


@router.get("/tasks/preview")
async def preview_task(
    services: AppServices,
    user: PollingUser,
    text: Annotated[str, Query(max_length=schemas.MAX_TEXT_LENGTH)],
    mode: Literal["task", "date"] = "task",
    dates: bool = True,
    written: schemas.Written | None = None,
) -> schemas.TaskPreview:
    """Returns what a text says of a new task; with `mode=date`, which date it is, if it is nothing else."""
    now = await _find_local_time(services, user, written)

    def read() -> english.ParsedTask:
        if mode == "task":
            return english.read_task(text or " ", now, services.date_order, dates=dates)
        is_short = len(text.strip()) <= schemas.MAX_DATE_LENGTH
        when = english.read_when(text, now, services.date_order) if is_short else None
        return english.ParsedTask("" if when else text, when)

    return schemas.TaskPreview.from_reading(await services.text_reader.read(user.user_id, read))


@router.get("/tasks/{task_id}", responses=errors(404))
async def get_task(services: AppServices, user: LimitedUser, task_id: TaskId) -> schemas.ListedTask:
    with _translated_errors():
        found = await services.tools.get_json("tasks", user_id=user.user_id, ids=task_id)
        tasks = [*map(schemas.ListedTask.from_tool, found["tasks"])]
    if not tasks:
        raise NotFound.of("task", str(task_id))
    return tasks[0]


@router.post("/tasks", status_code=201, responses=errors(409))
async def add_task(
    services: AppServices, user: LimitedUser, key: KeyedRequest, body: schemas.NewTaskBody
) -> schemas.ChangedTasks:
    if isinstance(body, schemas.NewTask):
        return await _change(services, user, key, "add_task", body.model_dump(exclude_none=True))
    now = await _find_local_time(services, user, body.written)
    read = partial(english.read_task, body.text, now, services.date_order, dates=body.dates)
    reading = await services.text_reader.read(user.user_id, read)
    fields = {
        "title": reading.title,
        "due": reading.when.due if reading.when else body.default_due,
        "repeat": reading.when and reading.when.repeat,
        "priority": reading.priority,
        "labels": list(reading.labels) or None,
        "remind": reading.remind,
    }
    arguments = {name: value for name, value in fields.items() if value is not None}
    changed = await _change(services, user, key, "add_task", arguments)
    return changed.model_copy(update={"not_understood": list(reading.unread)})


@router.post("/tasks/undo", responses=errors(409))
async def undo(services: AppServices, user: LimitedUser, key: KeyedRequest, body: schemas.Undo) -> schemas.ChangedTasks:
    return await _make_change(services, user, key, partial(services.tools.undo_batch, body.batch))


@router.post("/tasks/move-overdue")
async def move_overdue(services: AppServices, user: LimitedUser, key: KeyedRequest) -> schemas.MovedTasks:
    """Moves all overdue tasks to today, without times that have passed."""
    zone = await _find_time_zone(services, user)
    moved = schemas.MovedTasks(tasks=[], not_found=[], batch=derive_id("hand", key and key.key))
    with _translated_errors():
        while moved.count % PART_TASKS == 0:
            part = moved.count // PART_TASKS
            try:
                result = await services.tools.move_overdue(part, user_id=user.user_id, key=moved.batch, time_zone=zone)
            except CallRejected as rejection:
                if rejection.kind == "not_found":  # nothing is overdue
                    break
                raise
            moved.count += 1 + len(result["also"])
            moved.tasks = moved.tasks or schemas.ChangedTasks.from_tool(result, batch=moved.batch).tasks
    return moved


@router.patch("/tasks/{task_id}", responses=errors(404, 409))
async def update_task(
    services: AppServices, user: LimitedUser, key: KeyedRequest, task_id: TaskId, body: schemas.TaskUpdate
) -> schemas.ChangedTasks:
    """Changes a task, and those in `also`; one that is only completed by the tool `complete_task`."""
    fields = body.model_dump(exclude_unset=True, exclude={"also"})
    also = {"also": body.also} if body.also else {}
    if fields == {"status": "completed"}:
        return await _change(services, user, key, "complete_task", {"task_id": task_id, **also})
    # The tools take null for "not given" and not for "nothing".
    arguments = {name: _REMOVED.get(name, value) if value in (None, "") else value for name, value in fields.items()}
    if arguments.get("labels", ()) in (None, []):
        arguments |= {"labels": None, "remove_labels": ["*"]}
    return await _change(services, user, key, "update_task", {"task_id": task_id, **arguments, **also})


@router.delete("/tasks/{task_id}", responses=errors(404, 409))
async def delete_task(
    services: AppServices, user: LimitedUser, key: KeyedRequest, task_id: TaskId, also: str = ""
) -> schemas.ChangedTasks:
    parts = [part.strip() for part in also.split(",")] if also else []
    if len(parts) > _MAX_ALSO or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InvalidRequest(f"also must be a list of up to {_MAX_ALSO} task numbers, separated by commas.")
    return await _change(services, user, key, "delete_task", {"task_id": task_id, "also": [*map(int, parts)]})


async def _change(
    services: Services, user: AuthenticatedUser, key: IdempotencyKey | None, tool: str, arguments: Mapping[str, Any]
) -> schemas.ChangedTasks:
    return await _make_change(services, user, key, partial(services.tools.change, tool, arguments))


async def _make_change(
    services: Services, user: AuthenticatedUser, key: IdempotencyKey | None, change: ChangeCall
) -> schemas.ChangedTasks:
    zone = await _find_time_zone(services, user)
    batch = derive_id("hand", key and key.key)
    with _translated_errors():
        result = await change(user_id=user.user_id, key=batch, time_zone=zone)
        return schemas.ChangedTasks.from_tool(result, batch=batch)


async def _get_reader(services: Services, user: AuthenticatedUser) -> dict[str, str]:
    zone = await _find_time_zone(services, user)
    return {"user_id": user.user_id, **({"time_zone": zone} if zone else {})}


async def _find_local_time(services: Services, user: AuthenticatedUser, written: datetime | None) -> datetime:
    """Returns the present time, or what the user's clock showed when a text was written, with its zone."""
    named = user.time_zone if written else None
    zone = named or await _find_time_zone(services, user) or services.time_zone
    return local_time(written or services.clock(), zone)


async def _find_time_zone(services: Services, user: AuthenticatedUser) -> str | None:
    """Returns the time zone that the request names, which is stored if the user has none, or else the stored one."""
    if user.time_zone is None:
        return await profiles.load_time_zone(services.database, user.user_id)
    await profiles.set_first_time_zone(services.database, user.user_id, user.time_zone)
    return user.time_zone


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except CallRejected as rejection:
        raise _ERRORS.get(rejection.kind, InvalidRequest)(str(rejection)) from None
    except (MCPError, ValidationError, LookupError) as error:
        raise TasksUnavailable from error
