"""The log of a conversation that was really had, read at its door and as it is exported."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.commands import log as log_command
from backend.doors.runs.shapes import LogLine
from client.connection import Refused
from tests.backend.agents_at_work import coder
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls, cards, decide, deleting
from tests.backend.other_servers import approve, at
from tests.chatkit_client import ChatKit, user_input
from tests.foreign_server import create_server
from tests.logins import as_owner
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, served_workspace

KEYS = [
    *("ts", "level", "event", "session_id", "turn", "actor", "model", "input", "output", "tool_name"),
    *("prompt_tokens", "completion_tokens", "thinking_tokens", "latency_ms", "error"),
    *("id", "parent_id", "run_id", "agent"),
]
Line = dict[str, Any]


async def told(chat: ChatKit, thread: str) -> list[Line]:
    async with Runs(chat.base_url) as runs:
        return [checked(line) async for line in runs.get_log(thread)]


def checked(line: Line) -> Line:
    assert list(line) == KEYS
    LogLine.model_validate(line, strict=True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["ts"])
    assert (line["level"] == "info") == (line["error"] is None)
    return line


def check_tree(lines: list[Line]) -> dict[str, Line]:
    """Each goes on from one before it, but the first."""
    by_id: dict[str, Line] = {}
    for line in lines:
        assert line["id"] not in by_id
        assert (line["parent_id"] in by_id) == (line["event"] != "session_start"), line
        by_id[line["id"]] = line
    return by_id


def exported(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[Line]:
    capfd.readouterr()
    log_command.run(["--user=local", *arguments])
    return [checked(json.loads(line)) for line in capfd.readouterr().out.split("\n")[:-1]]


@dataclass
class Had:
    """A conversation, and the one that was begun when it was cleared."""

    chat: ChatKit
    thread: str
    next: str


@pytest.fixture
async def had(backend: Backend, model: ScriptedModel, owner: AsyncEngine, rows: Rows) -> AsyncIterator[Had]:
    """With agents, another MCP server, a call that is refused, an edit, a failure, and an answer in its place."""
    with served_workspace() as (service, _):
        async with serve(create_server().http_app()) as url:
            web = at(url)
            await approve(owner, web)
            settings = {
                "workspace_url": f"{service.url}/mcp",
                "workspace_token_secret": SecretStr(WORKSPACE_TOKEN_SECRET),
                "approvals": ("bulk",),
            }
            async with backend(**settings, servers=[web]) as chat:
                yield await have(chat, model, rows)


async def have(chat: ChatKit, model: ScriptedModel, rows: Rows) -> Had:
    await model.script(
        calls(coder("write it"), text="I let them do it."),
        calls(call("write_file", path="a.txt", content="x"), text="I write."),
        {"text": "Written."},
        calls(call("do_with_researcher", task="say hi")),
        calls(call("mcp_web__say", text="hi"), call("read_file", path="none.txt")),
        {"text": "It said hi."},
        {"reasoning": "Both.", "text": "Both are done."},
    )
    thread = (await chat.say("write it, then say hi")).thread_id
    await model.script(
        calls(call("add_task", title="one", also=[f"task {n}" for n in range(11)])),
        calls(deleting(*range(1, 13))),
    )
    [card] = cards(await chat.say("add and delete", thread))
    await model.script({"text": "They stay."})
    await decide(chat, card, approve=False, reason="I need them")
    [_, second] = [row["id"] for row in rows("SELECT id FROM runs ORDER BY started_at")]
    await model.script(calls(call("complete_task", task_id=99)), {"text": "There is none."})
    async with Runs(chat.base_url) as runs:
        await runs.edit_to_its_end(thread, second, "complete 99")
    await model.script({"status": 401, "body": {"error": {"message": "no"}}})
    failed = await chat.say("and now?", thread)
    assert failed.error is not None
    await model.script({"text": "Now."})
    await chat.stream("threads.retry_after_item", thread_id=thread, item_id=failed.user_item_id)
    async with chat.open("threads.create", metadata={"left": thread}, input=user_input("hello")) as events:
        began = [event async for event in events]
    return Had(chat, thread, next(event["thread"]["id"] for event in began if "thread" in event))


async def test_every_line_of_a_real_conversation(
    had: Had, rows: Rows, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    lines = await told(had.chat, had.thread)
    by_id = check_tree(lines)
    assert Counter(line["event"] for line in lines) == {
        "session_start": 1,
        "user_message": 4,
        "assistant_message": 13,
        **{"tool_call": 7, "tool_result": 7, "mcp_call": 1, "mcp_result": 1},
        "error": 1,
        "session_clear": 1,
    }
    assert {line["session_id"] for line in lines} == {had.thread}
    assert (lines[0]["event"], lines[0]["parent_id"]) == ("session_start", None)
    assert (lines[-1]["event"], lines[-1]["output"]) == ("session_clear", had.next)
    next_lines = await told(had.chat, had.next)
    assert next_lines[0]["parent_id"] == had.thread

    asked = [line for line in lines if line["event"] == "assistant_message"]
    runs = rows("SELECT id, usage FROM runs WHERE conversation_id = %s", had.thread)
    for name, key in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
        assert sum(line[name] for line in asked) == sum((run["usage"] or {}).get(key, 0) for run in runs)
    assert {line["model"] for line in asked} == {"offline-rules"}
    assert all(line["latency_ms"] >= 0 for line in asked)

    for line in lines:
        before = by_id.get(line["parent_id"] or "", {})
        if line["event"] in ("tool_result", "mcp_result"):
            assert before["event"] == line["event"].replace("result", "call")
            assert before["tool_name"] == line["tool_name"]
            assert before["agent"] == line["agent"]
        elif line["event"] in ("tool_call", "mcp_call"):
            assert before["event"] == "assistant_message"
            json.loads(line["input"])

    def one(**wanted: Any) -> Line:
        [found] = [line for line in lines if all(line[key] == value for key, value in wanted.items())]
        return found

    assert one(event="mcp_result")["output"].startswith("The result of mcp.web.say.")
    assert one(event="mcp_call")["tool_name"] == "mcp.web.say"
    wrong = {line["tool_name"] for line in lines if line["event"] == "tool_result" and line["level"] == "error"}
    assert wrong == {"delete_task", "complete_task", "read_file"}
    assert "I need them" in one(event="tool_result", tool_name="delete_task")["error"]
    inner = one(agent="coder", event="assistant_message", output="I write.")
    assert by_id[inner["parent_id"]]["tool_name"] == "do_with_coder"
    assert one(output="I let them do it.")["parent_id"] == one(input="write it, then say hi")["id"]

    first_answer = one(output="Both are done.")
    for said in ("add and delete", "complete 99"):
        assert (one(input=said)["parent_id"], one(input=said)["turn"]) == (first_answer["id"], 2)
    last = one(input="and now?")
    assert (last["turn"], by_id[last["parent_id"]]["output"]) == (3, "There is none.")
    assert one(event="error")["parent_id"] == one(output="Now.")["parent_id"] == last["id"]
    assert lines[-1]["parent_id"] == one(output="Now.")["id"]

    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))
    assert await asyncio.to_thread(exported, capfd, f"--thread={had.thread}") == lines
    assert await asyncio.to_thread(exported, capfd) == [*lines, *next_lines]
    with pytest.raises(SystemExit) as nothing:
        await asyncio.to_thread(log_command.run, ["--user=local", "--thread=thr_none"])
    assert nothing.value.code == 3


async def test_what_agents_asked_is_read_back_with_what_was_decided(
    backend: Backend,
    with_agents: dict[str, object],
    model: ScriptedModel,
    rows: Rows,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    database_url: str,
) -> None:
    """Twice in one agent's work, which goes on where it was not begun."""
    first, second, third = (call("run_command", command=f"echo {number}") for number in (1, 2, 3))
    asking = with_agents | {"approvals": ("run_command",)}
    await model.script(calls(coder("echo"), text="I let them."), calls(first, second, text="Two."))
    async with backend(**asking) as chat:
        thread = (answer := await chat.say("echo twice")).thread_id
        refused, approved = cards(answer)
        waits = check_tree(await told(chat, thread))
        assert [line["event"] for line in waits.values()][-3:] == ["assistant_message", "tool_call", "tool_call"]
        await decide(chat, refused, approve=False, reason="not this")
    async with backend(**asking) as chat:
        await model.script(calls(third))
        [again] = cards(await decide(chat, approved, approve=True))
        await model.script({"text": "Echoed."}, {"text": "All is done."})
        assert (await decide(chat, again, approve=True)).text == "All is done."
        lines = await told(chat, thread)
    by_id = check_tree(lines)
    assert list(by_id)[: len(waits)] == list(waits), "what was told already is told as it was"
    agent = [line for line in lines if line["agent"] == "coder"]
    assert [(line["event"], line["level"]) for line in agent] == [
        *(("assistant_message", "info"), ("tool_call", "info"), ("tool_call", "info")),
        *(("tool_result", "error"), ("tool_result", "info")),
        *(("assistant_message", "info"), ("tool_call", "info"), ("tool_result", "info")),
        ("assistant_message", "info"),
    ]
    assert "not this" in agent[3]["error"]
    assert (agent[4]["error"], agent[7]["error"]) == (None, None)
    for result, number in ((agent[3], 1), (agent[4], 2), (agent[7], 3)):
        assert f"echo {number}" in by_id[result["parent_id"]]["input"]
    [run] = rows("SELECT usage FROM runs WHERE conversation_id = %s", thread)
    for name, key in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
        assert sum(line[name] for line in lines if line["event"] == "assistant_message") == run["usage"][key]
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))
    assert await asyncio.to_thread(exported, capfd, f"--thread={thread}") == lines


