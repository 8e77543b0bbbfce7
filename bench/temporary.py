"""A temporary PostgreSQL with all tables, on which benchmark and evaluation run."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.database.postgres import Cluster
from cli.services import service_command

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
            variables = os.environ | {"MIGRATION_DATABASE_URL": cluster.owner_url}
            service_command.run("migrations", variables=variables, stdout=subprocess.DEVNULL)
            yield TemporaryDatabase(cluster.url, cluster.admin_url, work)
