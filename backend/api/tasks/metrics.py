"""Metrics of requests for the task list, and a log line for each that changes something, without texts of tasks."""

import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import Histogram

from backend.api.dependencies import UserId
from backend.api.tasks.schemas import ChangedTasks
from backend.errors import BackendError
from backend.tools.task_tools import TasksUnavailable
from common.telemetry import metrics, traces
from common.telemetry.logs import fields

logger = logging.getLogger(__name__)

SECONDS = Histogram(
    "todo_list_seconds",
    "Requests for the page's list, to their answer",
    ["method", "route", "outcome"],
    buckets=metrics.SECONDS,
)


@dataclass(slots=True)
class RequestReport:
    """How many tasks a request has returned or changed; None where it does not say."""

    tasks: int | None = None

    def count(self, changed: ChangedTasks) -> ChangedTasks:
        """Notes how many tasks a change has, and returns it."""
        self.tasks = len(changed.tasks)
        return changed


async def report_request(request: Request, user_id: UserId) -> AsyncIterator[RequestReport]:
    """Measures a request until its handler returns; logs it if it may change something."""
    began, report, outcome = time.perf_counter(), RequestReport(), "failed"
    method, route = request.method, request.scope["route"].path.replace("{task_id}", "{id}")
    attributes = {"http.request.method": method, "http.route": route}
    try:
        with traces.span(f"{method} {route}", attributes, kind="SERVER", parent=request.headers):
            yield report
        outcome = "ok"
    except TasksUnavailable:
        raise
    except (BackendError, RequestValidationError):
        outcome = "refused"
        raise
    finally:
        seconds = time.perf_counter() - began
        SECONDS.labels(method, route, outcome).observe(seconds)
        if method != "GET":  # a page polls every second and a half
            line = fields(
                method=method,
                route=route,
                owner=user_id,
                outcome=outcome,
                tasks=report.tasks,
                seconds=round(seconds, 4),
            )
            logger.info("tasks changed by hand", extra=line)


Report = Annotated[RequestReport, Depends(report_request, scope="function")]
