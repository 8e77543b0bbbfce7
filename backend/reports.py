"""What is told of turns and of requests to the model: one line for each turn, and the metrics. Never a text."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import openai
from prometheus_client import Counter, Gauge, Histogram

from telemetry import metrics, request_id, traces
from telemetry.logs import fields

if TYPE_CHECKING:
    from backend.leases import Outcome
    from backend.turns import Turn

logger = logging.getLogger(__name__)

TURNS = Counter("todo_turns", "Turns that ended, by the outcome written to the database", ["outcome"])
TURN_SECONDS = Histogram(
    "todo_turn_seconds", "From a turn's start to its outcome", ["outcome"], buckets=metrics.SECONDS
)
FIRST_EVENT = Histogram("todo_turn_first_event_seconds", "To a turn's first event", buckets=metrics.SECONDS)
RUNNING = Gauge("todo_turns_running", "Turns that run now", multiprocess_mode="livesum")
MODEL_SECONDS = Histogram(
    "todo_model_request_seconds",
    "A request to the model, to the end of its answer",
    ["outcome"],
    buckets=metrics.SECONDS,
)
TOKENS = Counter(
    "todo_model_tokens", "Tokens of the turns that ended, as the model's provider counts them", ["direction"]
)
RETRIES = Counter("todo_retries", "Requests that were sent again after a passing fault", ["to"])
CONNECTIONS = Gauge(
    "todo_backend_connections_in_use", "Connections to the database that are in use", multiprocess_mode="livesum"
)


def turn_ended(turn: "Turn", outcome: "Outcome") -> None:
    """The turn's one line, once its outcome is in the database."""
    seconds = time.perf_counter() - turn.began
    usage = turn.usage or {}
    TURNS.labels(outcome).inc()
    TURN_SECONDS.labels(outcome).observe(seconds)
    if turn.first_event_after is not None:
        FIRST_EVENT.observe(turn.first_event_after)
    for direction in ("input", "output"):
        TOKENS.labels(direction).inc(usage.get(f"{direction}_tokens", 0))
    said = fields(
        run=turn.run_id,
        conversation=turn.conversation_id,
        owner=turn.user_id,
        outcome=outcome,
        seconds=round(seconds, 4),
        first_event_seconds=turn.first_event_after and round(turn.first_event_after, 4),
        tool_calls=turn.tool_calls,
        model_requests=usage.get("requests"),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
    )
    logger.info("turn ended", extra=said)
    traces.annotate({"todo.outcome": outcome, "todo.tool_calls": turn.tool_calls})


def turn_abandoned(run_id: str, *, conversation_id: str, user_id: str) -> None:
    """The line of a turn whose process is gone, by the process that marked it."""
    TURNS.labels("interrupted").inc()
    said = fields(run=run_id, conversation=conversation_id, owner=user_id, outcome="interrupted")
    logger.warning("turn ended", extra=said)


@dataclass
class ModelRequest:
    answered: bool = False


@contextmanager
def model_request(model: str) -> Iterator[ModelRequest]:
    """Times a request to the model; a reader who leaves after the answer's end has cancelled nothing."""
    request = ModelRequest()
    if request_id.current.get() is None:  # the process warms up, or looks whether the model is there
        yield request
        return
    began = time.perf_counter()
    span = traces.begin(
        f"chat {model}", {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}, kind="CLIENT"
    )
    outcome = "ok"
    try:
        yield request
    except BaseException as error:
        outcome = "ok" if request.answered else _kind(error)
        raise
    finally:
        MODEL_SECONDS.labels(outcome).observe(time.perf_counter() - began)
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
