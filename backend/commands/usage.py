import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from backend.settings import TokenLimitSettings
from backend.users import usage
from common import data_commands
from common.clock import utc_now
from common.commands import format_table, parse_days
from common.database import Database
from common.environment import read_or_stop, read_settings

COUNTS = ("turns", "requests", "input_tokens", "output_tokens")
COLUMNS = ("day", "user", "model", *COUNTS)
TODAY_COLUMNS = ("user", "input_tokens", "output_tokens", "limit")

_Row = dict[str, Any]
"""What a user's runs used of a model on a day, and what each sub-agent used of it."""


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="usage", description="Prints answers, requests to the model and tokens, by day, user and model."
    )
    parser.add_argument("--days", type=parse_days, default=30, help="today and the days before it (%(default)s)")
    parser.add_argument("--user", help="of this user only")
    parser.add_argument(
        "--today", action="store_true", help="instead, the tokens of today (UTC) of each user, and the limit"
    )
    parser.add_argument("--json", action="store_true", help="as a JSON array instead of a table")
    given = parser.parse_args(arguments)
    if given.today:
        limit = read_or_stop(read_settings, TokenLimitSettings).limit_tokens_per_day
        data_commands.run(partial(_print_today, user=given.user, limit=limit, as_json=given.json))
    else:
        data_commands.run(partial(_print, number_of_days=given.days, user=given.user, as_json=given.json))


async def _print(database: Database, *, number_of_days: int, user: str | None, as_json: bool) -> None:
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=number_of_days - 1)
    rows = _add_up(await usage.load(database, since=since, user_id=user))
    _write(rows, "\n".join(_table(rows)) if rows else "No turn was made in these days.", as_json=as_json)


async def _print_today(database: Database, *, user: str | None, limit: int | None, as_json: bool) -> None:
    rows = [{**row, "limit": limit} for row in await usage.load_all_today(database, user_id=user)]
    cells = [[name.replace("_", " ") for name in TODAY_COLUMNS]]
    cells += [[_render_cell(row[name]) for name in TODAY_COLUMNS] for row in rows]
    table = "\n".join(format_table(cells, left=range(1)))
    _write(rows, table if rows else "No model token was used today.", as_json=as_json)


def _write(rows: Sequence[_Row], text: str, *, as_json: bool) -> None:
    sys.stdout.write((json.dumps(rows, ensure_ascii=False, indent=1) if as_json else text) + "\n")


def _add_up(found: Sequence[_Row]) -> list[_Row]:
    """Adds up the usage of the assistant and its sub-agents by day, user and model: each run is stored with its own."""
    rows: dict[tuple[str, str, str | None], _Row] = {}
    for one in found:
        new = {name: one[name] for name in COLUMNS} | dict.fromkeys(COUNTS, 0) | {"by_agent": {}}
        row = rows.setdefault((one["day"], one["user"], one["model"]), new)
        counts = {name: one[name] for name in COUNTS}
        if one["sub_agent"] is not None:
            row["by_agent"][one["sub_agent"]] = dict(counts)
            counts["turns"] = 0  # counted with those of the assistant
        row.update({name: row[name] + count for name, count in counts.items()})
    return list(rows.values())


def _table(rows: Sequence[_Row]) -> Iterator[str]:
    totals = [f"{sum(row[name] for row in rows):,}" for name in COUNTS]
    cells = [[name.replace("_", " ") for name in COLUMNS]]
    for row in rows:
        cells.append([_render_cell(row[name]) for name in COLUMNS])
        for agent, used in row["by_agent"].items():
            cells.append(["", "", f"of it {_render_cell(agent)}", *map(_render_cell, used.values())])
    cells.append(["total", "", "", *totals])
    return format_table(cells, left=range(3))


def _render_cell(value: Any) -> str:
    match value:
        case None:
            return "-"  # a model that was not known yet, or no limit
        case int():
            return f"{value:,}"
        case _:
            return value if value.isprintable() else repr(value)
