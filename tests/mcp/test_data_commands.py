"""`python -m mcp_server export` and `forget`."""

import json
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from common.database import advisory_locks
from tests.logins import as_admin, as_owner
from tests.mcp.calls import Tools
from tests.mcp.conftest import NewTools
from tests.processes import run
from tests.support.stored import Stored

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(session_database_url: str) -> Run:
    owner = {"MIGRATION_DATABASE_URL": as_owner(session_database_url)}
    return lambda name, user: run("mcp_server", name, "--user", user, **owner)


async def test_export(tools: Tools, new_tools: NewTools, command: Run) -> None:
    dated = {"due": "2027-03-05 15:00", "priority": "high", "labels": ["health"], "repeat": "FREQ=MONTHLY"}
    await tools.add("dentist", **dated, meta={"todo/batch": "run"})
    await tools.update(1, title="the dentist")
    await tools.undo(1)
    await tools.add("größer")
    await tools.delete(2)
    await new_tools().add("bread")
    exported = json.loads(command("export", tools.user).stdout)
    [task] = exported["tasks"]
    expected: dict[str, Any] = {"id": 1, "title": "dentist", "status": "pending", "due_on": "2027-03-05"}
    expected |= {"due_time": "15:00:00", "priority": 1, "labels": ["health"], "repeat": "FREQ=MONTHLY;BYMONTHDAY=5"}
    assert {name: task[name] for name in expected} == expected
    changes = exported["changes"]
    assert [(change["task_id"], change["operation"]) for change in changes] == [
        *[(1, "add"), (1, "update"), (1, "undo"), (2, "add"), (2, "delete")]
    ]
    assert [change["undoes"] for change in changes] == [None, None, changes[1]["id"], None, None]
    assert [change["batch"] for change in changes] == ["run", *[None] * 4]
    assert changes[4]["before"]["title"] == "größer"
    assert "bread" not in json.dumps(exported)


async def test_forget_waits_for_a_call_in_flight(
    tools: Tools, stored: Stored, session_database_url: str, command: Run
) -> None:
    """A task that is being added when a user is forgotten is forgotten with the others."""
    with psycopg.connect(as_admin(session_database_url)) as connection:
        connection.execute(f"SELECT {advisory_locks.TASKS}", {"user": tools.user})
        connection.execute("INSERT INTO people (user_id, last_task_id) VALUES (%s, 1)", [tools.user])
        connection.execute("INSERT INTO tasks (user_id, id, title) VALUES (%s, 1, 'milk')", [tools.user])
        ended: list[int] = []
        forgetting = threading.Thread(target=lambda: ended.append(command("forget", tools.user).returncode))
        forgetting.start()
        while not stored.has_waiting_statements():
            assert forgetting.is_alive()
        connection.commit()
        forgetting.join()
    assert ended == [0]
    assert stored.tasks(tools.user) == []
