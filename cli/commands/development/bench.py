"""`./todo bench`."""

import json
import os
from pathlib import Path
from typing import NamedTuple

from cli import terminal
from cli.commands.development import driven, files, report

LOAD_SECONDS = 300
_HEADINGS = ("", "figure", "", "compared with", "", "ratio")
_TEXT_COLUMNS = (0, 2, 4)


class Options(NamedTuple):
    """What is measured: a comparison with the Agents SDK, or seconds of load or soak."""

    scale: str = "short"
    load: float | None = None
    soak: float | None = None


def run(options: Options, *, json_file: Path | None = None) -> int:
    """Measures on a temporary PostgreSQL, which is as durable as a real one, and prints a table."""
    files.check(json_file)
    with driven.directory("bench") as directory, driven.database(directory / "database") as addresses:
        command = ["bench", "--scale", options.scale, "--work", str(directory / "work")]
        for name, seconds in (("load", options.load), ("soak", options.soak)):
            command += [f"--{name}", str(seconds)] if seconds else []
        found = driven.follow(command, os.environ | addresses)
    cells = [
        (
            row["name"],
            report.number(row["figure"]),
            row["unit"],
            report.number(row["baseline"]),
            row["baseline_name"],
            report.number(row["ratio"]),
        )
        for row in found["rows"]
    ]
    for line in report.columns([_HEADINGS, *cells], left=_TEXT_COLUMNS):
        terminal.say(line)
    terminal.say("")
    terminal.say(report.footer(found))
    if json_file:
        files.write(json_file, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return 0
