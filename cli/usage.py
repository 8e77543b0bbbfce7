import subprocess
import sys
from pathlib import Path

from cli import environment, local_database
from cli.data_dir import CHECKOUT


def run(*, days: int, user: str | None, as_json: bool, directory: Path) -> int:
    """The exit code of `python -m backend usage`."""
    command = [sys.executable, "-m", "backend", "usage", f"--days={days}"]
    if user is not None:
        command.append(f"--user={user}")
    if as_json:
        command.append("--json")
    with local_database.reached(environment.load(), directory) as variables:
        return subprocess.call(command, cwd=CHECKOUT, env=variables)
