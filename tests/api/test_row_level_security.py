"""PostgreSQL itself keeps users apart: with the services' login, a wrong statement reaches nobody else's row."""

from collections.abc import Iterator

import pytest

from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.approvals import APIS, wait_for_approval
from tests.support.fixtures import NewUser
from tests.support.row_level_security import RowAccessProbe
from tests.support.script import PAUSING, add_task, call, calls, says, start_coder
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

# What may come before a wrong statement.
LOGINS = {
    "as the login": (),
    "as nobody": ("SET ROLE todo_app",),
    "as another user": ("SET ROLE todo_app", "SET todo.user_id = 'bob'"),
    "after RESET ROLE": ("SET ROLE todo_app", "SET todo.user_id = 'bob'", "RESET ROLE"),
    "with all users": ("SET ROLE todo_app", "SET todo.user_id = 'bob'", "SET todo.all_people = 'on'"),
    "without row security": ("SET ROLE todo_app", "SET todo.user_id = 'bob'", "SET row_security = off"),
}


@pytest.fixture
def stack_name() -> str:
    return "approvals"


@pytest.fixture
def database(stack: Stack) -> Iterator[RowAccessProbe]:
    database = RowAccessProbe(stack.database_url)
    yield database
    database.close()


@pytest.fixture
async def user(new_user: NewUser, model: ScriptedModel, stored: Stored) -> User:
    """One with a row in every table."""
    user = new_user()
    await user.runs.add_to_memory("* I work nights")
    async with http_client(user.url) as http:
        await http.post("/session", headers={"Authorization": f"Bearer {user.token}"})
        await http.delete("/session", headers={"Origin": user.url})
    await model.script(
        {**add_task("milk"), "when": "add milk"},
        {**says("Added."), "when": "add milk"},
        {**start_coder("echo"), "when": "work"},
        {**calls(call("run_command", command="echo 1")), "when": "echo"},
    )
    headers = {"Idempotency-Key": "key"}
    body = {"user_message": "add milk"}
    response = await user.runs.http.post("/chats/first/interactions", json=body, headers=headers)
    assert response.status_code == 200
    chat = await APIS["run_api"].say(user, "agents", "work")
    waiting = await wait_for_approval(user, chat)
    await user.runs.approve(chat, waiting.run, waiting.approval, approved=True, always=True)
    async with user.runs.events(chat, waiting.run) as events:
        async for event in events:
            if event.name == "approval_required" and event.data["approval_id"] != waiting.approval:
                break
    await model.script({**PAUSING, "when": "count"}, {**says("Hello."), "when": "hello"})
    async with user.runs.interact("second", "count") as events:
        run = (await anext(events)).data["interaction_id"]
        await user.runs.send("second", run, "hello", mode="follow_up")
        await model.release()
        async for _ in events:
            pass
    await until(lambda: "running" not in stored.run_statuses(user.name))
    stored.add_account(user.name)
    return user


async def test_foreign_rows(user: User, new_user: NewUser, database: RowAccessProbe) -> None:
    (await new_user().runs.http.post("/tasks", json={"title": "milk"})).raise_for_status()
    before = database.rows_of(user.name)
    assert [table for table, rows in before.items() if not rows] == [], "the user has a row in every table"
    for name, statements in LOGINS.items():
        with database.as_service(*statements) as service:
            assert database.find_reachable_rows(service, user.name) == [], name
            assert database.find_writable_tables(service, user.name) == [], name
    assert database.rows_of(user.name) == before
    assert database.find_tables_visible_to_owner() == []
    with database.as_service("SET ROLE todo_app", f"SET todo.user_id = '{user.name}'") as service:
        assert database.count_visible_rows(service) == {table: len(rows) for table, rows in before.items()}


@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE todo_owner",
        "SET SESSION AUTHORIZATION todo_owner",
        "SET SESSION AUTHORIZATION DEFAULT; SELECT FROM tasks",
        "ALTER TABLE tasks DISABLE ROW LEVEL SECURITY",
        "DROP POLICY owner_only ON tasks",
        "CREATE POLICY mine ON tasks USING (true)",
        "TRUNCATE tasks",
        "CREATE TABLE mine (id int)",
        "CREATE SCHEMA mine",
        "ALTER ROLE todo_service BYPASSRLS",
        "INSERT INTO approved_tools (server, tool, hash) VALUES ('web', 'post', sha256('b'))",
        "DELETE FROM approved_tools",
    ],
)
def test_login_cannot_get_more_rights(database: RowAccessProbe, statement: str) -> None:
    for role in ("NONE", "todo_app"):
        with database.as_service(f"SET ROLE {role}") as service:
            assert database.is_rejected(service, statement)


def test_schema(database: RowAccessProbe) -> None:
    assert {name: found for name, found in database.find_violations().items() if found} == {}
