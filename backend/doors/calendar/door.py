"""How a request for a calendar is answered, and what is told of it: never its path, which opens the calendar."""

import logging
import time
from dataclasses import dataclass
from typing import ClassVar

from fastapi import Response
from prometheus_client import Histogram
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.datastructures import Headers

from backend.api.rate_limit import check_rate
from backend.calendar import address
from backend.calendar.feed import Feeds
from backend.conversation import profiles
from backend.conversation.errors import BackendError
from service.telemetry import metrics, traces
from service.telemetry.logs import fields
from service.workers import Pace

logger = logging.getLogger(__name__)

SECONDS = Histogram(
    "todo_calendar_seconds", "Requests for calendars, to their answer", ["route", "outcome"], buckets=metrics.SECONDS
)


class NoCalendar(BackendError):
    """This calendar link does not work any more. Create a new one on the page."""

    code, status = "no_calendar", 404
    headers: ClassVar = {"Cache-Control": "private, no-store"}


@dataclass
class _Told:
    owner: str | None = None
    tasks: int | None = None
    outcome: str = "failed"


@dataclass(frozen=True)
class CalendarDoor:
    """Whoever knows the secret of a calendar's address is asked for nothing else."""

    engine: AsyncEngine
    feeds: Feeds
    pace: Pace
    base_url: str | None
    """Where users reach the backend; without it, an address begins as the request for it does."""

    async def answer(self, name: str, headers: Headers) -> Response:
        """The calendar of this name, the last part of a path; raises `NoCalendar` for any that opens none."""
        began, told = time.perf_counter(), _Told()
        about = {"http.request.method": "GET", "http.route": address.TEMPLATE}
        with traces.span(f"GET {address.TEMPLATE}", about, kind="SERVER", parent=headers):
            try:
                return await self._read(name, headers, told)
            finally:
                _report(told, time.perf_counter() - began)

    async def _read(self, name: str, headers: Headers, told: _Told) -> Response:
        secret = address.secret_in(name)
        # What cannot be a secret is looked for, too: an address that opens nothing takes as long as any other.
        owner = await profiles.person_of_calendar(self.engine, address.hash_of(name if secret is None else secret))
        if secret is None or owner is None:
            told.outcome = "refused"
            raise NoCalendar
        told.owner = owner
        check_rate(self.pace, owner)
        feed = await self.feeds.of(owner)
        told.tasks = feed.tasks
        kept = {"ETag": feed.tag, "Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer"}
        if _knows(headers, feed.tag):
            told.outcome = "unchanged"
            return Response(status_code=304, headers=kept)
        told.outcome = "sent"
        return Response(feed.content, media_type="text/calendar; charset=utf-8", headers=kept)


def _knows(headers: Headers, tag: str) -> bool:
    """Whether the client has this content already (RFC 9110, section 13.1.2)."""
    known = [one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")]
    return tag in known or known == ["*"]


def _report(told: _Told, seconds: float) -> None:
    SECONDS.labels(address.TEMPLATE, told.outcome).observe(seconds)
    traces.annotate({"todo.outcome": told.outcome})
    said = fields(
        route=address.TEMPLATE, owner=told.owner, outcome=told.outcome, tasks=told.tasks, seconds=round(seconds, 4)
    )
    logger.info("calendar read", extra=said)
