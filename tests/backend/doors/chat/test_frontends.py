"""`POST /chat/stream`, read by the AI SDK's chat and by assistant-ui's decoder, in Node."""

import asyncio
from typing import Any

import pytest

from tests.backend.agents_at_work import coder
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls, deleting, open_tasks, with_tasks
from tests.backend.doors.chat.frontends import speak
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long


def parts(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the newest message."""
    return result["messages"][-1]["parts"]


def brief(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What the AI SDK has of the newest message."""
    found: list[tuple[Any, ...]] = []
    for one in parts(result):
        match one:
            case {"type": "text" | "reasoning" as kind, "text": text}:
                assert one["state"] == "done"
                found.append((kind, text))
            case {"type": "dynamic-tool", "toolName": name, "state": state}:
                found.append((name, state))
            case {"type": kind}:
                found.append((kind,))
    return found


def beside(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What assistant-ui has of the same response."""
    assert "error" not in result["assistant"], result["assistant"]
    return [
        (one["toolName"], one["isError"]) if one["type"] == "tool-call" else (one["type"], one["text"])
        for one in result["assistant"]["content"]
        if one["type"] != "data"
    ]


async def test_text_reasoning_tools_and_another_answer(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    odd = [r'{"query": "\ud800"}', '{"__proto__": {"x": 1}}']
    odd_calls = [{"name": "list_tasks", "arguments": arguments} for arguments in odd]
    both = calls(call("add_task", title="milk"), call("complete_task", task_id=99), *odd_calls)
    await model.script(
        {"reasoning": "A task.", **both, "text": "I add it."},
        {"text": "Added — it is there."},
        {"text": "Half", "finish_reason": "length"},
        {"text": "Again."},
    )
    told, cut, again = await speak(chat.base_url, {"say": "add milk"}, {"say": "and?"}, {"regenerate": True})
    assert (told["http"], told["status"], told.get("error")) == (200, "ready", None)
    assert brief(told) == [
        ("step-start",),
        ("reasoning", "A task."),
        ("text", "I add it."),
        ("add_task", "output-available"),
        ("complete_task", "output-error"),
        ("list_tasks", "output-available"),
        ("list_tasks", "output-error"),
        ("step-start",),
        ("text", "Added — it is there."),
    ]
    assert beside(told) == [
        ("reasoning", "A task."),
        ("text", "I add it."),
        ("add_task", False),
        ("complete_task", True),
        ("list_tasks", False),
        ("list_tasks", True),
        ("text", "Added — it is there."),
    ]
    assert told["assistant"]["status"] == {"type": "complete", "reason": "stop"}
    added = parts(told)[3]
    assert (added["input"], added["output"]["title"]) == ({"title": "milk"}, "milk")
    assert "There is no task 99" in parts(told)[4]["errorText"]
    assert isinstance(parts(told)[6]["input"], str)
    message = told["messages"][-1]
    assert message["metadata"] == {"interactionId": message["id"], "threadId": told["sent"]["id"]}
    assert brief(cut)[-2:] == [("text", "Half"), ("data-notice",)]
    assert cut["assistant"]["status"] == {"type": "incomplete", "reason": "length"}
    assert again["sent"]["trigger"] == "regenerate-message"
    assert brief(again)[-1] == ("text", "Again.")
    assert [one["role"] for one in again["messages"]] == ["user", "assistant"] * 2
    said = rows("SELECT 1 FROM messages WHERE kind = 'user_message'")
    assert len(said) == 2, "what is answered again is said once"


async def test_what_is_asked_is_decided_in_the_chat_and_goes_on_in_the_same_message(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as chat:
        await with_tasks(chat, model, 3)
        script = [calls(deleting(1), deleting(2)), calls(deleting(3)), {"text": "Done."}]
        await model.script(*script)
        yes, no = {"decide": True}, {"decide": False, "reason": "I need it."}
        asked, more, done = await speak(chat.base_url, {"say": "delete all"}, yes, no)
    assert brief(asked) == [("step-start",), *[("delete_task", "approval-requested")] * 2]
    assert parts(asked)[1]["approval"]["requestReason"] == "Delete task 1\n“task number 1” (1)"
    assert asked["assistant"]["status"] == {"type": "requires-action", "reason": "tool-calls"}
    assert [one["approval"]["prompt"] for one in asked["assistant"]["content"]] == [
        "Delete task 1\n“task number 1” (1)",
        "Delete task 2\n“task number 2” (2)",
    ]
    first = [("step-start",), *[("delete_task", "output-available")] * 2, ("step-start",)]
    assert brief(more) == [*first, ("delete_task", "approval-requested")]
    assert beside(done) == [("text", "Done.")]
    assert brief(done) == [*first, ("delete_task", "output-denied"), ("step-start",), ("text", "Done.")]
    assert [one["role"] for one in done["messages"]] == ["user", "assistant"]
    assert done["assistant"]["status"]["type"] == "complete"
    assert open_tasks(rows) == 1
    assert rows("SELECT reason FROM approvals WHERE decision = 'refused'") == [{"reason": "I need it."}]
    assert len(rows("SELECT 1 FROM runs WHERE conversation_id = (SELECT id FROM conversations WHERE name <> '')")) == 1


async def test_what_agents_do_is_data(backend: Backend, with_agents: dict[str, object], model: ScriptedModel) -> None:
    async with backend(**with_agents) as chat:
        write = calls(call("write_file", path="a.md", content="x"))
        await model.script(calls(coder("write it")), write, {"text": "Written."}, {"text": "It is done."})
        [told] = await speak(chat.base_url, {"say": "do it"})
    assert brief(told) == [
        ("step-start",),
        ("do_with_coder", "output-available"),
        ("data-agent-step",),
        ("data-agent-step",),
        ("data-agent",),
        ("step-start",),
        ("text", "It is done."),
    ]
    first, second, end = (one["data"] for one in parts(told) if one["type"].startswith("data-"))
    assert first == {"agent": "coder", "number": 0, "title": "Coder: write it", "content": "", "state": "none"}
    assert (second["title"], second["state"]) == ("Wrote a.md", "done")
    assert end == {"agent": "coder", "ended": "Coder: 1 step, 1 file written"}
    assert {one["name"] for one in told["assistant"]["data"]} == {"agent-step", "agent"}
    assert beside(told) == [("do_with_coder", False), ("text", "It is done.")]


async def test_what_an_agent_asks_is_decided_in_the_chat_too(
    backend: Backend, with_agents: dict[str, object], model: ScriptedModel
) -> None:
    async with backend(**with_agents | {"approvals": ("write_file",)}) as chat:
        both = calls(call("write_file", path="a", content="x"), call("write_file", path="b", content="x"))
        await model.script(calls(coder("write it")), both, {"text": "Written."}, {"text": "It is done."})
        asked, done = await speak(chat.base_url, {"say": "do it"}, {"decide": True})
    agents = ("data-agent-step", "data-agent")
    assert [one for one in brief(asked) if one[0] not in agents] == [
        ("step-start",),
        ("do_with_coder", "input-available"),
        ("step-start",),
        *[("write_file", "approval-requested")] * 2,
    ]
    assert asked["assistant"]["status"] == {"type": "requires-action", "reason": "tool-calls"}
    assert (done["status"], done.get("error")) == ("ready", None)
    assert [one for one in brief(done) if one[0] not in agents] == [
        ("step-start",),
        ("do_with_coder", "output-available"),
        ("step-start",),
        *[("write_file", "output-available")] * 2,
        ("step-start",),
        ("text", "It is done."),
    ]
    shown = [one["data"] for one in parts(done) if one["type"] == "data-agent-step"]
    assert [(one["number"], one["title"]) for one in shown] == [(0, "Coder: write it"), (1, "Wrote a"), (2, "Wrote b")]
    assert {one["agent"] for one in shown} == {"coder"}
    assert beside(done)[-1] == ("text", "It is done.")
    assert done["assistant"]["status"]["type"] == "complete"


async def test_errors_cancels_and_leaving(chat: ChatKit, model: ScriptedModel, rows: Rows, runs: Runs) -> None:
    await model.script({"text": "Half of it is here", "cut_after": 4})
    [failed] = await speak(chat.base_url, {"say": "hello"}, threadId="failing")
    assert failed["status"] == "error"
    assert "(Reference " in failed["error"]
    assert failed["assistant"]["status"]["type"] == "incomplete"
    await model.script(SLOW | {"token_delay": 1}, {"text": "Later."})
    left, refused = await speak(chat.base_url, {"leave": "count"}, {"say": "hello"}, threadId="left")
    assert left["status"] == "ready"
    assert (refused["http"], refused["status"]) == (409, "error")
    assert "still answering" in refused["error"]
    [run] = rows("SELECT id, status FROM runs ORDER BY started_at DESC LIMIT 1")
    assert run["status"] == "running", "who leaves stops nothing"
    await runs.cancel("left", run["id"])
    await until(lambda: rows("SELECT 1 FROM runs WHERE id = %s AND outcome = 'cancelled'", run["id"]))
    await model.reset()
    await model.script(SLOW | {"token_delay": 1})
    reading = asyncio.create_task(speak(chat.base_url, {"say": "count"}, threadId="cancelled"))
    await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'running'"))
    [run] = rows("SELECT id FROM runs WHERE status = 'running'")
    await runs.cancel("cancelled", run["id"])
    [cancelled] = await reading
    assert (cancelled["status"], cancelled.get("error")) == ("ready", None)
    assert cancelled["assistant"]["status"] == {"type": "incomplete", "reason": "other"}
