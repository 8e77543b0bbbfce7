import os
import subprocess
import sys

from tests.conftest import ROOT


def run(url: str | None, **variables: str) -> subprocess.Popen[str]:
    """Starts `python -m migrations` on the database at this URL."""
    names = ("DATABASE_URL", "MIGRATION_DATABASE_URL")
    environment = {key: value for key, value in os.environ.items() if key not in names}
    if url is not None:
        environment["DATABASE_URL"] = url
    return subprocess.Popen(
        [sys.executable, "-m", "migrations"],
        cwd=ROOT,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
