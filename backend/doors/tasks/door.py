"""The page's list: its views, what a person changes there by hand, and what was changed elsewhere."""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import profiles
from backend.conversation.acting import Acting
from backend.conversation.errors import BackendError, InvalidRequest, LimitReached, NotFound
from backend.doors.tasks.shapes import Change, Done, News, NewTask, Page, Task, View
from backend.tools.tasks.tools import CallRefused, TasksUnavailable, TaskTools
from service.database import new_id

DAYS = 28
_VIEWS: Mapping[View, Mapping[str, str]] = {
    "today": {"status": "pending", "due": "..today", "order": "due"},
    "upcoming": {"status": "pending", "due": "tomorrow..", "order": "due"},
    "all": {"status": "pending", "order": "due"},
    "done": {"status": "completed", "order": "completed"},
    "deleted": {"status": "deleted"},
}
_NONE = ("description", "due", "priority", "repeat")  # are removed by this word


class NotNow(BackendError):
    """This is not possible right now."""

    code, status = "not_possible_now", 409


_REFUSED: Mapping[str, type[BackendError]] = {
    "not_found": NotFound,
    "conflict": NotNow,
    "limit": LimitReached,
    "unavailable": TasksUnavailable,
}


@dataclass(frozen=True)
class Asked:
    """Which page of which view; what is not given is None."""

    view: View
    limit: int
    cursor: str | None = None
    query: str | None = None
    label: str | None = None
    priority: str | None = None


@dataclass(frozen=True)
class TasksDoor:
    engine: AsyncEngine
    tools: TaskTools

    async def page(self, asked: Asked, acting: Acting) -> Page:
        """What is told of changes is read first: what is changed meanwhile is told of again, and never missed."""
        zone, known = await asyncio.gather(self._zone(acting), self.news(None, acting))
        here = {"user_id": acting.user_id, **({"time_zone": zone} if zone else {})}
        filters = {"query": asked.query, "label": asked.label, "priority": asked.priority}
        wish = {**_VIEWS[asked.view], **{name: value for name, value in filters.items() if value}}
        with _told():
            told = await self.tools.list_tasks(**here, cursor=asked.cursor, limit=asked.limit, **wish)
            first_of_done = asked.view == "done" and asked.cursor is None
            done = await self.tools.read("done", **here, days=DAYS) if first_of_done else {"days": None}
            _, day, time = told["now"].split(" ")
            return Page(
                view=asked.view,
                now=f"{day}T{time}",
                time_zone=told["time_zone"],
                total=told["total"],
                tasks=[*map(Task.of, told["tasks"])],
                next_cursor=told["next_cursor"],
                last=known.last,
                days=done["days"],
            )

    async def one(self, task_id: int, acting: Acting) -> Task:
        """Whatever its state; raises `NotFound`."""
        with _told():
            found = (await self.tools.read("tasks", user_id=acting.user_id, ids=task_id))["tasks"]
            tasks = [*map(Task.of, found)]
        if not tasks:
            raise NotFound(f"There is no task {task_id}. It may have been deleted.")
        return tasks[0]

    async def news(self, after: int | None, acting: Acting) -> News:
        asked = {} if after is None else {"after": after}
        with _told():
            return News.model_validate(await self.tools.read("changes", user_id=acting.user_id, **asked))

    async def add(self, new: NewTask, acting: Acting, key: str | None) -> Done:
        given = {name: value for name, value in new.given().items() if value is not None}
        return await self._change("add_task", given, acting, key)

    async def update(self, task_id: int, change: Change, acting: Acting, key: str | None) -> Done:
        given = change.given(without=["also"])
        also = {"also": change.also} if change.also else {}
        if given == {"status": "completed"}:
            return await self._change("complete_task", {"task_id": task_id, **also}, acting, key)
        return await self._change("update_task", {"task_id": task_id, **_as_told(given), **also}, acting, key)

    async def delete(self, task_id: int, also: list[int], acting: Acting, key: str | None) -> Done:
        return await self._change("delete_task", {"task_id": task_id, "also": also}, acting, key)

    async def undo(self, batch: str, acting: Acting, key: str | None) -> Done:
        # Of which task is not looked at: all of the batch's are taken back.
        return await self._change("update_task", {"task_id": 1}, acting, key, undo_batch=batch)

    async def _change(
        self, tool: str, arguments: Mapping[str, Any], acting: Acting, key: str | None, *, undo_batch: str | None = None
    ) -> Done:
        zone = await self._zone(acting)
        batch = _own_key(acting.user_id, key) if key else new_id("hand")
        with _told():
            told = await self.tools.change(
                tool, arguments, user_id=acting.user_id, key=batch, time_zone=zone, undo_batch=undo_batch
            )
            return Done.of(told, batch=batch)

    async def _zone(self, acting: Acting) -> str | None:
        """The zone that the request names, which is kept, else the one that was named last."""
        if acting.time_zone is None:
            return await profiles.time_zone(self.engine, acting.user_id)
        await profiles.keep_time_zone(self.engine, acting.user_id, acting.time_zone)
        return acting.time_zone


@contextmanager
def _told() -> Iterator[None]:
    """Raises what the task service says as the door's own errors."""
    try:
        yield
    except CallRefused as refusal:
        raise _REFUSED.get(refusal.kind, InvalidRequest)(str(refusal)) from None
    except (MCPError, ValidationError, LookupError) as error:
        raise TasksUnavailable from error


def _as_told(given: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the tool's words, to which nothing is what it says of nothing."""
    told = {name: "none" if name in _NONE and value in (None, "") else value for name, value in given.items()}
    if told.get("labels", ()) in (None, []):
        told |= {"labels": None, "remove_labels": ["*"]}
    return told


def _own_key(user_id: str, key: str) -> str:
    """Of a key that a client chose, one that is nobody else's and says nothing."""
    return f"hand_{hashlib.sha256(f'{user_id} {key}'.encode()).hexdigest()}"
