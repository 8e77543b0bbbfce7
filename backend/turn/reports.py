"""What is told of turns: one line for each turn, and the metrics. Never a text."""

import logging
import time
from collections.abc import Mapping
from typing import Any

from backend.conversation.runs.abandoned import Abandoned
from backend.model.telemetry import TOKENS
from backend.runs.metrics import CONNECTIONS as CONNECTIONS
from backend.runs.metrics import FIRST_EVENT, RUNS, WAITS
from backend.runs.metrics import RUN_SECONDS as TURN_SECONDS
from backend.runs.metrics import RUNNING as RUNNING
from backend.turn.run import Ended, Run
from service.telemetry import traces
from service.telemetry.logs import fields

logger = logging.getLogger(__name__)


def turn_ended(run: Run, ended: Ended) -> None:
    """The turn's one line, once its outcome is in the database."""
    seconds = time.perf_counter() - ended.began
    usage = ended.usage or {}
    RUNS.labels(ended.outcome).inc()
    TURN_SECONDS.labels(ended.outcome).observe(seconds)
    if ended.first_event_after is not None:
        FIRST_EVENT.observe(ended.first_event_after)
    count_tokens(_more(usage, ended.counted))
    said = fields(
        run=run.id,
        conversation=run.conversation_id,
        owner=run.user_id,
        outcome=ended.outcome,
        seconds=round(seconds, 4),
        first_event_seconds=ended.first_event_after and round(ended.first_event_after, 4),
        tool_calls=ended.tool_calls,
        model_requests=usage.get("requests"),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
    )
    logger.info("turn ended", extra=said)
    traces.annotate({"todo.outcome": ended.outcome, "todo.tool_calls": ended.tool_calls})


def turn_waits(run: Run, usage: Mapping[str, Any], counted: Mapping[str, Any], *, calls: int) -> None:
    """The line of a turn that asks its person before it goes on, for so many calls; it has no outcome yet."""
    WAITS.inc()
    count_tokens(_more(usage, counted))
    said = fields(run=run.id, conversation=run.conversation_id, owner=run.user_id, asked=calls)
    logger.info("turn waits", extra=said)


def waiting_ended(run_id: str, conversation_id: str, user_id: str) -> None:
    """The line of a turn that waited, and was ended instead of being answered."""
    RUNS.labels("cancelled").inc()
    logger.info(
        "turn ended", extra=fields(run=run_id, conversation=conversation_id, owner=user_id, outcome="cancelled")
    )


def _more(usage: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    """What was used since it was counted last."""
    return {name: number - counted.get(name, 0) for name, number in usage.items() if isinstance(number, int)}


def count_tokens(usage: Mapping[str, Any]) -> None:
    for direction in ("input", "output"):
        TOKENS.labels(direction).inc(usage.get(f"{direction}_tokens", 0))


def turn_abandoned(run: Abandoned) -> None:
    """The line of a turn whose process is gone, by the process that marked it."""
    RUNS.labels("interrupted").inc()
    said = fields(run=run.run_id, conversation=run.conversation_id, owner=run.user_id, outcome="interrupted")
    logger.warning("turn ended", extra=said)
