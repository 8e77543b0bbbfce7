import argparse
import os
import signal
import time

from cli import terminal
from cli.arguments import Commands, add_command
from cli.errors import CliError
from cli.services import running

NOTHING_RUNS = 1
SECONDS = 60
_LOOK_SECONDS = 0.1


def add(commands: Commands) -> None:
    add_command(
        commands,
        "down",
        run,
        "stop ./todo up",
        "Stops the ./todo up of the data directory and waits until it has stopped. Exit status 1: nothing is running.",
    )


def run(arguments: argparse.Namespace) -> int:
    directory = arguments.data_dir
    state = running.read_state(directory)
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
    until = time.monotonic() + SECONDS
    while (state := running.read_state(directory)) is not None and state["pid"] == pid:
        if time.monotonic() > until:
            raise CliError(f"./todo up, process {pid}, did not stop within {SECONDS} seconds. See ./todo logs.")
        time.sleep(_LOOK_SECONDS)
    terminal.say("Stopped.")
    return 0
