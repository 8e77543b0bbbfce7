import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from cli import terminal
from cli.commands.development import driven, files, report
from cli.database import postgres_binaries

LOAD_SECONDS = 300
FIELDS = ("machine", "seconds", "notes", "rows")


class Options(NamedTuple):
    """What is measured: rows beside what it is made of, or seconds of load or soak."""

    scale: str = "short"
    load: float | None = None
    soak: float | None = None


def run(options: Options, *, json_file: Path | None = None, chart: Path | None = None, show: Path | None = None) -> int:
    """Everything on a throwaway PostgreSQL, durable as a real one; with a file to `show`, nothing runs."""
    if show:
        found = files.read(show, FIELDS, what="figures", command="bench")
    else:
        for file in (json_file, chart):
            files.check(file)
        found = _measured(options)
    for line in report.table(found):
        terminal.say(line)
    if json_file:
        files.write(json_file, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    if chart:
        files.write(chart, report.drawn(found))
    return 0


def _measured(options: Options) -> dict[str, Any]:
    with driven.directory("bench") as directory, driven.database(directory / "database") as addresses:
        command = ["bench", "--scale", options.scale, "--work", str(directory / "work"), *_pgbench()]
        for name, seconds in (("load", options.load), ("soak", options.soak)):
            command += [f"--{name}", str(seconds)] if seconds else []
        return driven.follow(command, os.environ | addresses)


def _pgbench() -> list[str]:
    beside_the_server = postgres_binaries.wheel()
    candidates = [beside_the_server / "pgbench"] if beside_the_server else []
    found = next((str(path) for path in candidates if path.exists()), shutil.which("pgbench"))
    return ["--pgbench", found] if found else []
