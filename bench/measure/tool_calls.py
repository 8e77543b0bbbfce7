"""Tool calls straight to the MCP server, beside what the same statements cost without it."""

import asyncio
import re
from asyncio.subprocess import PIPE
from functools import partial
from itertools import cycle
from pathlib import Path

from bench.compared import Side, in_turns, rate
from bench.drivers import load
from bench.drivers.client import Client
from bench.drivers.load import Call, Load, Timing
from bench.endpoints.statements import ADD
from bench.rows import Row
from bench.stage import PEOPLE, Stage

PLAIN, OPEN, GUARDED, PGBENCH = "FastAPI", "tools", "tools with tokens", "pgbench"
_TRANSACTIONS = 320  # of pgbench in a round, which counts none by parts of a second
_SCRIPT = f"""\\startpipeline
BEGIN;
SET LOCAL statement_timeout = '10s';
SET LOCAL ROLE todo_app;
SET LOCAL todo.user_id = 'person-0';
\\endpipeline
{ADD.strip()};
COMMIT;
"""


async def tool_calls(stage: Stage, callers: int) -> list[Row]:
    scale = stage.scale
    calls = {
        OPEN: stage.tools.adding(cycle(PEOPLE)),
        GUARDED: stage.tools_with_tokens.adding(cycle(PEOPLE)),
        PLAIN: _plain(stage.plain),
    }
    sides: dict[str, Side] = {
        name: partial(load.run, call, callers=callers, seconds=scale.seconds / 2) for name, call in calls.items()
    }
    if stage.place.pgbench:
        sides[PGBENCH] = partial(_pgbench, stage, stage.place.pgbench, callers)
    done = await in_turns(scale.rounds, sides)
    name = f"tool calls a second at {callers}"
    rows = [
        done.row(name, "/s", rate, OPEN, PLAIN),
        done.row(f"{name}, with tokens", "/s", rate, GUARDED, PLAIN),
    ]
    return [*rows, done.row(f"{name}, to pgbench", "/s", rate, OPEN, PGBENCH)] if PGBENCH in sides else rows


def _plain(client: Client) -> Call:
    people = cycle(PEOPLE)

    async def call() -> Timing:
        return (await client.post(f"/tasks/{next(people)}", {"title": "Buy milk"}))[0]

    return call


def _written(script: Path) -> Path:
    script.write_text(_SCRIPT)
    return script


async def _pgbench(stage: Stage, program: str, callers: int) -> Load:
    script = _written(stage.place.work / "add.sql")
    variables = {"owner": "person-0", "title": "milk", "description": "-", "arguments": "{}"}
    given = [part for name, value in variables.items() for part in ("-D", f"{name}={value}")]
    options = ["-n", "-M", "prepared", "-c", str(callers), "-t", str(_TRANSACTIONS // callers), "-f", script, *given]
    process = await asyncio.create_subprocess_exec(program, *options, stage.place.database_url, stdout=PIPE)
    output, _ = await process.communicate()
    transactions = int(re.findall(rb"processed: (\d+)", output)[0])
    a_second = float(re.findall(rb"tps = ([\d.]+)", output)[0])
    return Load([Timing(0, callers / a_second)] * transactions, transactions / a_second)
