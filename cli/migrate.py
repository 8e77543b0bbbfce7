import contextlib
import subprocess
import sys
from pathlib import Path

from cli import environment, postgres
from cli.data_dir import CHECKOUT
from cli.ownership import InUseError


def run(directory: Path) -> int:
    """The exit code of `python -m migrations` for DATABASE_URL, else for the cluster in `directory`."""
    variables = environment.load()
    with contextlib.ExitStack() as stack:
        if "DATABASE_URL" not in variables:
            try:
                variables["DATABASE_URL"] = stack.enter_context(postgres.Cluster.start(directory)).url
            except InUseError:  # `up` runs there: migrate what it runs
                variables["DATABASE_URL"] = postgres.url(directory)
        return subprocess.call([sys.executable, "-m", "migrations"], cwd=CHECKOUT, env=variables)
