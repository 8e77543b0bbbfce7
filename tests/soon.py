"""What "within 2 seconds" means on a machine that has other things to do."""

import subprocess
import sys
import time

SECONDS = 2.0
_TIMES = 4


def is_soon(seconds: float) -> bool:
    """Whether it took at most 2 seconds, or 4 times what this machine takes to import the database's driver now.

    That is a quarter of a second on an idle machine; all that the backend imports takes twenty times as long.
    """
    if seconds <= SECONDS:
        return True
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import psycopg"], check=True)
    return seconds <= _TIMES * (time.monotonic() - began)
