"""Commands that control the `./todo up` of a data directory: status, logs and down."""

import argparse
import contextlib
import datetime
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, TextIO

from cli import data_dir, terminal
from cli.arguments import Commands, add_command
from cli.errors import CliError, explain_os_error
from cli.processes.children import read_last_lines
from cli.services import running
from common import child_environment

NOT_READY, NOTHING_RUNS = 2, 1
LOGS = (*(part.replace("_", "-") for part in child_environment.PARTS), "postgres")
_MAX_LINES = 20  # of each log
_LOOK_SECONDS = 0.2
_STOP_SECONDS = 60


def add(commands: Commands) -> None:
    add_command(
        commands,
        "status",
        run_status,
        "show what is running",
        "Shows what is running, where, since when, and whether it is ready. Exit status 1: nothing is running, 2: "
        "something is not ready.",
    )
    logs = add_command(
        commands,
        "logs",
        run_logs,
        "show the logs",
        "Shows the last lines of the logs of the running, or the last, ./todo up.",
    )
    named = f"one of {', '.join(LOGS)}; default: all of them"
    logs.add_argument("service", nargs="?", choices=LOGS, metavar="service", help=named)
    logs.add_argument("--follow", action="store_true", help="keep showing new lines, until Ctrl-C")
    add_command(
        commands,
        "down",
        run_down,
        "stop ./todo up",
        "Stops the ./todo up of the data directory and waits until it has stopped. Exit status 1: nothing is running.",
    )


def run_status(arguments: argparse.Namespace) -> int:
    directory = arguments.data_dir
    state = _read_state(directory)
    if state is None:
        terminal.say(f"Nothing is running with the data in {directory}. Start it with ./todo up.")
        return NOTHING_RUNS
    found = state["parts"]
    conditions = [_describe_part(part) for part in found]
    for part, (_, condition) in zip(found, conditions, strict=True):
        where = f"127.0.0.1:{part['port']}" if part["port"] else "a local socket"
        since = f"since {datetime.datetime.fromtimestamp(part['since']).astimezone():%Y-%m-%d %H:%M:%S}"
        terminal.say(f"  {part['name']:<14} {where:<16} {since:<25} {condition}")
    terminal.say(f"  page  {state.get('page', 'not yet')}")
    terminal.say(f"  data  {directory}")
    terminal.say(f"  logs  {data_dir.logs(directory)}")
    terminal.say(f"./todo up is process {state['pid']}.")
    return 0 if found and all(well for well, _ in conditions) else NOT_READY


def _read_state(directory: Path) -> dict[str, Any] | None:
    """Raises `CliError` where another account's `up` could not be seen."""
    state = running.read_state(directory)
    if state is None:
        with (
            explain_os_error(f"The data directory {directory} cannot be read"),
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
        ):
            os.scandir(directory).close()
    return state


def _describe_part(part: dict[str, Any]) -> tuple[bool, str]:
    if part["pid"] is None:
        return False, "keeps dying, and is tried again slowly" if part.get("keeps_dying") else "died, and restarts soon"
    if not part["port"]:
        return True, "runs"
    status, text = running.probe(part["port"], part["path"])
    if not status:
        return False, "does not answer"
    if status != 200:
        return False, f"not ready: {_find_reason(text)}"
    return True, f"ready{_describe_limits(json.loads(text))}"


def _describe_limits(answer: dict[str, Any]) -> str:
    notes = [f", but {name} {reason}" for name, reason in answer.get("unusable", {}).items()]
    if "confinement" in answer:
        confined = answer["confinement"]
        notes.append(f", commands in {confined}" if confined else ", no commands, because there is no sandbox")
    return "".join(notes)


def _find_reason(text: str) -> str:
    try:
        return json.loads(text)["reason"]
    except (ValueError, KeyError, TypeError):
        return text[:200]


def run_logs(arguments: argparse.Namespace) -> int:
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
            readers[name] = file.open(errors="replace")
            readers[name].seek(0, os.SEEK_END)
        for line in read_last_lines(file, _MAX_LINES).splitlines():
            show(name, line)
    while arguments.follow:
        for name, file in files.items():
            for line in _read_new(readers, name, file):
                show(name, line.rstrip("\n"))
        time.sleep(_LOOK_SECONDS)
    return 0


def _read_new(readers: dict[str, TextIO], name: str, file: Path) -> list[str]:
    """Returns the lines that were added; each start of `up` begins a new file, and it empties a large one."""
    reader = readers.get(name)
    rest = list(reader or ())
    if reader and os.fstat(reader.fileno()).st_size < reader.buffer.tell():
        reader.seek(0)
        rest += reader
    with contextlib.suppress(FileNotFoundError):
        if reader is None or file.stat().st_ino != os.fstat(reader.fileno()).st_ino:
            readers[name] = file.open(errors="replace")
            rest += readers[name]
    return rest


def run_down(arguments: argparse.Namespace) -> int:
    directory = arguments.data_dir
    state = _read_state(directory)
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
    until = time.monotonic() + _STOP_SECONDS
    while (state := running.read_state(directory)) is not None and state["pid"] == pid:
        if time.monotonic() > until:
            raise CliError(f"./todo up, process {pid}, did not stop within {_STOP_SECONDS} seconds. See ./todo logs.")
        time.sleep(_LOOK_SECONDS)
    terminal.say("Stopped.")
    return 0
