"""What an answer has changed is read from the MCP server, and stored with its outcome."""

import asyncio
import signal
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.answers import start_run
from tests.support.approvals import newest_run
from tests.support.backends import user_at
from tests.support.fixtures import NewUser
from tests.support.http_relay import HttpRelay
from tests.support.script import (
    add_task,
    add_tasks,
    call,
    calls,
    delete_tasks,
    endless_answer,
    pausing_answer,
    says,
)
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

CHAT = "groceries"
UNREAD: dict[str, Any] = {"changes": [], "unread": True}

pytestmark = pytest.mark.long


def changes_of(stored: Stored, user: User) -> list[Any]:
    """The facts that are stored for the user's runs, oldest first; of one that is not over they are incomplete."""
    rows = [row for row in stored.rows_of(user.name, "entries") if row["kind"] == "changes"]
    assert all(row["complete"] for row in rows)
    return [row["details"] for row in sorted(rows, key=lambda row: row["seq"])]


def kinds(facts: dict[str, Any]) -> list[tuple[str, str]]:
    assert facts.keys() == {"changes"}
    return [(one["title"], one["change"]) for one in facts["changes"]]


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the client gives up
    writer.close()


async def test_an_answer_has_its_changes(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Of several calls, of which one fails; a list that was read and a failed call are none."""
    add, complete = call("add_task", title="milk", also=["tea"]), call("complete_task", task_id=1)
    move, failing = call("update_task", task_id=2, due="2030-01-01"), call("complete_task", task_id=99)
    steps = [calls(add, complete, failing), calls(move), calls(call("list_tasks"))]
    await model.script(*(step for one in steps for step in (one, says("Done."))))
    for text in ("add them", "move it", "what is there?"):
        await user.runs.say(CHAT, text)
    first, second = changes_of(stored, user)
    assert kinds(first) == [("milk", "added"), ("tea", "added")], "added and completed by the same run"
    assert kinds(second) == [("tea", "moved")]


async def test_an_answer_that_names_more_than_was_changed(user: User, model: ScriptedModel, stored: Stored) -> None:
    failing = call("add_task", title="bread", due="2026-02-30")
    await model.script(
        *(add_task("milk"), says("I've added 3 tasks.")),
        *(calls(call("add_task", title="tea"), failing), says("I've added tea and bread.")),
        *(calls(call("add_task", title="eggs"), failing), says("I've added eggs. Bread could not be added.")),
        *(
            calls(call("complete_task", task_id=1)),
            calls(call("complete_task", task_id=1)),
            says("I've completed milk."),
        ),
    )
    for text in ("one", "two", "three", "four"):
        await user.runs.say(CHAT, text)
    assert [facts.get("named") for facts in changes_of(stored, user)] == [3, 2, None, None]


async def test_changes_of_a_stopped_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_task("milk"), endless_answer("I have"))
    run = await start_run(user, CHAT, "add milk", until="answer_delta")
    await user.runs.cancel(CHAT, run)
    await stored.run_with_status(user.name, "cancelled")
    [facts] = changes_of(stored, user)
    assert kinds(facts) == [("milk", "added")]


@pytest.mark.parametrize("is_silent", [False, True])
async def test_tool_server_that_does_not_answer_at_the_end(
    is_silent: bool, stack: Stack, model: ScriptedModel, stored: Stored
) -> None:
    relay = HttpRelay(stack.services.mcp.url)
    await relay.restore()
    async with user_at(stack.services, MCP_INTERNAL_URL=f"{relay.url}/mcp") as user:
        await model.script(add_task("milk"), pausing_answer("Added ", "milk."))
        await start_run(user, CHAT, "add milk", until="answer_delta")
        relay.cut()
        port = urlsplit(relay.url).port
        silent = await asyncio.start_server(say_nothing, "127.0.0.1", port) if is_silent else None
        await model.release()
        await stored.run_with_status(user.name, "completed")
        assert changes_of(stored, user) == [UNREAD]
        if silent is not None:
            silent.close()


@pytest.mark.parametrize("ended_by", ["stop", "message"])
async def test_changes_of_an_answer_that_is_ended_while_it_waits(
    ended_by: str, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(add_tasks(11), delete_tasks(*range(1, 12)), says("Hello."))
    async with user.runs.interact(CHAT, "clear it") as events:
        async for event in events:
            if event.name == "approval_required":
                break
    run = await newest_run(user, CHAT)
    assert run["status"] == "WAITING_APPROVAL"
    if ended_by == "stop":
        await user.runs.cancel(CHAT, run["id"])
    else:
        await user.runs.say(CHAT, "hello")
    [facts] = changes_of(stored, user)
    assert [change for _, change in kinds(facts)] == ["added"] * 11


async def test_changes_of_an_answer_whose_process_is_killed(
    stack: Stack, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Also of a call whose result it has not seen; a run without a call has none."""
    await model.script(
        {"when": "add milk", **add_task("milk")},
        {"when": "hello", **endless_answer("Hel")},
        endless_answer("Added"),
    )
    user, other, unseen = new_user(), new_user(), new_user()
    await start_run(user, CHAT, "add milk", until="answer_delta")
    await start_run(other, CHAT, "hello", until="answer_delta")
    await model.script({"when": "add milk", **add_task("milk")})
    with stored.lock_table("tasks"):
        await start_run(unseen, CHAT, "add milk")
        await until(lambda: stored.has_waiting_statements(count=1))
        stack.backends[0].send(signal.SIGSTOP)
    await until(lambda: stored.titles(unseen.name) == ["milk"])
    stack.backends[0].end(signal.SIGKILL)
    for each in (user, other, unseen):
        await stored.run_with_status(each.name, "interrupted")
    for each in (user, unseen):
        [facts] = changes_of(stored, each)
        assert kinds(facts) == [("milk", "added")]
    assert changes_of(stored, other) == []
