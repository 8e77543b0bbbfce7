"""Runs all measurements on the empty, migrated database at DATABASE_URL; `./todo bench` starts it and shows the table.

Fills it as the superuser at MIGRATION_DATABASE_URL.

Writes lines of JSON: what it is doing, at last the report.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop

from bench.measure.database import database
from bench.measure.driver import driver
from bench.measure.lists import lists
from bench.measure.memory import idle, streaming
from bench.measure.sizes import first_pages, open_threads, turns_in_threads
from bench.measure.starts import starts
from bench.measure.tool_calls import tool_calls
from bench.measure.turns import tokens, turns
from bench.rows import Row
from bench.scale import SCALES
from bench.stage import Stage, set_up

Measurement = Callable[[Stage], Awaitable[list[Row] | Row]]

MEASUREMENTS: dict[str, Measurement] = {
    # First, while the processes have not kept anything free from busier times.
    "memory, idle": idle,
    "memory, streaming": streaming,
    "turns, 1 conversation": lambda stage: turns(stage, 1),
    "turns, 16 conversations": lambda stage: turns(stage, 16),
    "turns, 64 conversations": lambda stage: turns(stage, 64),
    "streamed tokens": tokens,
    "tool calls, 1 caller": lambda stage: tool_calls(stage, 1),
    "tool calls, 16 callers": lambda stage: tool_calls(stage, 16),
    "long threads": open_threads,
    "turns in long threads": turns_in_threads,
    "many tasks": first_pages,
    "lists with a filter": lists,
    "round trips to PostgreSQL": database,
}
STARTS = "starts"


async def main(arguments: argparse.Namespace) -> None:
    scale = SCALES[arguments.scale]
    began = time.monotonic()
    steps = ["starting", *MEASUREMENTS, *([STARTS] if scale.starts else [])]
    rows: list[Row] = []
    _tell(doing="starting", share=0)
    async with set_up(
        scale,
        database_url=os.environ["DATABASE_URL"],
        admin_url=os.environ["MIGRATION_DATABASE_URL"],
        work=arguments.work,
        pgbench=arguments.pgbench,
    ) as stage:
        place = stage.place
        notes = [await driver(stage)]
        for name, measurement in MEASUREMENTS.items():
            _tell(doing=name, share=steps.index(name) / len(steps))
            found = await measurement(stage)
            rows += [found] if isinstance(found, Row) else found
        if scale.starts:
            _tell(doing=STARTS, share=steps.index(STARTS) / len(steps))
            rows += await starts(place)
    _tell(
        report={
            "machine": {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()},
            "seconds": round(time.monotonic() - began, 1),
            "notes": notes,
            "rows": [row.as_json() for row in rows],
        }
    )


def _tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--scale", choices=SCALES, default="short")
    parser.add_argument("--work", type=Path, required=True, help="a directory for logs and data")
    parser.add_argument("--pgbench", help="the program, when there is one")
    uvloop.run(main(parser.parse_args()))
