"""Whatever a tool is sent: a result or a sentence, and the log and the tasks agree afterwards."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.tasks.task import Stored
from tests.examples import same_examples
from tests.mcp_server.conftest import Rows
from tests.mcp_server.wire import ENVELOPE

TOOLS = ("add_task", "list_tasks", "complete_task", "update_task", "delete_task")
FORBIDDEN = ("Traceback", "pydantic", "psycopg", "sqlalchemy", "postgresql://", "validation error", "internal error")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=210)
WORDS = st.sampled_from(
    [
        "2026-11-27",
        "2999-12-31",
        "today..",
        "overdue",
        "next",
        "+1d",
        "15:00",
        "none",
        "FREQ=DAILY",
        "FREQ=YEARLY;COUNT=2",
    ]
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "user_id": JSON | st.sampled_from(["alice", ""]),
        "title": JSON | ANY_TEXT,
        "description": JSON | ANY_TEXT,
        "task_id": JSON | st.integers(1, 5) | st.integers(1, 5).map(str),
        "status": JSON | st.sampled_from(["pending", "completed", "all", ""]),
        "cursor": JSON | ANY_TEXT,
        "limit": JSON | st.integers(-1, 102),
        "also": JSON | st.lists(st.integers(1, 6) | ANY_TEXT, max_size=3),
        "due": JSON | ANY_TEXT | WORDS,
        "done": JSON | WORDS,
        "priority": JSON | st.sampled_from(["high", "none"]),
        "labels": JSON | st.lists(ANY_TEXT, max_size=3),
        "add_labels": JSON | st.lists(ANY_TEXT, max_size=3),
        "label": JSON | ANY_TEXT,
        "query": JSON | ANY_TEXT,
        "repeat": JSON | WORDS,
        "order": JSON | st.sampled_from(["due", "priority"]),
        "undo": JSON,
        "surprise": JSON,
    },
) | st.dictionaries(ANY_TEXT, JSON, max_size=2)
META = st.fixed_dictionaries(
    {},
    optional={
        "todo/idempotency_key": JSON | st.just("k"),
        "todo/actor": JSON | ANY_TEXT,
        "todo/time_zone": JSON | ANY_TEXT | st.just("Asia/Tokyo"),
    },
)
# Of each tool, calls that get far: any one of these arguments beside what the tool must have.
LIKELY = {
    "add_task": {"title": st.just("milk"), "due": WORDS, "repeat": WORDS, "labels": st.just(["a"])},
    "list_tasks": {"due": WORDS, "done": WORDS, "label": ANY_TEXT, "order": st.just("due"), "cursor": ANY_TEXT}
    | {"query": ANY_TEXT, "status": st.sampled_from(["deleted", "pending"])},
    "complete_task": {"task_id": st.integers(1, 5), "also": st.lists(st.integers(1, 6), max_size=3)},
    "update_task": {"task_id": st.integers(1, 5), "due": WORDS, "repeat": WORDS, "undo": st.booleans()},
    "delete_task": {"task_id": st.integers(1, 5)},
}
CALLS = st.tuples(st.sampled_from(TOOLS), ARGUMENTS) | st.sampled_from(TOOLS).flatmap(
    lambda tool: st.tuples(st.just(tool), st.fixed_dictionaries({}, optional=LIKELY[tool]))
)


@pytest.fixture
def http(server_at: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(verify=False, base_url=server_at) as client:
        yield client


@same_examples(300)
@given(call=CALLS, meta=META)
def test_any_arguments(http: httpx2.Client, rows: Rows, call: tuple[str, dict[str, Any]], meta: dict[str, Any]) -> None:
    tool, arguments = call
    before = rows.tasks(), rows.changes()
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE | meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    protocol = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}
    media = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    response = http.post("/mcp", content=body.encode(), headers=protocol | media)
    assert response.status_code in (200, 400), response.text
    answer = response.json()
    if "error" in answer or answer["result"]["isError"]:
        assert not any(word in response.text for word in FORBIDDEN), response.text
        assert (rows.tasks(), rows.changes()) == before
    else:
        assert_log_tells_the_tasks(rows)


def assert_log_tells_the_tasks(rows: Rows) -> None:
    """PostgreSQL and the service spell the same moment differently in it."""
    told: dict[tuple[str, int], Stored | None] = {}
    for change in rows.changes():
        before, after = (side and Stored.model_validate(side) for side in (change["before"], change["after"]))
        one = (change["user_id"], change["task_id"])
        assert told.get(one) == before
        told[one] = after
    standing = {one: task for one, task in told.items() if task}
    assert {(row["user_id"], row["id"]): Stored.model_validate(row) for row in rows.tasks()} == standing
