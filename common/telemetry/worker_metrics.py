"""One set of metrics for several workers: whichever of them is asked answers for all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def added_up(workers: int) -> Iterator[None]:
    """Give the workers a place for their numbers; prometheus_client looks for it once, when it is imported."""
    if workers == 1:
        yield
        return
    assert "prometheus_client" not in sys.modules
    with TemporaryDirectory(prefix="todo-metrics-") as directory:
        os.environ[DIRECTORY] = directory
        yield
