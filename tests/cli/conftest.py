import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli.database import postgres
from tests.conftest import ROOT, find_memory
from tests.waiting import WAIT_SECONDS


@pytest.fixture
def shared_dir() -> Iterator[Path]:
    """A directory that PostgreSQL's user can enter, unlike pytest's own."""
    directory = tempfile.mkdtemp(prefix="todo-cli-", dir=find_memory())
    os.chmod(directory, 0o711)
    yield Path(directory)
    for data_dir in (directory, f"{directory}/data"):  # left behind by owners that were killed
        shutil.rmtree(postgres.url(data_dir).partition("host=")[2], ignore_errors=True)
        with suppress(FileNotFoundError, KeyError):
            shutil.rmtree(Path(json.loads(Path(data_dir, "up.json").read_text())["settings"]).parent)
    _remove(directory)


def _remove(directory: str) -> None:
    """Remove it, while a PostgreSQL whose owner was killed may still be writing its last."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return shutil.rmtree(directory)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Runs Python with these arguments in the checkout, its output in a pipe; killed at the end of the test."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: str, python: str | Path = sys.executable, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [python, *arguments],
            **{
                "cwd": ROOT,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.STDOUT,
                "text": True,
                "env": os.environ | {"NO_COLOR": "1"},
                **options,
            },
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    def wait(condition: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} seconds"
            time.sleep(0.02)

    return wait
