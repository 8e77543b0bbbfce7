"""What is told of requests to the model: a metric and a span for each. Never a text."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import openai
from prometheus_client import Histogram

from service.telemetry import metrics, traces

SECONDS = Histogram(
    "todo_model_request_seconds",
    "A request to the model, to the end of its answer",
    ["outcome"],
    buckets=metrics.SECONDS,
)


@dataclass
class Request:
    answered: bool = False


@contextmanager
def request(model: str) -> Iterator[Request]:
    """Times a request to the model; a reader who leaves after the answer's end has cancelled nothing."""
    request = Request()
    if not metrics.metered():
        yield request
        return
    began = time.perf_counter()
    described = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    span = traces.begin(f"chat {model}", described, kind="CLIENT")
    outcome = "ok"
    try:
        yield request
    except BaseException as error:
        outcome = "ok" if request.answered else _kind(error)
        raise
    finally:
        SECONDS.labels(outcome).observe(time.perf_counter() - began)
        if span is not None:
            span.set_attribute("todo.outcome", outcome)
            span.end()


def _kind(error: BaseException) -> str:
    match error:
        case asyncio.CancelledError() | GeneratorExit():
            return "cancelled"
        case openai.RateLimitError():
            return "rate_limited"
        case openai.APITimeoutError():
            return "timeout"
        case openai.APIConnectionError():
            return "unreachable"
        case openai.APIStatusError() if error.status_code < 500:
            return "refused"
        case _:
            return "failed"
