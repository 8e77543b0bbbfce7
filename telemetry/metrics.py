"""What Prometheus reads. The metrics themselves belong to the rooms that know what they count."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.responses import Response

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


def response() -> Response:
    """This process's numbers; with PROMETHEUS_MULTIPROC_DIR those of all workers of the service together."""
    directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    registry = _AllWorkers(directory) if directory else REGISTRY
    return Response(generate_latest(registry), headers={"content-type": CONTENT_TYPE_LATEST})


def watch_pool(engine: AsyncEngine, in_use: Gauge) -> None:
    """Keep in the gauge how many connections of the pool are lent."""
    pool: Any = engine.pool
    event.listen(pool, "checkout", lambda *_: in_use.set(pool.checkedout()))
    event.listen(pool, "checkin", lambda *_: in_use.set(max(0, pool.checkedout() - 1)))  # told before it is back


class _AllWorkers(CollectorRegistry):
    """The sums over the workers, of the metrics this service has: the two services may share the directory."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        _forget_the_dead(Path(directory))
        self._workers = MultiProcessCollector(None, directory)

    def collect(self) -> Iterator[Metric]:
        own = {metric.name for metric in REGISTRY.collect()}
        return (metric for metric in self._workers.collect() if metric.name in own)


def _forget_the_dead(directory: Path) -> None:
    """What a worker had open when it died is open no more; what it counted stays counted."""
    for file in directory.glob("gauge_live*_*.db"):
        if (found := re.search(r"_(\d+)\.db$", file.name)) and not _lives(int(found[1])):
            with suppress(FileNotFoundError):  # another worker was asked at the same time
                mark_process_dead(int(found[1]), str(directory))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
