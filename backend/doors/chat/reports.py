"""What is told of requests to `/chat`: how long they take, and what becomes of them. Turns have lines of their own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Histogram

from backend.conversation.errors import BackendError
from service.telemetry import metrics

SECONDS = Histogram(
    "todo_chat_seconds",
    "Requests to /chat, to their answer, and to /chat/stream, to its beginning",
    ["route", "outcome"],
    buckets=metrics.SECONDS,
)


@contextmanager
def reported(route: str) -> Iterator[None]:
    """Tell of the request that is answered in the block."""
    began, outcome = time.perf_counter(), "failed"
    try:
        yield
        outcome = "ok"
    except BackendError:
        outcome = "refused"
        raise
    finally:
        SECONDS.labels(route, outcome).observe(time.perf_counter() - began)
