import os
import signal
import time
from pathlib import Path

from cli import terminal
from cli.errors import CliError
from cli.services import running

NOTHING_RUNS = 1
SECONDS = 60
_LOOK_SECONDS = 0.1


def run(directory: Path, *, seconds: float = SECONDS) -> int:
    """0 when what ran has ended, 1 when nothing runs."""
    state = running.read(directory)
    if state is None:
        terminal.say(f"Nothing is running with the data in {directory}.")
        return NOTHING_RUNS
    pid = state["pid"]
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:  # it has just ended
        pass
    except PermissionError:
        raise CliError(f"./todo up is process {pid} of another user. Stop it as that user.") from None
    until = time.monotonic() + seconds
    while (state := running.read(directory)) is not None and state["pid"] == pid:
        if time.monotonic() > until:
            raise CliError(f"./todo up, process {pid}, did not stop within {seconds:g} seconds. See ./todo logs.")
        time.sleep(_LOOK_SECONDS)
    terminal.say("Stopped.")
    return 0
