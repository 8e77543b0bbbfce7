"""How many tasks were completed on each of the last days."""

from datetime import date, datetime, time, timedelta

from common.database import Transaction
from mcp_server.tasks import zones
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.lists.statements import COMPLETION

MOST_DAYS = 366
# Between two moments, of which PostgreSQL expects few whatever they are: it then goes by the index.
_BY_DAY = f"""
SELECT width_bucket(completed_at, %(midnights)s::timestamptz[]) AS day, count(*) AS done FROM tasks
WHERE user_id = %(user)s AND status = 'completed' AND {COMPLETION} >= %(first)s AND {COMPLETION} < %(end)s
GROUP BY day"""


async def by_day(tx: Transaction, caller: Caller, days: int) -> list[tuple[date, int]]:
    """The days up to today by the user's clock, the oldest first, each with how many are completed since then."""
    now = await zones.now(tx, caller)
    today = now.local.date()
    dates = [today - timedelta(days=back) for back in reversed(range(days))]
    *midnights, end = [datetime.combine(day, time(), now.zone) for day in (*dates, today + timedelta(days=1))]
    values = {"user": caller.user_id, "midnights": midnights, "first": midnights[0], "end": end}
    done = {row["day"]: row["done"] for row in await (await tx.execute(_BY_DAY, **values)).fetchall()}
    return [(day, done.get(nth, 0)) for nth, day in enumerate(dates, start=1)]
