import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Date, Select, cast, column, func, select, true
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import Run
from backend.conversation.runs.leases import NO_TURN
from service import data_commands
from service.commands import days
from service.database import login_transaction, utc_now

RUNS = Run.metadata.tables["runs"]
COUNTED = ("requests", "input_tokens", "output_tokens")
KEYS = ("day", "user", "model")
COLUMNS = (*KEYS, "turns", *COUNTED)
Rows = Sequence[tuple[Any, ...]]


def run(arguments: Sequence[str]) -> None:
    """`python -m backend usage`: print what the turns used, by day (UTC), person and model, and agents' part of it."""
    parser = argparse.ArgumentParser(prog="usage", description="Prints what turns used, by day, person and model.")
    parser.add_argument("--days", type=days, default=30, help="today and the days before it (%(default)s)")
    parser.add_argument("--user", help="of this person only")
    parser.add_argument("--json", action="store_true", help="as a JSON array instead of a table")
    given = parser.parse_args(arguments)
    queries = [_query(given.days, given.user, RUNS.c.usage), _by_agent(given.days, given.user)]
    data_commands.run(partial(_print, queries=queries, as_json=given.json))


def _by_agent(days: int, user: str | None) -> Select[*tuple[Any, ...]]:
    """The same of what agents used, with the name of each as the last key."""
    used = func.jsonb_each(RUNS.c.usage["by_agent"]).table_valued(column("key"), column("value", JSONB)).lateral()
    return _query(days, user, used.c.value, used.c.key).select_from(RUNS.join(used, true()))


def _query(
    days: int, user: str | None, usage: ColumnElement[Any], *keys: ColumnElement[Any]
) -> Select[*tuple[Any, ...]]:
    day = cast(func.timezone("UTC", RUNS.c.started_at), Date)
    model = RUNS.c.usage["model"].as_string()
    totals = (func.coalesce(func.sum(cast(usage[name].as_string(), BigInteger)), 0) for name in COUNTED)
    since = utc_now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    turns = RUNS.c.usage.is_distinct_from(NO_TURN)
    found = select(day, RUNS.c.user_id, model, *keys, func.count(), *totals).where(RUNS.c.started_at >= since, turns)
    if user is not None:
        found = found.where(RUNS.c.user_id == user)
    by = (day, RUNS.c.user_id, model)
    return found.group_by(*by, *keys).order_by(*by[:2], model.nulls_last(), *keys)


async def _print(engine: AsyncEngine, *, queries: Sequence[Select[*tuple[Any, ...]]], as_json: bool) -> None:
    async with login_transaction(engine) as session:
        connection = await session.connection()
        rows, of_agents = [_plain((await connection.execute(query)).all()) for query in queries]
    if as_json:
        named = [dict(zip(COLUMNS, row, strict=True)) | {"by_agent": _agents_of(row, of_agents)} for row in rows]
        text = json.dumps(named, ensure_ascii=False, indent=1)
    else:
        text = "\n".join(_table(rows, of_agents)) if rows else "No turn was made in these days."
    sys.stdout.write(text + "\n")


def _plain(found: Sequence[Any]) -> Rows:
    first = -len(COUNTED)
    return [(str(row[0]), *row[1:first], *map(int, row[first:])) for row in found]


def _agents_of(row: tuple[Any, ...], of_agents: Rows) -> dict[str, dict[str, int]]:
    """What each agent used of what a row counts, by its name."""
    number = len(KEYS)
    names = COLUMNS[number:]
    its = [one for one in of_agents if one[:number] == row[:number]]
    return {one[number]: dict(zip(names, one[number + 1 :], strict=True)) for one in its}


def _table(rows: Rows, of_agents: Rows) -> Iterator[str]:
    totals = [f"{sum(row[column] for row in rows):,}" for column in range(3, len(COLUMNS))]
    headings = [name.replace("_", " ") for name in COLUMNS]
    cells = [headings]
    for row in rows:
        cells.append([_cell(value) for value in row])
        for agent, used in _agents_of(row, of_agents).items():
            cells.append(["", "", f"of it {_cell(agent)}", *map(_cell, used.values())])
    cells.append(["total", "", "", *totals])
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    for line in cells:
        names = (text.ljust(width) for text, width in zip(line[:3], widths[:3], strict=True))
        numbers = (text.rjust(width) for text, width in zip(line[3:], widths[3:], strict=True))
        yield "  ".join([*names, *numbers])


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"  # the turn ended before it was known
        case int():
            return f"{value:,}"
        case _:
            return value if value.isprintable() else repr(value)
