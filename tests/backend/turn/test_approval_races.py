"""Two who decide the same call at once, in two backends over one database: one decision, one execution."""

import asyncio
import json
import random
import secrets
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
import pytest

from backend.conversation.errors import Busy
from backend.tools.consent.card import APPROVE, REFUSE, card
from backend.turn import versions
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit
from tests.logins import as_admin
from tests.waiting import until

AT_ONCE = 6
RACES = (
    *(("approve", "approve"), ("approve", "refuse"), ("approve", "cancel"), ("approve", "say")),
    *(("say", "show"), ("say", "delete")),
)
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
WAITING = """
INSERT INTO conversations (user_id, id, status, leaf_run_id)
    VALUES ('local', %(thread)s, '{"type": "active"}', %(run)s);
INSERT INTO runs (user_id, id, conversation_id, status, usage, message_id, heartbeat_at)
    VALUES ('local', %(run)s, %(thread)s, 'waiting', %(usage)s, %(message)s, now() - interval '1 day');
INSERT INTO messages (user_id, conversation_id, id, run_id, role, kind, item) VALUES
    ('local', %(thread)s, %(message)s, %(run)s, 'user', 'user_message', %(said)s),
    ('local', %(thread)s, %(step)s, %(run)s, 'app', 'tool_calls', %(calls)s),
    ('local', %(thread)s, %(card)s, %(run)s, 'app', 'widget', %(widget)s);
INSERT INTO approvals (user_id, id, conversation_id, run_id, step_id, position, call, key, text, item_id)
    VALUES ('local', %(approval)s, %(thread)s, %(run)s, %(step)s, 0, %(call)s, %(approval)s, 'Add it', %(card)s);
"""


@dataclass(frozen=True)
class Case:
    """A run that waits for consent to add a task with a title of its own."""

    number: int

    @property
    def thread(self) -> str:
        return f"thr_{self.number}"

    def rows(self) -> dict[str, Any]:
        call = {
            "type": "function_call",
            "call_id": f"call_{self.number}",
            "name": "add_task",
            "arguments": json.dumps({"title": f"race {self.number}"}),
        }
        own = {name: f"{name}_{self.number}" for name in ("run", "message", "step", "card", "approval")}
        head = {"thread_id": self.thread, "created_at": "2026-11-23T07:00:00+00:00"}
        content = {"kind": "tool_calls", "calls": [call], "reasoning": []}
        items = {
            "said": {
                "type": "user_message",
                "content": [{"type": "input_text", "text": "add it"}],
                "attachments": [],
                "inference_options": {},
                "id": own["message"],
            },
            "calls": {"type": "hidden_context_item", "content": content, "id": own["step"]},
            "widget": {"type": "widget", "widget": card(own["approval"], "Add it"), "id": own["card"]},
            "call": call,
            "usage": {"model": "offline-rules", "requests": 1, "input_tokens": 5, "output_tokens": 5},
        }
        as_json = {name: json.dumps({**item, **(head if "id" in item else {})}) for name, item in items.items()}
        return {"thread": self.thread, **own, **as_json}

    async def act(self, chat: ChatKit, what: str) -> None:
        match what:
            case "cancel":
                turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
                await turns.stop_conversation(self.thread, user_id="local")
            case "say":
                await chat.say("hello", self.thread)
            case "show":
                turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
                with suppress(Busy):  # what was said is being answered
                    await versions.show(turns._engine, self.thread, None, user_id="local")
            case "delete":
                await chat.ask("threads.delete", thread_id=self.thread)
            case _:
                action = APPROVE if what == "approve" else REFUSE
                clicked = {"type": action, "payload": {"approval_id": f"approval_{self.number}"}}
                await chat.stream(
                    "threads.custom_action", thread_id=self.thread, item_id=f"card_{self.number}", action=clicked
                )


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

    async with backend(lease_seconds=30.0, heartbeat_seconds=1.0) as one, backend(lease_seconds=30.0) as two:
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
