import argparse
import contextlib
import os
import time
from pathlib import Path
from typing import TextIO

from cli import data_dir, terminal
from cli.arguments import Commands, add_command
from cli.errors import CliError
from cli.processes.children import read_last_lines
from common import child_environment

LOGS = (*(part.replace("_", "-") for part in child_environment.PARTS), "postgres")
LINES = 20  # of each log
LOOK_SECONDS = 0.2


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "logs",
        run,
        "show the logs",
        "Shows the last lines of the logs of the running, or the last, ./todo up.",
    )
    named = f"one of {', '.join(LOGS)}; default: all of them"
    parser.add_argument("service", nargs="?", choices=LOGS, metavar="service", help=named)
    parser.add_argument("--follow", action="store_true", help="keep showing new lines, until Ctrl-C")


def run(arguments: argparse.Namespace) -> int:
    directory, service = arguments.data_dir, arguments.service
    names = (service,) if service else LOGS
    files = {name: data_dir.logs(directory) / f"{name}.log" for name in names}
    if not any(file.exists() for file in files.values()):
        what = f"no log of {service}" if service else "no log"
        raise CliError(f"There is {what} in {data_dir.logs(directory)}. ./todo up creates the logs.")
    show = (lambda _, line: terminal.say(line)) if service else terminal.log_line
    readers: dict[str, TextIO] = {}
    for name, file in files.items():
        if arguments.follow and file.exists():
            readers[name] = _open_at_end(file)
        for line in read_last_lines(file, LINES).splitlines():
            show(name, line)
    while arguments.follow:
        for name, file in files.items():
            for line in _read_new(readers, name, file):
                show(name, line.rstrip("\n"))
        time.sleep(LOOK_SECONDS)
    return 0


def _open_at_end(file: Path) -> TextIO:
    reader = file.open(errors="replace")
    reader.seek(0, 2)
    return reader


def _read_new(readers: dict[str, TextIO], name: str, file: Path) -> list[str]:
    """Returns the lines that were added; each start of `up` begins a new file of the same name."""
    rest = list(readers.get(name, ()))
    with contextlib.suppress(FileNotFoundError):
        if name not in readers or file.stat().st_ino != os.fstat(readers[name].fileno()).st_ino:
            readers[name] = file.open(errors="replace")
            rest += readers[name]
    return rest
