import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli import terminal
from cli.commands.development import report
from cli.data_dir import CHECKOUT
from cli.database import postgres_binaries
from cli.database.postgres import Cluster
from cli.errors import CliError
from cli.processes.keeper import Keeper

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only a directory of our own is made there
MEMORY_NEEDED = 2 * 1024**3
BAR = 24


def run(*, scale: str, json_file: Path | None, against: Path | None = None) -> int:
    """Everything on a throwaway PostgreSQL, durable as a real one, on a disk in memory where there is room.

    Another checkout that it is compared `against` gets one of its own.
    """
    # An end by SIGTERM clears away as one by Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    roomy = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > MEMORY_NEEDED
    with (
        Keeper() as keeper,
        tempfile.TemporaryDirectory(
            prefix="todo-bench-", dir=SHARED_MEMORY if roomy else None, ignore_cleanup_errors=True
        ) as name,
    ):
        directory = Path(name)
        directory.chmod(0o711)  # PostgreSQL may run as another user than we do
        work = directory / "work"
        work.mkdir(mode=0o711)
        with contextlib.ExitStack() as clusters:
            addresses = _prepared(clusters, directory / "database", CHECKOUT)
            command = [sys.executable, "-m", "bench", "--scale", scale, "--work", str(work), *_pgbench()]
            if against:
                other = against.resolve()
                named = _prepared(clusters, directory / "other", other)
                addresses |= {f"AGAINST_{name}": url for name, url in named.items()}
                command += ["--against", str(other)]
            with _group(command, addresses, keeper) as process:
                found = _follow(process)
    for line in report.table(found):
        terminal.say(line)
    if json_file:
        json_file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return 0


def _prepared(clusters: contextlib.ExitStack, directory: Path, checkout: Path) -> dict[str, str]:
    """A database with the checkout's tables."""
    cluster = clusters.enter_context(Cluster.start(directory))
    _migrate(cluster.owner_url, checkout)
    return {"DATABASE_URL": cluster.url, "MIGRATION_DATABASE_URL": cluster.admin_url}


def _migrate(url: str, checkout: Path) -> None:
    own = checkout / ".venv" / "bin" / "python"
    command = [str(own) if own.exists() else sys.executable, "-m", "migrations"]
    done = subprocess.run(
        command,
        cwd=checkout,
        env=os.environ | {"MIGRATION_DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CliError(f"The migrations failed:\n{done.stdout}{done.stderr}")


def _pgbench() -> list[str]:
    beside_the_server = postgres_binaries.wheel()
    candidates = [beside_the_server / "pgbench"] if beside_the_server else []
    found = next((str(path) for path in candidates if path.exists()), shutil.which("pgbench"))
    return ["--pgbench", found] if found else []


@contextlib.contextmanager
def _group(command: list[str], addresses: dict[str, str], keeper: Keeper) -> Iterator[subprocess.Popen[bytes]]:
    """The benchmark and all that it starts are one process group, which ends with the block."""
    process = subprocess.Popen(
        command, cwd=CHECKOUT, env=os.environ | addresses, stdout=subprocess.PIPE, start_new_session=True
    )
    keeper.watch(process.pid)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it measured is all that is worth keeping
        process.wait()
        keeper.release(process.pid)


def _follow(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout
    with terminal.Progress() as progress:
        for line in process.stdout:
            told = json.loads(line)
            if "report" in told:
                return told["report"]
            filled = round(told["share"] * BAR)
            progress.show(f"[{'#' * filled}{'.' * (BAR - filled)}] {told['doing']}")
    raise CliError("The benchmark ended before its report.")
