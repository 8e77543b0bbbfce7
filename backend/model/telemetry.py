"""A metric and a span for each request to the model, without its texts."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from backend.model.errors import ModelError
from common.telemetry import metrics, traces

SECONDS = Histogram(
    "todo_model_request_seconds",
    "A request to the model, to the end of its answer",
    ["outcome"],
    buckets=metrics.SECONDS,
)
TOKENS = Counter("todo_model_tokens", "Tokens of requests to the model, as its provider counts them", ["direction"])


@dataclass
class Request:
    is_complete: bool = False


@contextmanager
def measure_request(model: str) -> Iterator[Request]:
    """Measures a request to the model; a reader who leaves after the response's end has cancelled nothing."""
    request = Request()
    began, outcome = time.perf_counter(), "ok"
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    span = traces.start_span(f"chat {model}", attributes, kind="CLIENT")
    try:
        yield request
    except BaseException as error:
        outcome = "ok" if request.is_complete else _outcome_of(error)
        raise
    finally:
        SECONDS.labels(outcome).observe(time.perf_counter() - began)
        if span is not None:
            span.set_attribute("todo.outcome", outcome)
            span.end()


def count_tokens(*, input_tokens: int, output_tokens: int) -> None:
    TOKENS.labels("input").inc(input_tokens)
    TOKENS.labels("output").inc(output_tokens)


def _outcome_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "cancelled"
    return error.failure.outcome if isinstance(error, ModelError) else "failed"
