"""The log of a conversation: one JSON object a line for each event, in a tree of what follows what."""

import json
import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.runs_client import id_of
from tests.scripted_model import ScriptedModel
from tests.support.approvals import APIS, decide, newest_run, pending
from tests.support.cards import click_undo, fetch_widgets
from tests.support.commands import todo_at
from tests.support.fixtures import NewUser, StartStack
from tests.support.model_requests import requests_to
from tests.support.script import add_task, call, calls, says, start_coder, start_researcher
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.chatkit import user_input
from todo_client.connection import ApiError

KEYS = [
    *("ts", "level", "event", "session_id", "turn", "actor", "model", "input", "output", "tool_name"),
    *("prompt_tokens", "completion_tokens", "thinking_tokens", "latency_ms", "error"),
    *("id", "parent_id", "run_id", "agent"),
]
Line = dict[str, Any]


async def log_of(user: User, chat: str) -> list[Line]:
    response = await user.runs.http.get(f"/chats/{chat}/log")
    assert response.status_code == 200, response.text
    assert response.text.endswith("\n")
    assert response.text.isprintable() or set(response.text) & {*map(chr, range(32))} == {"\n"}
    lines = [json.loads(text) for text in response.text.split("\n")[:-1]]
    for line in lines:
        assert list(line) == KEYS
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["ts"])
        assert (line["level"] == "INFO") == (line["error"] is None)
        assert line["session_id"] == lines[0]["session_id"]
    return lines


def check_tree(lines: list[Line]) -> dict[str, Line]:
    """Each line but the first goes on from one before it; nothing is earlier than the beginning."""
    assert lines[0]["event"] == "session_start"
    assert lines[0]["ts"] == min(line["ts"] for line in lines)
    by_id: dict[str, Line] = {}
    for line in lines:
        assert line["id"] not in by_id
        assert (line["parent_id"] in by_id) == (line["event"] != "session_start"), line
        by_id[line["id"]] = line
    results: dict[str, datetime] = {}  # of each model turn the time of its newest result
    for line in lines:
        before = by_id.get(line["parent_id"] or "", {})
        if line["event"] == "tool_result" and line["actor"] != "user":
            assert (before["event"], before["tool_name"]) == ("tool_call", line["tool_name"])
            assert before["agent"] == line["agent"]
            assert line["error"] or line["latency_ms"] >= 0
            made = timedelta(milliseconds=line["latency_ms"] or 0)
            earliest = max(time_of(before), results.get(before["parent_id"], time_of(before)))
            assert time_of(line) - earliest >= made - timedelta(milliseconds=2), "one call at a time; both are rounded"
            results[before["parent_id"]] = time_of(line)
        elif line["event"] == "tool_call":
            assert before["event"] == "assistant_message"
            json.loads(line["input"])
        elif line["event"] == "assistant_message":
            assert line["latency_ms"] >= 0
            assert line["model"] == "offline-rules"
    return by_id


def time_of(line: Line) -> datetime:
    return datetime.fromisoformat(line["ts"])


def one(lines: list[Line], **wanted: Any) -> Line:
    [found] = [line for line in lines if all(line[key] == value for key, value in wanted.items())]
    return found


def tokens(lines: list[Line]) -> tuple[int, int]:
    asked = [line for line in lines if line["event"] == "assistant_message"]
    return sum(line["prompt_tokens"] for line in asked), sum(line["completion_tokens"] for line in asked)


