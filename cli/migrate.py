import subprocess
import sys
from pathlib import Path

from cli import environment, local_database
from cli.data_dir import CHECKOUT


def run(directory: Path) -> int:
    """The exit code of `python -m migrations` for DATABASE_URL, else for the cluster in `directory`."""
    with local_database.reached(environment.load(), directory, create=True) as variables:
        return subprocess.call([sys.executable, "-m", "migrations"], cwd=CHECKOUT, env=variables)
