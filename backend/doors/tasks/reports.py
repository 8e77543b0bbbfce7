"""What is told of requests for the list: the metrics, and a line for each that changes something; never a text."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Request
from prometheus_client import Histogram

from backend.conversation.acting import Acting
from backend.conversation.errors import BackendError
from backend.doors.tasks.shapes import Done
from backend.tools.tasks.tools import TasksUnavailable
from service.telemetry import metrics, traces
from service.telemetry.logs import fields

logger = logging.getLogger(__name__)

SECONDS = Histogram(
    "todo_list_seconds",
    "Requests for the page's list, to their answer",
    ["method", "route", "outcome"],
    buckets=metrics.SECONDS,
)


@dataclass
class Told:
    owner: str | None = None
    tasks: int | None = None

    def by(self, acting: Acting) -> Acting:
        self.owner = acting.user_id
        return acting

    def of(self, done: Done) -> Done:
        self.tasks = len(done.tasks)
        return done


@asynccontextmanager
async def reported(request: Request, route: str) -> AsyncIterator[Told]:
    """Tell of the request that is answered in the block; `route` is its path without ids."""
    began, told, outcome = time.perf_counter(), Told(), "failed"
    about = {"http.request.method": request.method, "http.route": route}
    try:
        with traces.span(f"{request.method} {route}", about, kind="SERVER", parent=request.headers):
            yield told
        outcome = "ok"
    except TasksUnavailable:
        raise
    except BackendError:
        outcome = "refused"
        raise
    finally:
        _tell(told, request.method, route, outcome, time.perf_counter() - began)


def _tell(told: Told, method: str, route: str, outcome: str, seconds: float) -> None:
    SECONDS.labels(method, route, outcome).observe(seconds)
    if method == "GET":  # a page looks every second and a half
        return
    said = fields(
        method=method, route=route, owner=told.owner, outcome=outcome, tasks=told.tasks, seconds=round(seconds, 4)
    )
    logger.info("tasks changed by hand", extra=said)
