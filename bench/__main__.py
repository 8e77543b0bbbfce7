"""`./todo bench`: measures the services on a temporary PostgreSQL, which is as durable as a real one."""

import argparse
import asyncio
import gc
import json
import platform
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

import uvloop

from bench.load import Load
from bench.measure import Measurement, Scale
from bench.processes import count_cores
from bench.report import ReportRow, format_machine, format_number
from bench.services import start_services, temporary_database
from cli import terminal
from cli.arguments import Parser, amount, run_command
from cli.database.postgres import Cluster
from common.commands import format_table

_LOAD_SECONDS = 300
_SCALES = {"short": Scale(), "full": Scale(rounds=40, seconds=0.6), "tiny": Scale(1, 0.2, items=200, tasks=500)}
_HEADINGS = ("", "figure", "", "compared with", "", "ratio")
_TEXT_COLUMNS = (0, 2, 4)


def _parse() -> argparse.Namespace:
    parser = Parser(
        prog="todo bench",
        description="Measures the services on a temporary PostgreSQL with an instant model, and compares them with the "
        "Agents SDK.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", type=_create_file, metavar="FILE", help="also write the figures to this file")
    parser.set_defaults(scale="short")
    kinds = parser.add_mutually_exclusive_group()
    full = "measure longer, for more stable figures"
    kinds.add_argument("--full", dest="scale", action="store_const", const="full", help=full)
    kinds.add_argument("--tiny", dest="scale", action="store_const", const="tiny", help=argparse.SUPPRESS)
    load = "measure instead how much load it can take, and what happens beyond that"
    kinds.add_argument("--load", action="store_true", help=load)
    soak = "run half of that load for so long, and check that nothing grows"
    kinds.add_argument("--soak", type=amount, metavar="MINUTES", help=soak)
    seconds = f"with --load: how many seconds each load lasts ({_LOAD_SECONDS})"
    parser.add_argument("--seconds", type=amount, metavar="N", help=seconds)
    parser.add_argument("--at-once", type=int, default=400, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.seconds is not None and not arguments.load:
        parser.error("--seconds needs --load")
    return arguments


def _create_file(name: str) -> Path:
    """Creates the file before the measurement, which takes minutes."""
    try:
        Path(name).touch()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name} cannot be written: {error.strerror}") from error
    return Path(name)


def main() -> int:
    arguments, began = _parse(), time.monotonic()
    with terminal.Progress() as progress:
        progress.begin("starting PostgreSQL")
        with temporary_database() as database:
            rows = uvloop.run(_measure(arguments, database, progress))
    seconds = time.monotonic() - began
    if arguments.json:
        machine = {"cores": count_cores(), "python": platform.python_version()}
        report = {"machine": machine, "seconds": round(seconds, 1), "rows": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    for line in format_table([_HEADINGS, *map(_render_cells, rows)], left=_TEXT_COLUMNS):
        terminal.say(line)
    terminal.say(f"\n{format_machine(seconds)}")
    return 0


def _render_cells(row: ReportRow) -> tuple[str, ...]:
    figures = format_number(row.figure), row.unit, format_number(row.baseline), row.baseline_name
    return row.name, *figures, format_number(row.ratio)


async def _measure(arguments: argparse.Namespace, database: Cluster, progress: terminal.Progress) -> list[ReportRow]:
    load, soak = (arguments.seconds or _LOAD_SECONDS) if arguments.load else 0, (arguments.soak or 0) * 60
    if load or soak:
        threads = min(6_000, 100 * arguments.at_once)
        settings = {"LIMIT_RUNS_AT_ONCE": str(arguments.at_once)}
    else:
        threads, settings = 2_000, {"LIMIT_LAG_SECONDS": "60"}  # nothing is rejected
    progress.begin("starting the services, and filling the database")
    async with start_services(database, threads=threads, **settings) as services:
        gc.collect()
        gc.freeze()
        if load:
            return await _collect(Load(services, load).measure(), progress)
        if soak:
            return await _collect(Load(services, soak).soak(), progress)
        return await _collect(Measurement(services, _SCALES[arguments.scale]).measure(), progress)


async def _collect(measuring: AsyncIterator[ReportRow | str], progress: terminal.Progress) -> list[ReportRow]:
    """Collects the rows; each text says what is measured next."""
    rows: list[ReportRow] = []
    step = ""

    async def show_progress() -> None:
        while True:
            progress.show(step)
            await asyncio.sleep(1)

    showing = asyncio.create_task(show_progress())
    try:
        async for one in measuring:
            if isinstance(one, ReportRow):
                rows.append(one)
            else:
                step = f"{len(rows)} figures so far; measuring {one}"
                progress.begin(step)
    finally:
        showing.cancel()
    return rows


if __name__ == "__main__":
    sys.exit(run_command(main))