async def test_agents_edits_failures_and_another_conversation(user: User, model: ScriptedModel) -> None:
    await model.script(
        {**start_coder("write it"), "text": "I let them do it."},
        {**calls(call("write_file", path="a.txt", content="x")), "text": "I write."},
        says("Written."),
        start_researcher("read it"),
        calls(call("read_file", path="none.txt")),
        says("It is not there."),
        says("Both are done.", reasoning="Both."),
        calls(call("complete_task", task_id=98)),
        says("It is none."),
        calls(call("complete_task", task_id=99)),
        says("There is none."),
        {"status": 401},
        says("Now.\u2028\x1b[31m"),
        says("Hello."),
    )
    thread = (await user.chatkit.say("write it, then read it")).thread_id
    await user.chatkit.say("complete 98", thread)
    second = (await user.runs.get_chats())["chats"][0]["leaf"]
    await user.runs.edit_to_its_end(thread, second, "complete 99")
    failed = await user.chatkit.say("and now?", thread)
    await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=failed.user_item_id)
    async with user.chatkit.open("threads.create", metadata={"left": thread}, input=user_input("hello")) as events:
        other = next(event["thread"]["id"] for event in [one async for one in events] if "thread" in event)

    lines = await log_of(user, thread)
    by_id = check_tree(lines)
    assert Counter(line["event"] for line in lines) == {
        **{"session_start": 1, "user_message": 4, "assistant_message": 12, "tool_call": 6, "tool_result": 6},
        **{"error": 1, "session_clear": 1},
    }
    assert (lines[0]["session_id"], lines[0]["parent_id"]) == (thread, None)
    assert (lines[-1]["event"], lines[-1]["output"]) == ("session_clear", other)
    assert (await log_of(user, other))[0]["parent_id"] == thread
    rejected = {line["tool_name"] for line in lines if line["event"] == "tool_result" and line["level"] == "ERROR"}
    assert rejected == {"complete_task", "read_file"}

    by_agent = one(lines, agent="coder", event="assistant_message", output="I write.")
    assert by_id[by_agent["parent_id"]]["tool_name"] == "do_with_coder"
    assert one(lines, output="I let them do it.")["parent_id"] == one(lines, input="write it, then read it")["id"]
    first = one(lines, output="Both are done.")
    for text in ("complete 98", "complete 99"):
        line = one(lines, input=text)
        assert (line["parent_id"], line["turn"]) == (first["id"], 2), "an edit goes on from where the first did"
    last = one(lines, input="and now?")
    assert (last["turn"], by_id[last["parent_id"]]["output"]) == (3, "There is none.")
    retried = next(line for line in lines if (line["output"] or "").startswith("Now."))
    assert one(lines, event="error")["parent_id"] == retried["parent_id"] == last["id"]
    assert lines[-1]["parent_id"] == retried["id"]
    usage = [
        (await user.runs.get_interaction(thread, run))["usage"] for run in {line["run_id"] for line in lines} - {None}
    ]
    counted = [one for one in usage if one]
    assert tokens(lines) == tuple(sum(one[key] for one in counted) for key in ("input_tokens", "output_tokens"))


async def test_times_of_results(user: User, model: ScriptedModel, stored: Stored) -> None:
    """A result has the time at which it came, not that of its call."""
    slow, fast = (call("run_command", command=command) for command in ("sleep 0.3", "echo done"))
    await model.script(start_coder("wait"), calls(slow, fast), says("Waited."), says("It is so."))
    thread = (await user.chatkit.say("wait")).thread_id
    stored.set_call_seconds(user.name, "do_with_coder", 0)  # as if it had begun long after it was requested
    lines = await log_of(user, thread)
    check_tree(lines)
    started = time_of(next(line for line in lines if line["tool_name"] == "run_command"))
    results = [line for line in lines if line["event"] == "tool_result"]
    assert [line["tool_name"] for line in results] == ["run_command", "run_command", "do_with_coder"]
    assert all(time_of(line) - started >= timedelta(seconds=0.3) for line in results)
    assert results == sorted(results, key=time_of)


