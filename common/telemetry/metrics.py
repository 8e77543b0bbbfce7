"""What Prometheus reads. Metrics belong to the rooms that know what they count; here is what several rooms count."""

import os
import re
from contextlib import suppress
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.responses import Response

from common.telemetry.worker_metrics import DIRECTORY

RETRIES = Counter("todo_retries", "Requests that were retried after a temporary error", ["to"])
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


def response() -> Response:
    """This process's numbers, or where there are several workers those of all together."""
    return Response(generate_latest(_registry()), headers={"content-type": CONTENT_TYPE_LATEST})


def _registry() -> CollectorRegistry:
    directory = os.environ.get(DIRECTORY)
    if directory is None:
        return REGISTRY
    _forget_the_dead(Path(directory))
    registry = CollectorRegistry()
    MultiProcessCollector(registry, directory)
    return registry


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
