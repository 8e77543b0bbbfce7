"""The page's task list: its views, what a user changes there by hand, and what was changed elsewhere."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

import english
from backend.api.identity import AuthenticatedUser
from backend.api.tasks import schemas
from backend.errors import BackendError, InvalidRequest, LimitReached, NotFound
from backend.tools.task_tools import CallRefused, TasksUnavailable, TaskTools, derive_id
from backend.users import profiles
from common.clock import Clock, wall_time
from common.database import Database

_DAYS = 28
_VIEWS: Mapping[schemas.View, Mapping[str, str]] = {
    "today": {"status": "pending", "due": "..today", "order": "due"},
    "upcoming": {"status": "pending", "due": "tomorrow..", "order": "due"},
    "all": {"status": "pending", "order": "due"},
    "done": {"status": "completed", "order": "completed"},
    "deleted": {"status": "deleted"},
}
_REMOVABLE = ("description", "due", "priority", "repeat")  # the tools remove them by the word "none"


class NotPossibleNow(BackendError):
    """This is not possible right now."""

    code, status = "not_possible_now", 409


_ERRORS: Mapping[str, type[BackendError]] = {
    "not_found": NotFound,
    "conflict": NotPossibleNow,
    "limit": LimitReached,
    "unavailable": TasksUnavailable,
}


@dataclass(frozen=True)
class TaskListService:
    database: Database
    tools: TaskTools
    clock: Clock
    time_zone: str
    """The zone of users who name none."""
    date_order: english.DateOrder | None

    async def load_page(self, query: schemas.TaskQuery, user: AuthenticatedUser) -> schemas.TaskPage:
        # The number is read first, so that a change in between is read again and never missed.
        zone, changes = await asyncio.gather(self._get_time_zone(user), self.load_changes(None, user))
        reader = {"user_id": user.user_id, **({"time_zone": zone} if zone else {})}
        filters = {"query": query.query, "label": query.label, "priority": query.priority}
        arguments = {**_VIEWS[query.view], **{name: value for name, value in filters.items() if value}}
        with _translated_errors():
            page = await self.tools.list_tasks(**reader, cursor=query.cursor, limit=query.limit, **arguments)
            is_first_of_done = query.view == "done" and not query.cursor
            done = await self.tools.get_json("done", **reader, days=_DAYS) if is_first_of_done else {"days": None}
            _, day, time = page["now"].split(" ")
            return schemas.TaskPage(
                view=query.view,
                now=f"{day}T{time}",
                time_zone=page["time_zone"],
                total=page["total"],
                tasks=[*map(schemas.Task.from_tool, page["tasks"])],
                next_cursor=page["next_cursor"],
                last=changes.last,
                days=done["days"],
            )

    async def find(self, task_id: int, user: AuthenticatedUser) -> schemas.Task:
        with _translated_errors():
            found = (await self.tools.get_json("tasks", user_id=user.user_id, ids=task_id))["tasks"]
            tasks = [*map(schemas.Task.from_tool, found)]
        if not tasks:
            raise NotFound(f"There is no task {task_id}. It may have been deleted.")
        return tasks[0]

    async def load_changes(self, after: int | None, user: AuthenticatedUser) -> schemas.TaskChanges:
        since = {} if after is None else {"after": after}
        with _translated_errors():
            return schemas.TaskChanges.model_validate(
                await self.tools.get_json("changes", user_id=user.user_id, **since)
            )

    async def add_text(self, new: schemas.TaskText, user: AuthenticatedUser, key: str | None) -> schemas.ChangedTasks:
        reading = await self.read_text(new, user)
        fields = {
            "title": reading.title,
            "due": reading.when.due if reading.when else new.default_due,
            "repeat": reading.when and reading.when.repeat,
            "priority": reading.priority,
            "labels": list(reading.labels) or None,
        }
        arguments = {name: value for name, value in fields.items() if value is not None}
        changed = await self.change("add_task", arguments, user, key)
        return changed.model_copy(update={"not_understood": list(reading.unread)})

    async def read_date(self, text: str, user: AuthenticatedUser, written: datetime | None) -> english.ParsedTask:
        """Reads a text that is a date and nothing else; the title is what it is, if it is no date."""
        when = english.read_when(text, written or await self._get_local_time(user), self.date_order)
        return english.ParsedTask("" if when else text, when)

    async def read_text(self, new: schemas.TaskText, user: AuthenticatedUser) -> english.ParsedTask:
        now = new.written or await self._get_local_time(user)
        return english.read_task(new.text, now, self.date_order, dates=new.dates)

    async def _get_local_time(self, user: AuthenticatedUser) -> datetime:
        return wall_time(self.clock(), await self._get_time_zone(user) or self.time_zone)

    async def update(
        self, task_id: int, update: schemas.TaskUpdate, user: AuthenticatedUser, key: str | None
    ) -> schemas.ChangedTasks:
        """Changes a task, and those in `also`; one that is only completed by the tool `complete_task`."""
        fields = update.model_dump(exclude_unset=True, exclude={"also"})
        tool = "complete_task" if fields == {"status": "completed"} else "update_task"
        arguments = {} if tool == "complete_task" else _as_arguments(fields)
        also = {"also": update.also} if update.also else {}
        return await self.change(tool, {"task_id": task_id, **arguments, **also}, user, key)

    async def change(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        user: AuthenticatedUser,
        key: str | None,
        *,
        undo_batch: str | None = None,
    ) -> schemas.ChangedTasks:
        zone = await self._get_time_zone(user)
        batch = derive_id("hand", user.user_id, key)
        with _translated_errors():
            result = await self.tools.change(
                tool, arguments, user_id=user.user_id, key=batch, time_zone=zone, undo_batch=undo_batch
            )
            return schemas.ChangedTasks.from_tool(result, batch=batch)

    async def _get_time_zone(self, user: AuthenticatedUser) -> str | None:
        """Returns the time zone that the request names, after storing it, or else the one that was named last."""
        if user.time_zone is None:
            return await profiles.load_time_zone(self.database, user.user_id)
        await profiles.set_time_zone(self.database, user.user_id, user.time_zone)
        return user.time_zone


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except CallRefused as rejection:
        raise _ERRORS.get(rejection.kind, InvalidRequest)(str(rejection)) from None
    except (MCPError, ValidationError, LookupError) as error:
        raise TasksUnavailable from error


def _as_arguments(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the fields of a request to a tool's arguments, for which null means "not given" and not "nothing"."""
    arguments = {
        name: "none" if name in _REMOVABLE and value in (None, "") else value for name, value in fields.items()
    }
    if arguments.get("labels", ()) in (None, []):
        arguments |= {"labels": None, "remove_labels": ["*"]}
    return arguments