async def test_what_is_not_theirs_is_not_there(chat: ChatKit, rows: Rows) -> None:
    rows("INSERT INTO conversations (id, user_id, status) VALUES ('thr_bob', 'bob', '{\"type\": \"active\"}')")
    with pytest.raises(Refused) as refused:
        await told(chat, "thr_bob")
    assert refused.value.status == 404
    for left, status in (("thr_bob", 404), ("a/b", 400), (3, 400)):
        body = {"type": "threads.create", "params": {"input": user_input("hello")}, "metadata": {"left": left}}
        assert (await chat.http.post("/chatkit", json=body)).status_code == status
    assert rows("SELECT 1 FROM runs") == []


async def test_the_rows_of_an_older_version_are_told_without_figures(chat: ChatKit, rows: Rows) -> None:
    answer = await chat.say("add milk")
    rows("UPDATE messages SET usage = NULL")
    rows("UPDATE runs SET outcome = 'interrupted', parent_run_id = NULL")
    lines = await told(chat, answer.thread_id)
    check_tree(lines)
    assert [line["event"] for line in lines] == [
        *("session_start", "user_message", "assistant_message", "tool_call", "tool_result", "assistant_message"),
        "error",
    ]
    assert {line["model"] for line in lines if line["event"] == "assistant_message"} == {"offline-rules"}
    assert {line["latency_ms"] for line in lines} == {line["prompt_tokens"] for line in lines} == {None}
