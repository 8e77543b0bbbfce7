"""How many tasks were completed on each of the last days."""

from datetime import date, datetime, time, timedelta
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP

from mcp_server.tasks import zones
from mcp_server.tasks.changes import OWNER, Caller
from mcp_server.tasks.task import COMPLETED, TASKS, completion
from service.database import Session

MOST_DAYS = 366
_MIDNIGHTS: Any = bindparam("midnights", type_=ARRAY(TIMESTAMP(timezone=True)))
_DAY = func.width_bucket(TASKS.c.completed_at, _MIDNIGHTS)


def _by_day() -> Any:
    # Between two moments, of which PostgreSQL expects few whatever they are: it then goes by the index.
    first, end = (bindparam(name, type_=TIMESTAMP(timezone=True)) for name in ("first", "end"))
    done = (TASKS.c.user_id == OWNER, COMPLETED, completion(TASKS) >= first, completion(TASKS) < end)
    return select(_DAY.label("day"), func.count().label("done")).where(*done).group_by("day")


_BY_DAY = _by_day()


async def by_day(session: Session, caller: Caller, days: int) -> list[tuple[date, int]]:
    """The days up to today by the person's clock, the oldest first, each with how many are completed since then."""
    now = await zones.now(session, caller)
    today = now.local.date()
    dates = [today - timedelta(days=back) for back in reversed(range(days))]
    *midnights, end = [datetime.combine(day, time(), now.zone) for day in (*dates, today + timedelta(days=1))]
    params = {"owner": caller.user_id, "midnights": midnights, "first": midnights[0], "end": end}
    found = {row.day: row.done for row in await session.execute(_BY_DAY, params)}
    return [(day, found.get(nth, 0)) for nth, day in enumerate(dates, start=1)]
