"""`POST /chat/stream`, read by the AI SDK's chat and by assistant-ui's decoder, in Node."""

import asyncio
from typing import Any

import pytest

from common.changes import CORRECTION
from tests.scripted_model import ScriptedModel
from tests.support import ai_sdk
from tests.support.ai_sdk import VERSIONS
from tests.support.answers import HANGS
from tests.support.script import PAUSING, SLOW_TEXT, add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stored import Stored
from tests.support.users import User
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


async def speak(user: User, *acts: dict[str, Any], version: int = 7, **body: Any) -> list[dict[str, Any]]:
    return await ai_sdk.run_ai_sdk(user.url, *acts, version=version, token=user.token, **body)


async def add_three(user: User, model: ScriptedModel) -> None:
    await model.script(add_task("one", also=["two", "three"]), says("Added."))
    await user.runs.say("adding", "add three")


@pytest.mark.parametrize("version", VERSIONS)
async def test_text_reasoning_and_tools(version: int, user: User, model: ScriptedModel) -> None:
    odd = [r'{"query": "\ud800"}', '{"__proto__": {"x": 1}}']
    odd_calls = [{"name": "list_tasks", "arguments": arguments} for arguments in odd]
    both = calls(call("add_task", title="milk"), call("complete_task", task_id=99), *odd_calls)
    await model.script(
        {**both, "reasoning": "A task.", "text": "I add it."},
        says("Added — it is there."),
        {"text": "Half", "finish_reason": "length"},
        says("Again."),
    )
    told, cut, again = await speak(user, {"say": "add milk"}, {"say": "and?"}, {"regenerate": True}, version=version)
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
        ("data-changes",),
    ]
    assert parts(told)[-1]["data"] == {
        "text": "Added 1",
        "changes": [{"task_id": 1, "title": "milk", "change": "added"}],
    }
    assert beside(told) == [
        ("reasoning", "A task."),
        ("text", "I add it."),
        ("add_task", False),
        ("complete_task", True),
        ("list_tasks", False),
        ("list_tasks", True),
        ("text", "Added — it is there."),
    ]
    assert told["assistant"]["status"]["type"] == "complete"
    added = parts(told)[3]
    assert (added["input"], added["output"]["title"]) == ({"title": "milk"}, "milk")
    assert "99" in parts(told)[4]["errorText"]
    assert isinstance(parts(told)[6]["input"], str)
    message = told["messages"][-1]
    assert message["metadata"] == {"interactionId": message["id"], "threadId": told["sent"]["id"]}
    assert brief(cut)[-2:] == [("text", "Half"), ("data-notice",)]
    reasons = [one["assistant"]["status"]["reason"] for one in (told, cut)]
    assert reasons == ["stop", "length"]
    assert again["sent"]["trigger"] == "regenerate-message"
    assert brief(again)[-1] == ("text", "Again.")
    assert [one["role"] for one in again["messages"]] == ["user", "assistant"] * 2
    chat = await user.runs.get_chat(told["sent"]["id"])
    assert [one["user_message"] for one in chat["interactions"]] == ["add milk", "and?"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_withdrawn_text(version: int, user: User, model: ScriptedModel) -> None:
    """It is the part before the data that withdraws it, and corrected where a front end does not know these."""
    await model.script(says("I've added milk."), says("Not yet."))
    [told] = await speak(user, {"say": "add milk"}, version=version)
    claim = f"I've added milk.\n\n{CORRECTION}"
    assert brief(told)[1:] == [("text", claim), ("data-withdrawn",), ("step-start",), ("text", "Not yet.")]
    assert beside(told) == [("text", claim), ("text", "Not yet.")]


@pytest.mark.parametrize("version", VERSIONS)
async def test_progress_is_no_part_of_the_message(version: int, user: User, model: ScriptedModel) -> None:
    await model.script({"status": 503, "body": {"error": {"message": "overloaded"}}}, says("Hello."))
    [told] = await speak(user, {"say": "hello"}, version=version)
    assert (told["status"], brief(told)) == ("ready", [("step-start",), ("text", "Hello.")])
    assert beside(told) == [("text", "Hello.")]


@pytest.mark.parametrize("stack_name", ["approvals"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_approvals(version: int, user: User, model: ScriptedModel, stored: Stored) -> None:
    """Decided in the chat, the answer goes on in the same message."""
    await add_three(user, model)
    first, second, third = (delete_tasks(number)["tool_calls"][0] for number in (1, 2, 3))
    await model.script(calls(first, second), calls(third), says("Fine."))
    acts = ({"say": "delete all"}, {"decide": True}, {"decide": False, "reason": "I need it."})
    asked, more, done = await speak(user, *acts, version=version)
    waits, denied = "approval-requested", "output-denied"
    assert calls_in(asked) == [("step-start",), *[("delete_task", waits)] * 2]
    check_texts(asked, version)
    deleted = [("step-start",), *[("delete_task", "output-available")] * 2, ("step-start",)]
    assert calls_in(more) == [*deleted, ("delete_task", waits)]
    assert beside(done)[-1] == ("text", "Fine.")
    assert calls_in(done) == [*deleted, ("delete_task", denied), ("step-start",), ("text", "Fine.")]
    assert [one["role"] for one in done["messages"]] == ["user", "assistant"]
    assert stored.titles(user.name) == ["three"]
    [interaction] = (await user.runs.get_chat(done["sent"]["id"]))["interactions"]
    assert interaction["approvals"][-1]["reason"] == "I need it."


def calls_in(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [one for one in brief(result) if not one[0].startswith("data-")]


def check_texts(result: dict[str, Any], version: int) -> None:
    """The calls that wait say what they would do, where the version has a place for it."""
    if version == 6:  # which has no text for it
        return
    assert result["assistant"]["status"] == {"type": "requires-action", "reason": "tool-calls"}
    texts = [one["approval"]["prompt"] for one in result["assistant"]["content"]]
    assert texts == [one["approval"]["requestReason"] for one in parts(result) if "approval" in one]
    assert len(texts) == 2
    assert all(title in text for title, text in zip(("one", "two"), texts, strict=True))


async def test_agents_are_data(user: User, model: ScriptedModel) -> None:
    write = calls(call("write_file", path="a.md", content="x"))
    await model.script(start_coder("write it"), write, says("Written."), says("It is so."))
    [told] = await speak(user, {"say": "do it"})
    assert brief(told) == [
        ("step-start",),
        ("do_with_coder", "output-available"),
        ("data-agent-step",),
        ("data-agent-step",),
        ("data-agent",),
        ("step-start",),
        ("text", "It is so."),
    ]
    first, second, end = (one["data"] for one in parts(told) if one["type"].startswith("data-"))
    assert (first["agent"], first["number"], first["state"]) == ("coder", 0, "none")
    assert "write it" in first["title"]
    assert "a.md" in second["title"]
    assert second["state"] == "done"
    assert end["agent"] == "coder"
    assert {one["name"] for one in told["assistant"]["data"]} == {"agent-step", "agent"}
    assert beside(told) == [("do_with_coder", False), ("text", "It is so.")]


@pytest.mark.parametrize("stack_name", ["approvals"])
async def test_approvals_of_an_agent(user: User, model: ScriptedModel) -> None:
    run = calls(call("run_command", command="echo a > a"), call("run_command", command="echo b > b"))
    await model.script(start_coder("write it"), run, says("Written."), says("It is so."))
    _, asked, done = await speak(user, {"say": "do it"}, {"decide": True}, {"decide": True})
    agents = ("data-agent-step", "data-agent")
    assert [one for one in brief(asked) if one[0] not in agents][-2:] == [("run_command", "approval-requested")] * 2
    assert asked["assistant"]["status"] == {"type": "requires-action", "reason": "tool-calls"}
    assert (done["status"], done.get("error")) == ("ready", None)
    shown = [one for one in brief(done) if one[0] not in agents]
    assert shown.count(("run_command", "output-available")) == 2
    assert ("do_with_coder", "output-available") in shown
    assert beside(done)[-1] == ("text", "It is so.")
    assert done["assistant"]["status"]["type"] == "complete"


@pytest.mark.parametrize("version", VERSIONS)
async def test_resumed_answer_is_read_from_its_beginning(version: int, user: User, model: ScriptedModel) -> None:
    await model.script(PAUSING)
    going_on = {"resume": True, "release": f"{model.base_url}/release"}
    acts = ({"resume": True}, {"leave": "count"}, going_on, {"resume": True})
    before, left, whole, after = await speak(user, *acts, version=version)
    for nothing in (before, after):
        assert (nothing["http"], nothing["status"], nothing.get("error")) == (204, "ready", None)
    assert parts(left)[-1]["text"] != SLOW_TEXT
    assert (whole["http"], whole["status"]) == (200, "ready")
    assert brief(whole) == [("step-start",), ("text", SLOW_TEXT)]
    assert [one["role"] for one in whole["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize("stack_name", ["approvals"])
async def test_resumed_approval_is_asked_again(user: User, model: ScriptedModel, stored: Stored) -> None:
    await add_three(user, model)
    await model.script(delete_tasks(1), says("Fine."))
    messages = {"threadId": "one", "messages": [{"role": "user", "content": "delete it"}]}
    first = await user.runs.http.post("/chat/stream", json=messages)
    again = await user.runs.http.get("/chat/stream/one/stream")
    assert again.text == first.text
    assert '"tool-approval-request"' in again.text
    [interaction] = (await user.runs.get_chat("one"))["interactions"]
    decision = {"id": interaction["approvals"][0]["approval_id"], "approved": True}
    body = {"threadId": "one", "messages": [], "approvals": [decision]}
    assert (await user.runs.http.post("/chat", json=body)).json()["answer"] == "Fine."
    assert (await user.runs.http.get("/chat/stream/one/stream")).status_code == 204
    assert stored.titles(user.name) == ["two", "three"]


async def test_failed_busy_and_cancelled(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script({"text": "Half of it is here", "cut_after": 4})
    [failed] = await speak(user, {"say": "hello"}, threadId="failing")
    assert failed["status"] == "error"
    assert failed["error"]
    assert failed["assistant"]["status"]["type"] == "incomplete"
    await model.script(HANGS)
    left, refused = await speak(user, {"leave": "count"}, {"say": "hello"}, threadId="left")
    assert left["status"] == "ready"
    assert (refused["http"], refused["status"]) == (409, "error")
    run = await stored.run_with_status(user.name, "running")
    await user.runs.cancel("left", run.id)
    await until(lambda: "running" not in stored.run_statuses(user.name))
    await model.script(HANGS)
    reading = asyncio.create_task(speak(user, {"say": "count"}, threadId="cancelled"))
    run = await stored.run_with_status(user.name, "running")
    await user.runs.cancel("cancelled", run.id)
    [cancelled] = await reading
    assert (cancelled["status"], cancelled.get("error")) == ("ready", None)
    assert cancelled["assistant"]["status"] == {"type": "incomplete", "reason": "other"}
