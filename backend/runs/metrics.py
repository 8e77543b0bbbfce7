"""The log lines and metrics of runs, without their texts."""

import asyncio
import logging
import time
from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from backend.conversations.records import Outcome, Run
from common.database import Database
from common.telemetry import metrics, traces
from common.telemetry.logs import fields

logger = logging.getLogger(__name__)

RUNS = Counter("todo_runs", "Runs that ended, by the outcome written to the database", ["outcome"])
RUN_SECONDS = Histogram("todo_run_seconds", "From a run's start to its outcome", ["outcome"], buckets=metrics.SECONDS)
FIRST_EVENT = Histogram("todo_run_first_event_seconds", "To a run's first event", buckets=metrics.SECONDS)
PAUSES = Counter("todo_run_pauses", "Times that a run paused until its user decides about a tool call")
RUNNING = Gauge("todo_runs_running", "Runs that are executed now", multiprocess_mode="livesum")
ASYNCIO_TASKS = Gauge(
    "todo_backend_asyncio_tasks", "Tasks of the event loop when it was asked", multiprocess_mode="livesum"
)
CONNECTIONS = Gauge(
    "todo_backend_connections_in_use", "Connections to the database that are in use", multiprocess_mode="livesum"
)


def record_end(run: Run, *, began: float, first_event_seconds: float | None, tool_calls: int) -> None:
    seconds = time.perf_counter() - began
    usage = run.usage or {}
    values = fields(
        run=run.id,
        conversation=run.conversation_id,
        owner=run.user_id,
        parent_run=run.parent_run_id,
        agent=run.sub_agent,
        outcome=run.status,
        seconds=round(seconds, 4),
        first_event_seconds=first_event_seconds and round(first_event_seconds, 4),
        tool_calls=tool_calls,
        changes=len(run.changes["changes"]) if run.changes and not run.changes.get("unread") else None,
        model_requests=usage.get("requests"),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
    )
    if run.is_sub_agent:
        logger.info("sub-agent run ended", extra=values)
        return
    RUNS.labels(run.status).inc()
    RUN_SECONDS.labels(run.status).observe(seconds)
    logger.info("run ended", extra=values)
    traces.annotate({"todo.outcome": run.status, "todo.tool_calls": tool_calls})


def record_pause(run: Run, *, pending_approvals: int) -> None:
    PAUSES.inc()
    values = fields(
        run=run.id, conversation=run.conversation_id, owner=run.user_id, pending_approvals=pending_approvals
    )
    logger.info("run paused", extra=values)


def record_outside(
    user_id: str, conversation_id: str, run_ids: Iterable[str], outcome: Outcome, *, level: int = logging.INFO
) -> None:
    for run_id in run_ids:
        RUNS.labels(outcome).inc()
        values = fields(run=run_id, conversation=conversation_id, owner=user_id, outcome=outcome)
        logger.log(level, "run ended", extra=values)


def observe_process(database: Database) -> None:
    ASYNCIO_TASKS.set(len(asyncio.all_tasks()))
    CONNECTIONS.set(database.connections_in_use)
