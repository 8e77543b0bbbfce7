import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, Date, Select, cast, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import Run
from backend.conversation.runs.leases import NO_TURN
from service import data_commands
from service.commands import days
from service.database import login_transaction, utc_now

RUNS = Run.metadata.tables["runs"]
COUNTED = ("requests", "input_tokens", "output_tokens")
COLUMNS = ("day", "user", "model", "turns", *COUNTED)


def run(arguments: Sequence[str]) -> None:
    """`python -m backend usage`: print what the turns used, by day (UTC), person and model."""
    parser = argparse.ArgumentParser(prog="usage", description="Prints what turns used, by day, person and model.")
    parser.add_argument("--days", type=days, default=30, help="today and the days before it (%(default)s)")
    parser.add_argument("--user", help="of this person only")
    parser.add_argument("--json", action="store_true", help="as a JSON array instead of a table")
    given = parser.parse_args(arguments)
    data_commands.run(partial(_print, query=_query(given.days, given.user), as_json=given.json))


def _query(days: int, user: str | None) -> Select[*tuple[Any, ...]]:
    day = cast(func.timezone("UTC", RUNS.c.started_at), Date)
    model = RUNS.c.usage["model"].as_string()
    totals = (func.coalesce(func.sum(cast(RUNS.c.usage[name].as_string(), BigInteger)), 0) for name in COUNTED)
    since = utc_now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    turns = RUNS.c.usage.is_distinct_from(NO_TURN)
    found = select(day, RUNS.c.user_id, model, func.count(), *totals).where(RUNS.c.started_at >= since, turns)
    if user is not None:
        found = found.where(RUNS.c.user_id == user)
    return found.group_by(day, RUNS.c.user_id, model).order_by(day, RUNS.c.user_id, model.nulls_last())


async def _print(engine: AsyncEngine, *, query: Select[*tuple[Any, ...]], as_json: bool) -> None:
    async with login_transaction(engine) as session:
        found = (await (await session.connection()).execute(query)).all()
    rows = [(str(day), user, model, turns, *map(int, totals)) for day, user, model, turns, *totals in found]
    if as_json:
        text = json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], ensure_ascii=False, indent=1)
    else:
        text = "\n".join(_table(rows)) if rows else "No turn was made in these days."
    sys.stdout.write(text + "\n")


def _table(rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    totals = [f"{sum(row[column] for row in rows):,}" for column in range(3, len(COLUMNS))]
    headings = [name.replace("_", " ") for name in COLUMNS]
    cells = [headings, *([_cell(value) for value in row] for row in rows), ["total", "", "", *totals]]
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
