"""`./todo user adopt`: all that is stored of a user becomes another's, in one step, and nothing of how one signs in."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from backend.accounts.adoption import LEFT, MOVED
from migrations.database import METADATA
from tests.api.test_calendar import create_url, read_events
from tests.conftest import ROOT
from tests.logins import as_owner
from tests.processes import INHERITED
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.answers import HANGS, find_thread, start_run
from tests.support.approvals import APIS, wait_for_approval
from tests.support.commands import todo_at
from tests.support.fixtures import NewUser
from tests.support.script import add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stack import SIGN_IN, Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long

KEY = {"Idempotency-Key": "milk-1"}
PASSWORD = {"AUTH_MODE": "password"}


@pytest.fixture
def stack_name() -> str:
    return "approvals"


@pytest.fixture
async def old(new_user: NewUser, model: ScriptedModel) -> User:
    """A user with tasks, a file, a memory, a name, a calendar, an open session, used tokens and a call that waits."""
    user = new_user()
    await user.runs.http.post("/tasks", json={"title": "tea", "due": "2027-03-29"}, headers=KEY)
    await model.script(add_task("milk", also=["bread"]), says("Added."))
    thread = (await user.chatkit.say("add milk and bread")).thread_id
    await user.runs.put_file(thread, "notes.txt", b"mine")
    await user.runs.http.post("/memory", json={"text": "* I work nights"}, headers=KEY)
    await user.runs.http.patch("/profile", json={"name": "Old", "time_zone": "Europe/Berlin"})
    await model.script(delete_tasks(1))
    await user.chatkit.say("delete tea", thread)
    return user


async def adopt(stack: Stack, old: str, new: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return await todo_at(stack, "user", "adopt", "--yes", "--", old, new, **environment)


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    [line] = done.stderr.splitlines()
    assert "Traceback" not in line
    return line.removeprefix("error: ")


def moved_rows(stored: Stored, user: str) -> dict[str, int]:
    return {table: count for table, count in stored.row_counts(user).items() if table in MOVED}


@contextmanager
def running_adopt(stack: Stack, old: str, new: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the command and those that it starts as a group of processes, which is killed at the end."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    folders = stack.services.workspace.environment["WORKSPACE_DIR"]
    settings = {**SIGN_IN, "MIGRATION_DATABASE_URL": as_owner(stack.database_url), "WORKSPACE_DIR": folders}
    command = [sys.executable, "-P", "-m", "cli", "user", "adopt", "--yes", old, new]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**inherited, "PYTHONPATH": str(ROOT), **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_each_table_with_users_is_listed() -> None:
    """A new one is moved, or stays as it is part of how users sign in; keys that name a user can wait for the end."""
    tables = [table for metadata in METADATA for table in metadata.tables.values() if "user_id" in table.columns]
    assert sorted([*MOVED, *LEFT]) == sorted(table.name for table in tables)
    for table in tables:
        assert all(key.deferrable for key in table.foreign_key_constraints), f"a key of {table.name} is not deferrable"


async def test_everything_goes_on_with_the_new_user(
    stack: Stack, old: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    new, url = new_user(), await create_url(old)
    headers = {"Authorization": f"Bearer {old.token}"}
    async with http_client(old.url) as cookie:
        assert (await cookie.post("/session", headers=headers)).status_code == 200
        await new.runs.http.get("/profile", headers={"X-Time-Zone": "Asia/Tokyo"})  # what opening the page stores
        thread, before = stored.conversations(old.name)[0], moved_rows(stored, old.name)
        changes = stored.task_calls(old.name)
        done = await adopt(stack, old.name, new.name)
        assert done.returncode == 0, done.stderr
        assert f"{new.name} has adopted the data of {old.name}: 3 tasks, 1 conversation and 2 answers." in done.stderr

        async def is_signed_out() -> bool:
            return (await cookie.get("/tasks?view=all", headers={"Origin": old.url})).status_code == 401

        await until(is_signed_out, seconds=5)

    assert moved_rows(stored, old.name) == {}
    assert moved_rows(stored, new.name) == before
    assert stored.task_calls(new.name) == changes
    events = {name: stored.rows_of(name, "account_events")[-1] for name in (old.name, new.name)}
    assert events[new.name]["kind"] == events[old.name]["kind"] == "account_adopted"
    assert (events[new.name]["details"], events[old.name]["details"]) == ({"from": old.name}, {"to": new.name})

    profile = {"user_id": new.name, "name": "Old", "time_zone": "Europe/Berlin"}
    assert (await new.runs.http.get("/profile")).json() == profile
    assert (await new.runs.memory())["text"] == "* I work nights"
    assert (await new.runs.http.get(f"/chats/{thread}/files/notes.txt")).content == b"mine"
    assert [*await read_events(url)] == ["tea"]
    again = await new.runs.http.post("/tasks", json={"title": "tea", "due": "2027-03-29"}, headers=KEY)
    assert again.json()["tasks"][0]["id"] == 1, "a request that is sent again does nothing twice"
    await new.runs.http.post("/memory", json={"text": "* I work nights"}, headers=KEY)
    assert (await new.runs.memory())["text"] == "* I work nights"
    undone = await new.runs.http.post("/tasks/undo", json={"batch": again.json()["batch"]})
    assert undone.status_code == 200, undone.text
    assert stored.titles(new.name) == ["milk", "bread"]

    [card] = [item for item in await new.chatkit.items(thread) if item["type"] == "widget"][-1:]
    await model.script(says("There is no such task."))
    action = {"type": "approve", "payload": {}}
    params = {"thread_id": thread, "item_id": card["id"], "action": action}
    assert (await old.chatkit.post("threads.custom_action", **params)).status_code == 404
    waiting = await wait_for_approval(new, thread)
    await new.runs.approve(waiting.chat, waiting.run, waiting.approval, approved=True)
    await until(lambda: stored.run_statuses(new.name)[-1] == "completed")
    added = await new.runs.http.post("/tasks", json={"title": "eggs"})
    assert added.json()["tasks"][0]["id"] == 4, "numbers go on"
    assert (await old.runs.tasks("all"))["tasks"] == []
    assert (await old.runs.http.get(f"/chats/{thread}/files/notes.txt")).status_code == 404
    fresh = await old.runs.http.post("/tasks", json={"title": "new"}, headers=KEY)
    assert fresh.json()["tasks"][0]["id"] == 1, "the old user starts anew"


async def test_files_of_agents_and_of_calls(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    new = new_user()
    await model.script(
        start_coder("count"), calls(call("write_file", path="out.txt", content="3")), says("3"), says("3")
    )
    chat = await APIS["run_api"].say(user, "agents", "have it counted")
    waiting = await wait_for_approval(user, chat)
    await user.runs.approve(chat, waiting.run, waiting.approval, approved=True, always=True)
    await until(lambda: stored.run_statuses(user.name) == ["completed"])
    done = await adopt(stack, user.name, new.name)
    assert done.returncode == 0, done.stderr
    assert (await new.runs.http.get(f"/chats/{chat}/files/out.txt")).text == "3"
    assert stored.consents(new.name)
    folders = stack.services.workspace.environment["WORKSPACE_DIR"]
    hashes = [hashlib.sha256(one.name.encode()).hexdigest()[:32] for one in (user, new)]
    for above in (folders, f"{folders}/.answers"):
        assert hashes[0] not in os.listdir(above)
        assert os.listdir(f"{above}/{hashes[1]}") == [await find_thread(new, chat)]


async def test_rejections_change_nothing(stack: Stack, old: User, new_user: NewUser, stored: Stored) -> None:
    def state() -> Any:
        return [stored.row_counts(name) for name in (old.name, new.name, "local")], stored.run_statuses(old.name)

    new = new_user()
    before = state()
    for arguments, sentence in (
        ((old.name, old.name), f"{old.name} cannot adopt the data of {old.name}. Name two different users."),
        ((old.name, "local"), "Nobody may be called local: it is the user of AUTH_MODE=none. Choose another account."),
        ((old.name, "Local"), "Nobody may be called local: it is the user of AUTH_MODE=none. Choose another account."),
        ((f"{old.name}-not", new.name), f"There is no data of {old.name}-not. Check the name."),
        (("a'; DROP TABLE tasks; --", new.name), "There is no data of a'; DROP TABLE tasks; --. Check the name."),
        (("%(new)s %s", new.name), "There is no data of %(new)s %s. Check the name."),
        (("--", new.name), "There is no data of --. Check the name."),
    ):
        assert error_of(await adopt(stack, *arguments)) == sentence
        assert state() == before
    for account in (new.name, "nobody at all", "ünbekannt"):
        unknown = error_of(await adopt(stack, old.name, account, **PASSWORD))
        assert unknown.startswith(f"There is no account {account}. Make it first: ./todo user add ")
    for name in ("", " ", "a\nb", "\udce4", "\x1b[31m"):
        assert (await adopt(stack, old.name, name)).returncode == 2
    asked = await todo_at(stack, "user", "adopt", old.name, new.name)
    assert error_of(asked).startswith("There is no terminal to ask for confirmation. Add --yes")
    service = {"MIGRATION_DATABASE_URL": "", "DATABASE_URL": stack.database_url}
    assert "MIGRATION_DATABASE_URL" in error_of(await adopt(stack, old.name, new.name, **service))
    assert state() == before

    await new.runs.http.post("/tasks", json={"title": "own"})
    await new.chatkit.say("hello")
    await create_url(new)
    before = state()
    owning = error_of(await adopt(stack, old.name, new.name))
    assert owning.startswith(f"{new.name} already has 1 task, 1 conversation, a calendar link. Only a user without any")
    await new.runs.http.delete("/tasks/1")
    await new.runs.http.delete("/calendar")
    await new.chatkit.delete_thread(stored.conversations(new.name)[0])
    owning = error_of(await adopt(stack, old.name, new.name))
    assert owning.startswith(f"{new.name} already has changes of deleted tasks. Only")
    assert moved_rows(stored, old.name) == {table: count for table, count in before[0][0].items() if table in MOVED}


async def test_accounts_and_names_with_odd_characters(
    stack: Stack, old: User, new_user: NewUser, stored: Stored
) -> None:
    """An account is needed where there are accounts; its row and that of the old user stay, codes do not."""
    new = f"åsa.{old.name}"
    stored.add_account(new)
    for table in (
        "alert_deliveries",
        "alerts",
        "alert_channels",
        "schedules",
    ):  # those of both would be there afterwards
        stored.delete_rows(table, new)
    stored.add_account(old.name)
    rows = moved_rows(stored, old.name)
    done = await adopt(stack, old.name, new.upper(), **PASSWORD)
    assert done.returncode == 0, done.stderr
    assert moved_rows(stored, new) == rows
    assert stored.row_counts(new)["accounts"] == stored.row_counts(old.name)["accounts"] == 1
    assert "one_time_codes" not in stored.row_counts(old.name)
    odd = "oidc-x/../;'%s\"$(id) ‮ 李"
    done = await adopt(stack, new, odd)
    assert done.returncode == 0, done.stderr
    assert moved_rows(stored, odd) == rows
    other = new_user(odd)
    thread = stored.conversations(odd)[0]
    assert (await other.runs.http.get(f"/chats/{thread}/files/notes.txt")).content == b"mine"


async def test_running_answer_is_stopped(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    new = new_user()
    await model.script(HANGS)
    await start_run(user, "chat", "count", until="answer_delta")
    rejected = error_of(await adopt(stack, user.name, user.name))
    assert "two different users" in rejected
    assert stored.run_statuses(user.name) == ["running"], "a rejected command stops nothing"
    done = await adopt(stack, user.name, new.name)
    assert done.returncode == 0, done.stderr
    assert (stored.run_statuses(user.name), stored.run_statuses(new.name)) == ([], ["cancelled"])
    [message, answer] = (await new.chatkit.items(await find_thread(new, "chat")))[:2]
    assert message["type"] == "user_message"
    assert "one two" in str(answer)


async def test_run_that_starts_during_it_is_of_one_user(
    stack: Stack, old: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Users add tasks and send messages all the time: each is stored for one of the two, and nothing is half there."""
    new, added, stop = new_user(), list[str](), asyncio.Event()
    await model.script(*[says("Hello.")] * 50)

    async def add(worker: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            response = await old.runs.http.post("/tasks", json={"title": f"task {worker}-{number}"})
            assert response.status_code in (201, 503), response.text
            added.extend([f"task {worker}-{number}"] if response.status_code == 201 else [])

    async def talk() -> None:
        while not stop.is_set():
            await old.chatkit.say("hello")

    writers = [asyncio.create_task(one) for one in (add(1), add(2), talk())]
    await until(lambda: len(added) > 5)
    while (done := await adopt(stack, old.name, new.name)).returncode != 0:
        assert "is still running" in done.stderr or "Try again." in done.stderr, done.stderr
    await until(lambda: len(stored.titles(old.name)) > 5)
    stop.set()
    await asyncio.gather(*writers)
    await until(lambda: not stored.is_run_running())
    assert sorted(["tea", "milk", "bread", *added]) == sorted([*stored.titles(old.name), *stored.titles(new.name)])
    for user in (old, new):
        conversations = {*stored.conversations(user.name)}
        for table in ("runs", "entries", "tool_calls"):
            assert {row["conversation_id"] for row in stored.rows_of(user.name, table)} <= conversations
        runs = {row["id"] for row in stored.rows_of(user.name, "runs")}
        assert {row["run_id"] for row in stored.rows_of(user.name, "entries")} <= runs
        ids = [row["id"] for row in stored.rows_of(user.name, "tasks")]
        assert sorted(ids) == [*range(1, len(ids) + 1)]


async def test_kill_during_the_transaction(stack: Stack, old: User, new_user: NewUser, stored: Stored) -> None:
    new, before = new_user(), stored.row_counts(old.name)
    with stored.lock_table("tasks"), running_adopt(stack, old.name, new.name) as process:
        await until(stored.has_waiting_statements)
        kill(process)
    await until(lambda: not stored.has_waiting_statements())
    assert (stored.row_counts(old.name), stored.row_counts(new.name)) == (before, {})
    assert (await adopt(stack, old.name, new.name)).returncode == 0
    assert moved_rows(stored, old.name) == {}


async def test_kill_between_the_transaction_and_the_files(
    stack: Stack, old: User, new_user: NewUser, stored: Stored
) -> None:
    """The command completes what it has left when it is repeated, also if the old user has begun anew since then."""
    new, thread = new_user(), stored.conversations(old.name)[0]
    path = f"/chats/{thread}/files/notes.txt"
    with running_adopt(stack, old.name, new.name) as process:
        await until(lambda: bool(stored.conversations(new.name)))
        kill(process)
    assert (await new.runs.http.get(path)).status_code == 404, "the files were not moved yet"
    begun = (await old.chatkit.say("hello")).thread_id
    await old.runs.put_file(begun, "new.txt", b"of the old user")
    for _ in range(2):
        repeated = await adopt(stack, old.name, new.name)
        assert repeated.returncode == 0, repeated.stderr
        assert f"{new.name} adopted the data of {old.name} before" in repeated.stderr
        assert (await new.runs.http.get(path)).content == b"mine"
        assert (await old.runs.http.get(f"/chats/{begun}/files/new.txt")).content == b"of the old user"
        assert stored.conversations(old.name) == [begun]
