"""Widgets of a conversation as they are now: they show tasks that may have changed elsewhere since."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial

from pydantic import ValidationError

from backend.cards.current_tasks import load_titles as titles_now
from backend.cards.task import Task, TaskPage
from backend.conversation.items import Json, Widget
from backend.tools import widgets
from backend.tools.connection import ToolsUnavailable
from backend.tools.tasks.tools import MOST, CallRefused, TaskTools

__all__ = ["titles_now", "with_tasks_now"]
_PAGES = 5  # of a hundred tasks, or of what fits into one: an older list is shown as it was
_SECONDS = 1.0  # a conversation opens without the tools, too
_UNREAD = (TimeoutError, ToolsUnavailable, CallRefused, ValidationError)


async def with_tasks_now(
    items: Sequence[Widget],
    tools: TaskTools,
    *,
    user_id: str,
    time_zone: str | None = None,
) -> list[Widget]:
    """The widgets, with what can be changed in them as it is now, by the person's wall clock; nothing is stored."""
    shown = {task.id: task for item in items for task in widgets.changeable_tasks(item)}
    if not shown:
        return [*items]
    try:
        async with asyncio.timeout(_SECONDS):
            listing = partial(tools.list_tasks, user_id=user_id, time_zone=time_zone)
            found, known_to, now = await _tasks_up_to(max(shown), listing)
    except _UNREAD:
        return [*items]
    gone = [task for number, task in shown.items() if number <= known_to and number not in found]
    tasks = [*(found[number] for number in shown if number in found), *gone]
    return [_as_they_are(item, tasks, now) for item in items]


async def _tasks_up_to(
    last: int, list_tasks: Callable[..., Awaitable[Json]]
) -> tuple[dict[int, Task], int, datetime | None]:
    """The tasks by their numbers, the number up to which these are all, and what the person's clock shows."""
    found: dict[int, Task] = {}
    cursor = now = None
    for _ in range(_PAGES):
        # Numbers begin at 1: so many tasks at most come before the last one that is shown.
        page = TaskPage.model_validate(await list_tasks(cursor=cursor, limit=min(last, MOST)))
        found |= {task.id: task for task in page.tasks}
        cursor, now = page.next_cursor, page.now
        if cursor is None:
            return found, last, now
        if page.tasks[-1].id >= last:
            break
    return found, max(found), now


def _as_they_are(item: Widget, tasks: Sequence[Task], now: datetime | None) -> Widget:
    """The widget itself, if it shows what is true."""
    redrawn = widgets.redrawn(item, tasks, now=now)
    return item if redrawn is None or widgets.looks_like(redrawn, item) else redrawn
