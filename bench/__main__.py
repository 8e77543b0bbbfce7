"""Measures the services on the empty, migrated database at DATABASE_URL; `./todo bench` starts it and prints the table.

It logs in as the superuser at MIGRATION_DATABASE_URL to fill the database. It writes progress and the report as lines
of JSON.
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from bench.load import Load
from bench.measure import Measurement, Scale
from bench.processes import count_cores
from bench.report import ReportRow
from bench.services import start_services

_EXPECTED_ROWS = 13
_SCALES = {"short": Scale(), "full": Scale(rounds=40, seconds=0.6), "tiny": Scale(1, 0.2, items=200, tasks=500)}


async def _main(arguments: argparse.Namespace) -> None:
    began, seconds = time.monotonic(), arguments.load or arguments.soak
    _write(share=0, doing="starting the services")
    if seconds:
        threads = min(6_000, 100 * arguments.at_once)
        settings = {"LIMIT_RUNS_AT_ONCE": str(arguments.at_once)}
    else:
        threads, settings = 2_000, {"LIMIT_LAG_SECONDS": "60"}  # nothing is rejected
    urls = {"database_url": os.environ["DATABASE_URL"], "admin_url": os.environ["MIGRATION_DATABASE_URL"]}
    async with start_services(arguments.work, **urls, threads=threads, **settings) as services:
        gc.collect()
        gc.freeze()
        if seconds:
            load = Load(services, seconds)
            rows = await _collect_for(load.measure() if arguments.load else load.soak(), seconds * 3)
        else:
            rows = await _collect(Measurement(services, _SCALES[arguments.scale]).measure())
    _write(
        report={
            "machine": {"cores": count_cores(), "python": platform.python_version()},
            "seconds": round(time.monotonic() - began, 1),
            "rows": [row.to_json() for row in rows],
        }
    )


async def _collect(measuring: AsyncIterator[ReportRow]) -> list[ReportRow]:
    """Reads the rows and writes progress after each of them."""
    rows: list[ReportRow] = []
    async for row in measuring:
        rows.append(row)
        _write(share=min(1, len(rows) / _EXPECTED_ROWS), doing=row.name)
    return rows


async def _collect_for(measuring: AsyncIterator[ReportRow], seconds: float) -> list[ReportRow]:
    """Reads the rows of phases that take about `seconds` together, and writes progress every second."""

    async def write_progress() -> None:
        began = time.monotonic()
        while True:
            _write(share=min(1, (time.monotonic() - began) / seconds), doing="load")
            await asyncio.sleep(1)

    progress = asyncio.create_task(write_progress())
    try:
        return [row async for row in measuring]
    finally:
        progress.cancel()
        with suppress(asyncio.CancelledError):
            await progress


def _write(**line: Any) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--scale", choices=_SCALES, default="short")
    parser.add_argument("--work", type=Path, required=True, help="a directory for logs and data")
    parser.add_argument("--load", type=float, help="measure open load instead, so many seconds of each phase")
    parser.add_argument("--soak", type=float, help="run half of that load instead, for so many seconds")
    parser.add_argument("--at-once", type=int, default=400, help="with these: how many answers may run at once")
    uvloop.run(_main(parser.parse_args()))
