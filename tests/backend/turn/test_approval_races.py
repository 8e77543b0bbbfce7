"""Two who decide the same call at once, in two backends over one database: one decision, one execution."""

import asyncio
import random
import secrets
from itertools import count
from typing import Any

import psycopg
import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.turn.waiting_run import WAITING, Case
from tests.logins import as_admin
from tests.waiting import until

AT_ONCE = 6
RACES = (
    *(("approve", "approve"), ("approve", "refuse"), ("approve", "cancel"), ("approve", "say")),
    *(("say", "show"), ("say", "delete")),
)
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@pytest.mark.long
async def test_of_two_at_once_one_decides_and_the_call_is_made_once_or_not(
    backend: Backend, rows: Rows, database_url: str, often: int
) -> None:
    seed = secrets.randbelow(10**6)
    chance = random.Random(seed)
    numbers = count(1)
    plans = {
        number: (chance.choice(RACES), chance.random() < 0.5, chance.random() * 0.03) for number in range(1, often + 1)
    }

    async with backend(heartbeat_seconds=1.0) as one, backend() as two:
        with psycopg.connect(as_admin(database_url), autocommit=True) as connection:

            async def race() -> None:
                while (number := next(numbers)) <= often:
                    case, (pair, swapped, pause) = Case(number), plans[number]
                    psycopg.ClientCursor(connection).execute(WAITING.encode(), case.rows())
                    first, second = (two, one) if swapped else (one, two)
                    await asyncio.gather(case.act(first, pair[0]), later(pause, case.act(second, pair[1])))

            await asyncio.gather(*(race() for _ in range(AT_ONCE)))
        await until(lambda: not rows("SELECT 1 FROM runs WHERE status <> 'ended'"), seconds=20)

        found = {row["number"]: row for row in rows(OUTCOMES)}
        kept = {number: plan for number, plan in plans.items() if "delete" not in plan[0]}
        assert found.keys() == kept.keys(), "what was deleted is gone, and the rest is there"
        assert rows(DEADLOCKS) == [{"deadlocks": 0}], f"seed {seed}"
        for number, (pair, *_) in kept.items():
            row, told = found[number], f"seed {seed}, number {number}, {pair}: {found[number]}"
            assert row["outputs"] == 1, told
            made = row["made"]
            if row["decision"] == "refused":
                assert (made, row["tasks"]) == (0, 0), told
            elif row["outcome"] == "completed":
                assert (made, row["tasks"]) == (1, 1), told
            else:
                assert (pair[1], row["outcome"]) == ("cancel", "cancelled"), told
                assert made == row["tasks"] == int("not made" not in row["output"]), told
        assert {row["decision"] for row in found.values()} == {"approved", "refused"}, f"seed {seed}"
        for number in chance.sample([*kept], 5):
            assert (await one.say("hello", f"thr_{number}")).error is None, f"seed {seed}, number {number} is locked"


OUTCOMES = """
SELECT n AS number, approvals.decision, runs.outcome,
    (SELECT count(*) FROM messages WHERE messages.run_id = runs.id AND kind = 'tool_output'
        AND item->'content'->'output'->>'call_id' = 'call_' || n) AS outputs,
    (SELECT max(item->'content'->'output'->>'output') FROM messages
        WHERE messages.run_id = runs.id AND kind = 'tool_output') AS output,
    (SELECT count(*) FROM task_calls WHERE idempotency_key = approvals.key) AS made,
    (SELECT count(*) FROM tasks WHERE title = 'race ' || n) AS tasks
FROM generate_series(1, 1000) n
JOIN approvals ON approvals.id = 'approval_' || n JOIN runs ON runs.id = approvals.run_id
"""


async def later(pause: float, work: Any) -> None:
    await asyncio.sleep(pause)
    await work
