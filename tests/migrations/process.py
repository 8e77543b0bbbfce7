import os
import subprocess
import sys

from tests.conftest import ROOT


def run(url: str | None, *arguments: str) -> subprocess.Popen[str]:
    """`python -m migrations` on the database at this URL, begun."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "MIGRATION_DATABASE_URL")
    }
    if url is not None:
        environment["DATABASE_URL"] = url
    return subprocess.Popen(
        [sys.executable, "-m", "migrations", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
