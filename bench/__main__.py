"""Runs all measurements on the empty, migrated database at DATABASE_URL; `./todo bench` starts it and shows the table.

Fills it as the superuser at MIGRATION_DATABASE_URL.

Writes lines of JSON: what it is doing, at last the report.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from bench.measure.capacity.soak import soak
from bench.measure.capacity.under_load import Load
from bench.measure.database import database
from bench.measure.driver import driver
from bench.measure.followed import followed_tokens, resumed_readers
from bench.measure.lists import lists
from bench.measure.memory import idle, streaming
from bench.measure.sizes import first_pages, open_threads, turns_in_threads
from bench.measure.starts import starts
from bench.measure.terminal import terminal
from bench.measure.tool_calls import tool_calls
from bench.measure.turns import chats, tokens, turns
from bench.processes import cores, free_port
from bench.rows import Row
from bench.scale import SCALES, UNDER_LOAD
from bench.stage import Place, Stage, product, set_up

Measurement = Callable[[Stage], Awaitable[list[Row] | Row]]

MEASUREMENTS: dict[str, Measurement] = {
    # First, while the processes have not kept anything free from busier times.
    "memory, idle": idle,
    "memory, streaming": streaming,
    "turns, 1 conversation": lambda stage: turns(stage, 1),
    "turns, 16 conversations": lambda stage: turns(stage, 16),
    "turns, 64 conversations": lambda stage: turns(stage, 64),
    "turns at /chat": chats,
    "streamed tokens": tokens,
    "followed tokens": followed_tokens,
    "resumed readers": resumed_readers,
    "a conversation in a terminal": terminal,
    "tool calls, 1 caller": lambda stage: tool_calls(stage, 1),
    "tool calls, 16 callers": lambda stage: tool_calls(stage, 16),
    "long threads": open_threads,
    "turns in long threads": turns_in_threads,
    "many tasks": first_pages,
    "lists with a filter": lists,
    "round trips to PostgreSQL": database,
}


async def main(arguments: argparse.Namespace) -> None:
    scale = SCALES[arguments.scale]
    began = time.monotonic()
    _tell(doing="starting", share=0)
    there = {"work": arguments.work, "pgbench": arguments.pgbench}
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(set_up(scale, **_urls(), **there))
        notes = [await driver(stage)]
        rows = await _measured({name: partial(measure, stage) for name, measure in MEASUREMENTS.items()})
        _tell(doing="starts", share=1)
        rows += await starts(stage.place)  # of everything together; its model is this one's
    _report(rows, notes, began)


async def under_load(arguments: argparse.Namespace) -> None:
    """Its own run, on the services alone."""
    began, seconds = time.monotonic(), arguments.load or arguments.soak
    # Each answer is in a conversation in which none has run for long.
    scale = replace(UNDER_LOAD, threads=min(UNDER_LOAD.threads, 100 * arguments.at_once))
    urls = (os.environ["DATABASE_URL"], os.environ["MIGRATION_DATABASE_URL"])
    place = Place(scale, *urls, arguments.work, None, free_port())
    progress = _Progress(seconds * (4 if arguments.load else 1.2))
    telling = asyncio.create_task(progress.tell())
    async with product(place, LIMIT_RUNS_AT_ONCE=str(arguments.at_once)) as services:
        load = Load(place, services, seconds, progress.now, most=arguments.at_once)
        rows, notes = await (load.rows() if arguments.load else soak(load))
    telling.cancel()
    _report(rows, notes, began)


class _Progress:
    """By the clock: what is done takes about as many seconds as it is given."""

    def __init__(self, seconds: float) -> None:
        self._began, self._seconds = time.monotonic(), seconds
        self._doing = "starting"

    def now(self, doing: str) -> None:
        self._doing = doing

    async def tell(self) -> None:
        while True:
            _tell(doing=self._doing, share=min(1.0, (time.monotonic() - self._began) / self._seconds))
            await asyncio.sleep(1)


def _report(rows: list[Row], notes: list[str], began: float) -> None:
    _tell(
        report={
            "machine": {"cores": cores(), "python": platform.python_version()},
            "seconds": round(time.monotonic() - began, 1),
            "notes": notes,
            "rows": [row.as_json() for row in rows],
        }
    )


def _urls() -> dict[str, Any]:
    names = {"database_url": "DATABASE_URL", "admin_url": "MIGRATION_DATABASE_URL"}
    return {name: os.environ[variable] for name, variable in names.items()}


async def _measured(measurements: Mapping[str, Callable[[], Awaitable[list[Row] | Row]]]) -> list[Row]:
    rows: list[Row] = []
    for number, (name, measure) in enumerate(measurements.items(), 1):
        _tell(doing=name, share=number / (len(measurements) + 2))
        found = await measure()
        rows += [found] if isinstance(found, Row) else found
    return rows


def _tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--scale", choices=SCALES, default="short")
    parser.add_argument("--work", type=Path, required=True, help="a directory for logs and data")
    parser.add_argument("--pgbench", help="the program, when there is one")
    parser.add_argument("--load", type=float, help="open arrivals instead, so many seconds of each load")
    parser.add_argument("--soak", type=float, help="half of what it carries instead, for so many seconds")
    parser.add_argument("--at-once", type=int, default=400, help="with these, how many answers may run at once")
    given = parser.parse_args()
    uvloop.run(under_load(given) if given.load or given.soak else main(given))
