"""Whatever a tool is sent: a result or a sentence, and the log and the tasks agree afterwards."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
        "surprise": JSON,
    },
) | st.dictionaries(ANY_TEXT, JSON, max_size=2)
META = st.fixed_dictionaries({}, optional={"todo/idempotency_key": JSON | st.just("k"), "todo/actor": JSON | ANY_TEXT})


@pytest.fixture
def http(server_at: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(verify=False, base_url=server_at) as client:
        yield client


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tool=st.sampled_from(TOOLS), arguments=ARGUMENTS, meta=META)
def test_any_arguments(
    http: httpx2.Client, rows: Rows, tool: str, arguments: dict[str, Any], meta: dict[str, Any]
) -> None:
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
    told: dict[int, Any] = {}
    for change in rows.changes():
        assert told.get(change["task_id"]) == change["before"]
        told[change["task_id"]] = change["after"]
    standing = {number: task["title"] for number, task in told.items() if task}
    assert {task["id"]: task["title"] for task in rows.tasks()} == standing
