"""A temporary PostgreSQL with all tables, on which benchmark and evaluation run."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.data_dir import CHECKOUT
from cli.database.postgres import Cluster
from cli.errors import CliError

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only a directory of our own is made there
MEMORY_NEEDED = 2 * 1024**3


@dataclass(frozen=True)
class TemporaryDatabase:
    """`url` is of the services' login, `admin_url` of the superuser; `work` is a directory for logs."""

    url: str
    admin_url: str
    work: Path


@contextlib.contextmanager
def temporary_database(*, durable: bool = True) -> Iterator[TemporaryDatabase]:
    """Starts it in a directory that is deleted after the block, in memory if there is room."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM deletes it, too
    roomy = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > MEMORY_NEEDED
    place = SHARED_MEMORY if roomy else None
    with tempfile.TemporaryDirectory(prefix="todo-measured-", dir=place, ignore_cleanup_errors=True) as made:
        directory, work = Path(made), Path(made, "work")
        directory.chmod(0o711)  # PostgreSQL may run as another user than we do
        work.mkdir(mode=0o711)
        with Cluster.start(directory / "database", durable=durable) as cluster:
            _migrate(cluster.owner_url)
            yield TemporaryDatabase(cluster.url, cluster.admin_url, work)


def _migrate(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "migrations"],
        cwd=CHECKOUT,
        env=os.environ | {"MIGRATION_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CliError(f"The migrations failed:\n{done.stdout}{done.stderr}")
