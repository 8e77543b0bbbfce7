"""`./todo bench`."""

import argparse
import json
import os
from pathlib import Path

from cli import terminal
from cli.arguments import Commands, UsageError, add_command, amount
from cli.commands.development import measurement

LOAD_SECONDS = 300
_HEADINGS = ("", "figure", "", "compared with", "", "ratio")
_TEXT_COLUMNS = (0, 2, 4)


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "bench",
        run,
        "measure how fast it is",
        "Measures the services on a temporary PostgreSQL with an instant model, and compares them with the Agents SDK.",
        has_data_dir=False,
    )
    parser.add_argument("--full", action="store_true", help="measure longer, for more stable figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument(
        "--load", action="store_true", help="measure instead how much load it can take, and what happens beyond that"
    )
    seconds = f"with --load: how many seconds each load lasts ({LOAD_SECONDS})"
    parser.add_argument("--seconds", type=amount, metavar="N", help=seconds)
    soak = "run half of that load for so long, and check that nothing grows"
    parser.add_argument("--soak", type=amount, metavar="MINUTES", help=soak)


def run(arguments: argparse.Namespace) -> int:
    """Measures on a temporary PostgreSQL, which is as durable as a real one, and prints a table."""
    if arguments.seconds is not None and not arguments.load:
        raise UsageError("bench --seconds needs --load")
    kinds = [f"--{kind}" for kind in ("load", "soak", "full") if getattr(arguments, kind)]
    if len(kinds) > 1:
        raise UsageError(f"bench takes one of {' and '.join(kinds)}")
    load = (arguments.seconds or LOAD_SECONDS) if arguments.load else None
    soak = arguments.soak * 60 if arguments.soak else None
    measurement.check_writable(arguments.json)
    with measurement.directory("bench") as directory, measurement.database(directory / "database") as addresses:
        command = ["bench", "--scale", "full" if arguments.full else "short", "--work", str(directory / "work")]
        for name, seconds in (("load", load), ("soak", soak)):
            command += [f"--{name}", str(seconds)] if seconds else []
        report = measurement.follow(command, os.environ | addresses)
    cells = [
        (
            row["name"],
            measurement.format_number(row["figure"]),
            row["unit"],
            measurement.format_number(row["baseline"]),
            row["baseline_name"],
            measurement.format_number(row["ratio"]),
        )
        for row in report["rows"]
    ]
    for line in measurement.format_columns([_HEADINGS, *cells], left=_TEXT_COLUMNS):
        terminal.say(line)
    terminal.say("")
    terminal.say(measurement.format_footer(report))
    if arguments.json:
        measurement.write_file(arguments.json, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return 0
