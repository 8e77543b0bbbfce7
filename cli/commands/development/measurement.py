"""What benchmark and evaluation share: processes on temporary databases, tables, and files of JSON."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError
from cli.processes.children import Reaper

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only a directory of our own is made there
MEMORY_NEEDED = 2 * 1024**3
BAR = 24


@contextlib.contextmanager
def directory(name: str) -> Iterator[Path]:
    """A directory that is deleted after the block, in memory if there is room."""
    # An end by SIGTERM clears away as one by Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    roomy = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > MEMORY_NEEDED
    place = SHARED_MEMORY if roomy else None
    with tempfile.TemporaryDirectory(prefix=f"todo-{name}-", dir=place, ignore_cleanup_errors=True) as made:
        directory = Path(made)
        directory.chmod(0o711)  # PostgreSQL may run as another user than we do
        (directory / "work").mkdir(mode=0o711)
        yield directory


@contextlib.contextmanager
def database(directory: Path, *, durable: bool = True) -> Iterator[dict[str, str]]:
    """Yields the addresses of a new database with all tables."""
    from cli.database.postgres import Cluster

    with Cluster.start(directory, durable=durable) as cluster:
        _migrate(cluster.owner_url)
        yield {"DATABASE_URL": cluster.url, "MIGRATION_DATABASE_URL": cluster.admin_url}


def follow(
    command: Sequence[str],
    variables: Mapping[str, str],
    *,
    on_event: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Returns the report of `python -m COMMAND`, after which all that it started is ended.

    Lines that say something else than how far it is go to `on_event`.
    """
    with Reaper() as reaper, _group([sys.executable, "-m", *command], variables, reaper) as process:
        assert process.stdout
        with terminal.Progress() as progress:
            for line in process.stdout:
                match json.loads(line):
                    case {"report": report}:
                        return report
                    case {"share": share, "doing": doing}:
                        filled = round(share * BAR)
                        progress.show(f"[{'#' * filled}{'.' * (BAR - filled)}] {doing}")
                    case other:
                        on_event(other)
    raise CliError(f"python -m {command[0]} ended before its report.")


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


@contextlib.contextmanager
def _group(command: list[str], variables: Mapping[str, str], reaper: Reaper) -> Iterator[subprocess.Popen[bytes]]:
    """The process and all that it starts are one process group, which ends with the block."""
    process = subprocess.Popen(command, cwd=CHECKOUT, env=variables, stdout=subprocess.PIPE, start_new_session=True)
    reaper.watch(process.pid)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it found is all that is worth keeping
        process.wait()
        reaper.release(process.pid)


def format_columns(cells: Sequence[Sequence[str]], *, left: Sequence[int]) -> Iterator[str]:
    """Yields the lines of a table; the columns named in `left` are aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()


def format_footer(report: Mapping[str, Any]) -> str:
    """Says how long a report took and on what machine."""
    machine = report["machine"]
    return f"{report['seconds']:.0f} seconds on {machine['cores']} cores, Python {machine['python']}."


def format_number(value: float | None) -> str:
    """Formats a number with three digits, or all digits before the point; None as nothing."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def read_file(file: Path, fields: Collection[str], *, what: str, command: str) -> dict[str, Any]:
    """Reads what `./todo COMMAND --json FILE` wrote; raises `CliError` if a field is missing."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or not set(fields) <= content.keys():
        raise CliError(f"{file} does not contain {what}. Create such a file with ./todo {command} --json FILE.")
    return content


def write_file(file: Path, text: str) -> None:
    """Writes a file as a whole or not at all."""
    with _fresh(file) as fresh:
        fresh.write_text(text)
        fresh.replace(file)


def check_writable(file: Path | None) -> None:
    """Checks, before work that takes minutes, that its result could be written there."""
    if file is not None:
        with _fresh(file) as fresh:
            fresh.touch()
            fresh.unlink()


@contextlib.contextmanager
def _fresh(file: Path) -> Iterator[Path]:
    try:
        yield file.with_name(f"{file.name}.new")
    except OSError as error:
        raise CliError(f"{file} cannot be written: {error.strerror}.") from error
