"""The metric of requests to `/chat`: their seconds and outcomes."""

import time
from collections.abc import AsyncIterator, Callable

from fastapi.exceptions import RequestValidationError
from prometheus_client import Histogram

from backend.errors import BackendError
from service.telemetry import metrics

SECONDS = Histogram(
    "todo_chat_seconds",
    "Requests to /chat, to their answer, and to /chat/stream, to its beginning",
    ["route", "outcome"],
    buckets=metrics.SECONDS,
)


def measure(route: str) -> Callable[[], AsyncIterator[None]]:
    """A dependency that observes the request, until its handler returns."""

    async def observe() -> AsyncIterator[None]:
        began, outcome = time.perf_counter(), "failed"
        try:
            yield
            outcome = "ok"
        except (BackendError, RequestValidationError):
            outcome = "refused"
            raise
        finally:
            SECONDS.labels(route, outcome).observe(time.perf_counter() - began)

    return observe
