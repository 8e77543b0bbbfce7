"""What runs have used: of all users by day (UTC), user, model and sub-agent, and the model tokens of a user's day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from common.database import Database, Transaction

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

TODAY = "(now() AT TIME ZONE 'UTC')::date"
TOKENS_TODAY = f"""
coalesce((SELECT input_tokens + output_tokens FROM token_usage WHERE user_id = %(user)s AND day = {TODAY}), 0)"""
# Adds `%(input_tokens)s` and `%(output_tokens)s` for each row of a FROM clause.
ADD_TOKENS = f"""
INSERT INTO token_usage AS t (user_id, day, input_tokens, output_tokens)
SELECT %(user)s, {TODAY}, %(input_tokens)s, %(output_tokens)s {{from_clause}}
ON CONFLICT (user_id, day) DO UPDATE
SET input_tokens = t.input_tokens + excluded.input_tokens, output_tokens = t.output_tokens + excluded.output_tokens"""
_ADD_TOKENS = ADD_TOKENS.format(from_clause="")
_LOAD_ALL_TODAY = f"""
SELECT user_id AS "user", input_tokens, output_tokens FROM token_usage
WHERE day = {TODAY} AND (%(user)s::text IS NULL OR user_id = %(user)s) ORDER BY input_tokens + output_tokens DESC, 1"""
_LOAD_TODAY = f"""
SELECT d.day, coalesce(t.input_tokens, 0) AS input_tokens, coalesce(t.output_tokens, 0) AS output_tokens
FROM (SELECT {TODAY} AS day) d LEFT JOIN token_usage t ON t.user_id = %(user)s AND t.day = d.day"""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The model tokens of a user on a day (UTC)."""

    day: date
    input_tokens: int
    output_tokens: int


async def send_tokens(tx: Transaction, usage: Mapping[str, int]) -> None:
    """Adds `input_tokens` and `output_tokens` to those of the user's day."""
    await tx.execute(_ADD_TOKENS, input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])


async def load_today(database: Database, user_id: str) -> TokenUsage:
    [today] = await database.fetch_all(user_id, _LOAD_TODAY, TokenUsage)
    return today


async def load(database: Database, *, since: datetime, user_id: str | None) -> list[dict[str, Any]]:
    """Loads a row for the assistant and each sub-agent; `turns` counts the messages that they worked for."""
    async with database.owner_transaction() as tx:
        found = await tx.execute(_LOAD, since=since, user=user_id)
    return await found.fetchall()


async def load_all_today(database: Database, *, user_id: str | None) -> list[dict[str, Any]]:
    """Loads the model tokens that each user, or one, has used today, the most first."""
    async with database.owner_transaction() as tx:
        found = await tx.execute(_LOAD_ALL_TODAY, user=user_id)
    return await found.fetchall()
