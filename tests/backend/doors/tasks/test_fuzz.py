"""Rubbish at the list's door: no 5xx, no secret out, and nothing of another's is touched."""

import random
import secrets
from typing import Any

import pytest

from tests.backend.conftest import Rows
from tests.backend.doors.tasks.person import Person

pytestmark = pytest.mark.long

MANY = 400
FIELDS = [
    *("title", "description", "due", "priority", "labels", "add_labels", "remove_labels", "repeat", "status", "also"),
    *("batch", "user_id", "undo", "id"),
]
ODD: list[Any] = [
    *(None, True, 0, -1, 2**63, 1e308, [], {}, [[]], {"a": {}}, "", " ", "\x00", "x" * 5_000, "\u202e", "__proto__"),
    *("milk", "tomorrow", "none", "*", ["*"], ["x"] * 11, [1, 2], [0], "[1", "next", "+1d", "completed", "pending"),
    *("FREQ=DAILY", "high", "'; DROP TABLE tasks; --", "9999-12-31", "2026-02-30T25:61Z"),
]
PATHS = ["/tasks", "/tasks/1", "/tasks/2", "/tasks/0", "/tasks/x", "/tasks/undo", "/tasks/changes", "/tasks/9e9"]
QUERIES = [
    "",
    "?also=1,2",
    "?also=x",
    "?view=all",
    "?view=done&limit=3",
    "?after=-1",
    "?view=all&cursor=e30",
    "?after=1",
]


async def test_random_requests(alice: Person, bob: Person, rows: Rows) -> None:
    seed = secrets.randbelow(10**6)
    chance = random.Random(seed)
    await bob.add("bob's", due="tomorrow", labels=["home"])
    before = rows("SELECT * FROM tasks WHERE user_id = 'bob'")
    statuses: set[int] = set()
    for number in range(MANY):
        method, path = chance.choice(["GET", "POST", "PATCH", "DELETE"]), chance.choice(PATHS) + chance.choice(QUERIES)
        body = {name: chance.choice(ODD) for name in chance.sample(FIELDS, chance.randint(0, 3))}
        key = chance.choice([None, "a", "b", secrets.token_hex(4)])
        answer = await alice.ask(method, path, None if method in ("GET", "DELETE") else body, key=key)
        place = f"seed {seed}, request {number}: {method} {path} {body}"[:600]
        assert answer.status_code < 500, f"{answer.status_code} {answer.text} at {place}"
        for secret in ("postgresql", "Traceback", "psycopg", "bob's"):
            assert secret not in answer.text, place
        statuses.add(answer.status_code)
    assert statuses >= {200, 400, 404}
    assert rows("SELECT * FROM tasks WHERE user_id = 'bob'") == before
    assert await bob.titles("upcoming") == ["bob's"]
