"""What runs have used, of all users, by day (UTC), user, model and sub-agent."""

from datetime import datetime
from typing import Any

from common.database import Database

# A run whose process was gone has no usage: it is counted without a model.
_LOAD = """
SELECT (created_at AT TIME ZONE 'UTC')::date::text AS day, user_id AS "user", usage->>'model' AS model,
    CASE WHEN parent_call_id IS NOT NULL THEN agent END AS sub_agent, count(DISTINCT top_run_id) AS turns,
    coalesce(sum((usage->>'requests')::bigint), 0)::bigint AS requests,
    coalesce(sum((usage->>'input_tokens')::bigint), 0)::bigint AS input_tokens,
    coalesce(sum((usage->>'output_tokens')::bigint), 0)::bigint AS output_tokens
FROM runs
WHERE created_at >= %(since)s AND (%(user)s::text IS NULL OR user_id = %(user)s)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3 NULLS LAST, 4 NULLS FIRST"""


async def load(database: Database, *, since: datetime, user_id: str | None) -> list[dict[str, Any]]:
    """Loads a row for the assistant and each sub-agent; `turns` counts the messages that they worked for."""
    async with database.owner_transaction() as tx:
        found = await tx.execute(_LOAD, since=since, user=user_id)
    return await found.fetchall()
