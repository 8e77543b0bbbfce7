"""What runs have used, of all users, by day (UTC), user, model and sub-agent."""

from dataclasses import dataclass
from datetime import datetime

from common.database import Database

# A run whose process was gone has no usage: it counts as a turn, without a model.
_LOAD = """
SELECT (created_at AT TIME ZONE 'UTC')::date::text AS day, user_id, usage->>'model' AS model,
    CASE WHEN parent_call_id IS NOT NULL THEN agent END AS sub_agent, count(DISTINCT top_run_id) AS turns,
    coalesce(sum((usage->>'requests')::bigint), 0)::bigint AS requests,
    coalesce(sum((usage->>'input_tokens')::bigint), 0)::bigint AS input_tokens,
    coalesce(sum((usage->>'output_tokens')::bigint), 0)::bigint AS output_tokens
FROM runs
WHERE created_at >= %(since)s AND (%(user)s::text IS NULL OR user_id = %(user)s)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3 NULLS LAST, 4 NULLS FIRST"""


@dataclass(frozen=True, slots=True)
class UserUsage:
    """What runs of the assistant, or of a sub-agent, used; `turns` counts the messages that they worked for."""

    day: str
    user_id: str
    model: str | None
    sub_agent: str | None
    turns: int
    requests: int
    input_tokens: int
    output_tokens: int


async def load(database: Database, *, since: datetime, user_id: str | None) -> list[UserUsage]:
    async with database.owner_transaction() as tx:
        found = await tx.execute(_LOAD, UserUsage, since=since, user=user_id)
    return await found.fetchall()
