"""Answers requests for calendars; the path is a secret, so no log line, metric or trace has it."""

import logging
import time
from dataclasses import dataclass
from typing import ClassVar

from fastapi import Response
from prometheus_client import Histogram
from starlette.datastructures import Headers

from backend.calendar import address
from backend.calendar.feed import Feeds
from backend.errors import BackendError
from backend.users import profiles
from backend.users.limits import check_rate
from common.database import Database
from common.rate_limit import RateLimit
from common.telemetry import metrics, traces
from common.telemetry.logs import fields

logger = logging.getLogger(__name__)

SECONDS = Histogram(
    "todo_calendar_seconds", "Requests for calendars, to their answer", ["route", "outcome"], buckets=metrics.SECONDS
)


class NoCalendar(BackendError):
    """This calendar link does not work any more. Create a new one on the page."""

    code, status = "no_calendar", 404
    headers: ClassVar = {"Cache-Control": "private, no-store"}


@dataclass
class _Report:
    user_id: str | None = None
    tasks: int | None = None
    outcome: str = "failed"


@dataclass(frozen=True, slots=True)
class CalendarService:
    """Without `base_url`, where users reach the backend, an address begins as the request for it does."""

    database: Database
    feeds: Feeds
    rate_limit: RateLimit
    base_url: str | None

    async def respond(self, name: str, headers: Headers) -> Response:
        """Returns the calendar of a secret name, the last part of a path, or 304 if the client has it; logs and
        measures this. Raises `NoCalendar` for a name that opens none, and `LimitReached`.
        """
        began, report = time.perf_counter(), _Report()
        about = {"http.request.method": "GET", "http.route": address.TEMPLATE}
        with traces.span(f"GET {address.TEMPLATE}", about, kind="SERVER", parent=headers):
            try:
                return await self._load_calendar(name, headers, report)
            finally:
                _write_report(report, time.perf_counter() - began)

    async def _load_calendar(self, name: str, headers: Headers, report: _Report) -> Response:
        """Finds the user of a secret and renders their calendar; notes what became of it in the report.

        Raises as `respond`.
        """
        secret = address.secret_in(name)
        # What cannot be a secret is looked for, too: an address that opens nothing takes as long as any other.
        hash = address.hash_of(name if secret is None else secret)
        user_id = await profiles.find_user_of_calendar(self.database, hash)
        if secret is None or user_id is None:
            report.outcome = "refused"
            raise NoCalendar
        report.user_id = user_id
        check_rate(self.rate_limit, user_id)
        feed = await self.feeds.render_feed(user_id)
        report.tasks = feed.tasks
        sent = {"ETag": feed.tag, "Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer"}
        if _has_content(headers, feed.tag):
            report.outcome = "unchanged"
            return Response(status_code=304, headers=sent)
        report.outcome = "sent"
        return Response(feed.content, media_type="text/calendar; charset=utf-8", headers=sent)


def _has_content(headers: Headers, tag: str) -> bool:
    """Whether the client has this content already, by If-None-Match (RFC 9110, section 13.1.2)."""
    known = [one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")]
    return tag in known or known == ["*"]


def _write_report(report: _Report, seconds: float) -> None:
    """Observes and logs a request for a calendar, without its path."""
    SECONDS.labels(address.TEMPLATE, report.outcome).observe(seconds)
    traces.annotate({"todo.outcome": report.outcome})
    values = fields(
        route=address.TEMPLATE,
        owner=report.user_id,
        outcome=report.outcome,
        tasks=report.tasks,
        seconds=round(seconds, 4),
    )
    logger.info("calendar read", extra=values)
