"""Renders the calendar of a user: the open tasks that have a date."""

import asyncio
import logging
from datetime import date, timedelta
from functools import lru_cache
from importlib import import_module
from typing import ClassVar
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from backend.errors import BackendError
from backend.tools.task_tools import CallRejected, TasksUnavailable, TaskTools
from backend.users import profiles
from common.clock import choose_zone
from common.database import Database

logger = logging.getLogger(__name__)

_MAX_TASKS, _MAX_PAGES = 5_000, 50  # those due first; long descriptions make pages of fewer tasks
_MAX_CALENDARS_AT_ONCE = 4
_RENDER_SECONDS = 30.0
_REFRESH = timedelta(hours=1)
_ZONE_FROM, _ZONE_TO = date(1970, 1, 1), date(2100, 1, 1)
_END = b"END:VCALENDAR\r\n"


class CalendarUnavailable(BackendError):
    """The calendar cannot be read right now. Try again in a few minutes."""

    code, status = "calendar_unavailable", 503
    headers: ClassVar = {"Retry-After": "300"}
    allow_retry = True


class Feeds:
    """Renders calendars: a few at once, and one of each user; `time_zone` is for users whose client names none."""

    def __init__(self, database: Database, tools: TaskTools, *, time_zone: str) -> None:
        self._database = database
        self._tools = tools
        self._time_zone = time_zone
        self._reading = asyncio.Semaphore(_MAX_CALENDARS_AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of users whose calendar is read

    async def render_feed(self, user_id: str) -> list[bytes]:
        """Returns the calendar in pieces: as one it would be up to 100 MB."""
        try:
            lock = self._locks.setdefault(user_id, asyncio.Lock())
            async with asyncio.timeout(_RENDER_SECONDS), lock, self._reading:
                known = await profiles.load_time_zone(self._database, user_id)
                return await self._load_feed(user_id, choose_zone(known, self._time_zone))
        except (TimeoutError, TasksUnavailable, CallRejected, ValidationError) as error:
            logger.warning("a calendar could not be made: %s", type(error).__name__)
            raise CalendarUnavailable from error

    async def _load_feed(self, user_id: str, zone: ZoneInfo) -> list[bytes]:
        # Not at the start, as few users subscribe to a calendar, and in a thread, as icalendar takes 30 ms to load.
        await asyncio.to_thread(import_module, "backend.calendar.events")
        from backend.calendar.events import DatedTask, Events

        events, parts, cursor = Events(user_id, zone), dict[int, bytes](), None
        for _ in range(_MAX_PAGES):
            page = await self._tools.list_tasks(
                user_id=user_id, cursor=cursor, status="pending", due="any", order="due"
            )
            for task in map(DatedTask.model_validate, page["tasks"]):
                # A task that is moved between two reads may be on two pages.
                parts[task.id] = b"".join(event.to_ical() for event in events.create_events(task))
                await asyncio.sleep(0)  # others are served in between
            cursor = page["next_cursor"]
            if cursor is None or len(parts) >= _MAX_TASKS:
                break
        return [_render_beginning(zone.key), *parts.values(), _END]


@lru_cache(maxsize=100)
def _render_beginning(zone: str) -> bytes:
    from icalendar import Calendar, Timezone

    calendar = Calendar()
    calendar.add("prodid", "-//todo-assistant//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", "To-do")
    calendar.add("x-wr-timezone", zone)
    calendar.add("refresh-interval", _REFRESH, parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", "PT1H")
    if zone != "UTC":
        calendar.add_component(Timezone.from_tzid(zone, first_date=_ZONE_FROM, last_date=_ZONE_TO))
    return calendar.to_ical().removesuffix(_END)