async def test_commands(stack: Stack, user: User, model: ScriptedModel) -> None:
    """Those that do something to a conversation are logged and exported; neither the model nor the page reads them."""
    await model.script(*[says("Hello.")] * 3, add_task("milk"), says("Added."), says("They talked."), says("Yes."))
    for number in range(3):
        await user.runs.say("chat", f"hello {number}")
    added = await user.runs.say("chat", "add milk")
    thread = (await user.runs.get_chats())["chats"][0]["id"]
    [card] = await fetch_widgets(user.chatkit, thread)
    shown = await user.chatkit.items(thread)
    follower = await user.runs.get_interaction("chat", id_of(added))

    assert (await user.runs.branch("chat", id_of(added)))["leaf"] == id_of(added)
    stored = await user.runs.put_file(thread, "notes.txt", b"one")
    committed = await user.runs.commit(thread, "first notes")
    with pytest.raises(ApiError):
        await user.runs.commit(thread, "nothing new")
    await click_undo(user.chatkit, card)
    compacted = await user.runs.compact("chat", key="k")
    assert await user.runs.compact("chat", key="k") == compacted

    lines = await log_of(user, thread)
    check_tree(lines)
    logged = [line for line in lines if (line["event"], line["actor"]) == ("tool_result", "user")]
    run = id_of(added)
    assert [(line["tool_name"], line["input"], json.loads(line["output"])) for line in logged] == [
        ("/version", f"/version {run}", {"leaf": run}),
        ("/put", "/put notes.txt", stored),
        ("/commit", "/commit first notes", committed),
        ("/undo", "/undo", {"tasks": [{"id": 1, "title": "milk"}]}),
        ("/compact", "/compact", compacted),
    ]
    before, after = (
        [item for item in items if item["type"] != "widget"] for items in (shown, await user.chatkit.items(thread))
    )
    assert after[: len(before)] == before
    assert [item["type"] for item in after[len(before) :]] == ["task"], "the summary alone"
    assert (await user.runs.get_interaction("chat", run))["agent_events"] == follower["agent_events"]

    assert await user.runs.branch("chat", None)
    assert await user.runs.branch("chat", run)
    await user.runs.say("chat", "still there?")
    asked = str((await requests_to(model))[-1]["messages"])
    assert not any(text in asked for text in (run, "notes", "/version", "/compact"))
    lines = await log_of(user, thread)
    assert [line["input"] for line in lines if line["tool_name"] == "/version"] == [
        *(f"/version {run}", "/version", f"/version {run}")
    ]
    exported = json.loads((await todo_at(stack, "export", "--user", user.name)).stdout)
    assert [one["text"].split()[0] for one in exported["chat"]["entries"] if one["kind"] == "command"] == [
        *("/version", "/put", "/commit", "/compact", "/version", "/version")
    ]


@pytest.mark.long
async def test_approvals_of_an_agent(start_stack: StartStack, model: ScriptedModel) -> None:
    """Twice in one agent's work, which goes on in another process than the one where it began."""
    stack = start_stack("approvals")
    first, second, third = (call("run_command", command=f"echo {number}") for number in (1, 2, 3))
    async with User(stack) as user, User(stack, user.name, backend=1) as elsewhere:
        await model.script(
            start_coder("echo"), calls(first, second), calls(third), says("Echoed."), says("All is done.")
        )
        api = APIS["run_api"]
        chat = await api.say(user, None, "echo twice")

        async def decide_next(person: User, **decision: Any) -> None:
            await decide(person, chat, pending(await newest_run(person, chat))[0], **decision)

        await decide_next(user)  # that the coder may start
        before = check_tree(await log_of(user, chat))
        await decide_next(user, approved=False, reason="not this")
        await decide_next(elsewhere)
        await decide_next(elsewhere)
        lines = await log_of(elsewhere, chat)
    by_id = check_tree(lines)
    assert list(by_id)[: len(before)] == list(before), "what was written already stays as it was"
    agent = [line for line in lines if line["agent"] == "coder"]
    assert Counter(line["event"] for line in agent) == {"assistant_message": 3, "tool_call": 3, "tool_result": 3}
    results = [line for line in agent if line["event"] == "tool_result"]
    assert [line["level"] for line in results] == ["ERROR", "INFO", "INFO"]
    assert "not this" in results[0]["error"]
    for result, number in zip(results, (1, 2, 3), strict=True):
        assert f"echo {number}" in by_id[result["parent_id"]]["input"]


async def test_conversation_of_another_user_is_not_left(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(says("Hello."))
    thread = (await user.chatkit.say("hello")).thread_id
    other = new_user()
    for left, status in ((thread, 404), ("a/b", 400), (3, 400)):
        body = {"type": "threads.create", "params": {"input": user_input("hello")}, "metadata": {"left": left}}
        assert (await other.chatkit.http.post("/chatkit", json=body)).status_code == status
    assert stored.row_counts(other.name) == {}
