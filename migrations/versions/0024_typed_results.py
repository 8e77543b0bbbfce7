"""Give the dates in the stored results of the task tools their types.

Until now `due` was a text such as "Fri 2026-11-27 15:00", and `now` such a text on the clock of `time_zone`.
"""

import json
import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from alembic import op
from sqlalchemy import text

revision = "0024"
down_revision = "0023"

_BATCH = 1_000  # rows in memory at once
_TEXT = re.compile(r"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?")
_TASK_TOOLS = ["add_task", "list_tasks", "complete_task", "update_task", "delete_task"]
# In the order of the primary key, so that each batch continues after the one before.
_READ = text("""
SELECT user_id, run_id, id, details FROM tool_calls
WHERE (user_id, run_id, id) > (:user_id, :run_id, :id) AND tool = ANY (:tools)
  AND details::text ~ '"(due|now)": "[A-Z][a-z]{2} [0-9]'
ORDER BY user_id, run_id, id LIMIT :batch
""")
_WRITE = text("""
UPDATE tool_calls SET details = CAST(:details AS jsonb) WHERE (user_id, run_id, id) = (:user_id, :run_id, :id)
""")


def upgrade() -> None:
    connection = op.get_bind()
    last = {"user_id": "", "run_id": "", "id": ""}
    while rows := connection.execute(_READ, {**last, "tools": _TASK_TOOLS, "batch": _BATCH}).mappings().all():
        changed = [{**row, "details": json.dumps(_convert(row["details"]))} for row in rows]
        connection.execute(_WRITE, changed)
        last = {name: rows[-1][name] for name in last}


def _convert(value: Any) -> Any:
    if isinstance(value, list):
        return [_convert(each) for each in value]
    if not isinstance(value, dict):
        return value
    converted = {name: _convert(each) for name, each in value.items()}
    if found := _find_date(value.get("due")):
        converted["due"] = {"date": found[1], "time": found[2]}
    if found := _find_date(value.get("now")):
        converted["now"] = _convert_now(f"{found[1]} {found[2] or '00:00'}", value.get("time_zone"))
    return converted


def _find_date(value: Any) -> re.Match[str] | None:
    return _TEXT.fullmatch(value) if isinstance(value, str) else None


def _convert_now(clock: str, time_zone: Any) -> str:
    try:
        zone = ZoneInfo(time_zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):  # this machine no longer knows it
        zone = ZoneInfo("UTC")
    return datetime.fromisoformat(clock).replace(tzinfo=zone).isoformat()
