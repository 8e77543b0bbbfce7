import contextlib
import os
import time
from pathlib import Path
from typing import TextIO

from cli import data_dir, terminal
from cli.arguments.values import LOGS
from cli.errors import CliError
from cli.processes.children import last_lines

LINES = 20  # of each log
LOOK_SECONDS = 0.2


def run(directory: Path, *, service: str | None, follow: bool) -> int:
    """The end of the logs, of what runs and of what ran before; with `follow` until Ctrl-C."""
    names = (service,) if service else LOGS
    files = {name: data_dir.logs(directory) / f"{name}.log" for name in names}
    if not any(file.exists() for file in files.values()):
        what = f"no log of {service}" if service else "no log"
        raise CliError(f"There is {what} in {data_dir.logs(directory)}. ./todo up creates the logs.")
    readers: dict[str, TextIO] = {}
    for name, file in files.items():
        if follow and file.exists():
            readers[name] = _at_the_end(file)
        for line in last_lines(file, LINES).splitlines():
            _show(name, line, alone=service is not None)
    while follow:
        for name, file in files.items():
            for line in _current(readers, name, file):
                _show(name, line.rstrip("\n"), alone=service is not None)
        time.sleep(LOOK_SECONDS)
    return 0


def _show(name: str, line: str, *, alone: bool) -> None:
    if alone:
        terminal.say(line)
    else:
        terminal.log_line(name, line)


def _at_the_end(file: Path) -> TextIO:
    reader = file.open(errors="replace")
    reader.seek(0, 2)
    return reader


def _current(readers: dict[str, TextIO], name: str, file: Path) -> list[str]:
    """The lines that were added; each start of `up` begins a new file of the same name."""
    rest = list(readers.get(name, ()))
    with contextlib.suppress(FileNotFoundError):
        if name not in readers or file.stat().st_ino != os.fstat(readers[name].fileno()).st_ino:
            readers[name] = file.open(errors="replace")
            rest += readers[name]
    return rest
