"""Metrics for Prometheus. Most are defined where they are counted; here are those that several packages count."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from starlette.responses import Response

RETRIES = Counter("todo_retries", "Requests that were retried after a temporary error", ["to"])
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

# Reported in addition until version 0.4, for dashboards and alerts of operators.
_FORMER_NAMES = {
    "todo_runs": "todo_turns",
    "todo_run_seconds": "todo_turn_seconds",
    "todo_run_first_event_seconds": "todo_turn_first_event_seconds",
    "todo_run_pauses": "todo_turn_waits",
    "todo_runs_running": "todo_turns_running",
    "todo_runs_rejected": "todo_turns_refused",
    "todo_backend_asyncio_tasks": "todo_backend_tasks",
}


def render_metrics() -> Response:
    text = generate_latest(_WithFormerNames(_create_registry()))
    return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})


class _WithFormerNames(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            yield metric
            if former := _FORMER_NAMES.get(metric.name):
                copy = Metric(former, f"The former name of {metric.name}", metric.type)
                copy.samples = [
                    sample._replace(name=former + sample.name.removeprefix(metric.name)) for sample in metric.samples
                ]
                yield copy


def _create_registry() -> CollectorRegistry:
    directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")  # set by common/process.py
    if directory is None:
        return REGISTRY
    _remove_dead_workers(Path(directory))
    registry = CollectorRegistry()
    MultiProcessCollector(registry, directory)
    return registry


def _remove_dead_workers(directory: Path) -> None:
    """Removes the gauges of dead workers, and keeps their counters."""
    for file in directory.glob("gauge_live*_*.db"):
        if (match := re.search(r"_(\d+)\.db$", file.name)) and not _is_alive(int(match[1])):
            with suppress(FileNotFoundError):  # another worker may do the same
                mark_process_dead(int(match[1]), str(directory))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
