"""Models without tool calls of their own, which write them as text (LLM_TOOL_CALLS=text).

What is read as a call: tests/unit/test_text_responses.py.
"""

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.chatkit_client import text_of as text_of_item
from tests.runs_client import id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.completions import orchestrator_json
from tests.support.model_requests import requests_to
from tests.support.script import says
from tests.support.stored import Stored
from tests.support.users import User


@pytest.fixture
def stack_name() -> str:
    return "text_calls"


ONE = '{"name": "add_task", "arguments": {"title": "a"}}'


async def test_what_cannot_be_carried_out(user: User, model: ScriptedModel) -> None:
    """It is not shown; the model is asked once more and told why, and the second time the run fails."""
    wrong = orchestrator_json(action="use_tool", tool="mow")
    await model.script({"text": wrong, "chunk_chars": 1}, says(orchestrator_json(action="final", answer="Well.")))
    events = await user.runs.say("chat", "go")
    assert (text_of(events), "tool_call" in names(events)) == ("Well.", False)
    first, second = [body["messages"] for body in await requests_to(model)]
    assert second[: len(first)] == first
    said, told = second[len(first) :]
    assert said == {"role": "assistant", "content": wrong}
    assert told["role"] == "user"
    await model.script(says(wrong), says(wrong))
    events = await user.runs.say("twice", "go")
    assert (names(events)[-2:], text_of(events)) == (["error", "interaction_complete"], "")


async def test_length_limit_within_a_call(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script({"text": ONE[:-3], "finish_reason": "length"}, says(ONE), says("Over."))
    assert text_of(await user.runs.say("chat", "go")) == "Over."
    assert stored.titles(user.name) == ["a"]


async def test_native_call_wins(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Over text that looks like one."""
    native = {"name": "add_task", "arguments": {"title": "native"}}
    await model.script({"text": ONE, "tool_calls": [native], "chunk_chars": 4}, says("Over."))
    assert text_of(await user.runs.say("chat", "go")) == "Over."
    assert stored.titles(user.name) == ["native"]


async def test_final_answer_within_prose(user: User, model: ScriptedModel) -> None:
    final = orchestrator_json(action="final", answer="It is.")
    await model.script({"text": f"Here:\n\n```json\n{final}\n```\nBye.", "chunk_chars": 4})
    assert text_of(await user.runs.say("chat", "go")) == "Here:\n\nIt is.\n\nBye."


def written(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


async def test_conversation(user: User, model: ScriptedModel, stored: Stored) -> None:
    """With all five tools: instructions describe them, requests have none, and calls are sent again as text."""
    both = written("add_task", title="milk") + "\n" + written("add_task", title="bread")
    steps = [
        f"```json\n{both}\n```",
        f"<tool_call>{written('list_tasks')}</tool_call>",
        json.dumps({"action": "use_tool", "tool": "update_task", "args": {"task_id": 1, "title": "oat milk"}}),
        json.dumps({"tool": "complete_task", "args": {"task_id": 1}}),
        json.dumps({"name": "delete_task", "parameters": {"task_id": 2}}),
        json.dumps({"action": "final", "answer": "All done."}),
        "You are welcome.",
    ]
    await model.script(*({"text": step, "chunk_chars": 7} for step in steps))
    first = await user.chatkit.say("go")
    second = await user.chatkit.say("thank you", first.thread_id)
    assert (first.text, second.text) == ("All done.", "You are welcome.")
    kept = await user.chatkit.items(first.thread_id)
    shown = [text_of_item(item) for item in kept if item["type"] == "assistant_message"]
    assert shown == ["All done.", "You are welcome."]
    assert [(task.title, task.status) for task in stored.tasks(user.name)] == [("oat milk", "completed")]

    bodies = await requests_to(model)
    assert not any({"tools", "tool_choice", "parallel_tool_calls"} & {*body} for body in bodies)
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    assert all(name in bodies[0]["messages"][0]["content"] for name in ("add_task", "do_with_coder"))
    said = [message["content"] for message in bodies[-1]["messages"] if message["role"] == "assistant"]
    assert said == [
        both,
        written("list_tasks"),
        written("update_task", task_id=1, title="oat milk"),
        written("complete_task", task_id=1),
        written("delete_task", task_id=2),
        "All done.",
    ]


async def test_delegation(user: User, model: ScriptedModel) -> None:
    """Thoughts are shown as reasoning, and the object nowhere."""
    steps = [
        orchestrator_json(thought="Not mine.", action="delegate", target_agent="coder", args={"task": "write a"}),
        orchestrator_json(thought="A file.", action="use_tool", tool="write_file", args={"path": "a", "content": "x"}),
        orchestrator_json(thought="Written.", action="final", answer="I wrote a."),
        orchestrator_json(thought="Fine.", action="final", answer="There is a file."),
    ]
    await model.script(*({"text": step, "chunk_chars": 5} for step in steps))
    answer = await user.chatkit.say("write a")
    assert (answer.error, answer.text) == (None, "There is a file.")
    items = await user.chatkit.items(answer.thread_id)
    reasoning = [item["workflow"] for item in items if item.get("workflow", {}).get("type") == "reasoning"]
    assert [one["tasks"][0]["content"] for one in reasoning] == ["Not mine.", "Fine."]
    assert "target_agent" not in json.dumps(items)
    assert [file["path"] for file in (await user.runs.files(answer.thread_id))["files"]] == ["a"]


async def test_delegation_without_a_task(user: User, model: ScriptedModel) -> None:
    """The agent gets the answer, or else the user's message, without what the server notes before it."""
    for chat, answer, task in (("one", "", "write a poem"), ("two", "Write it in a.txt.", "Write it in a.txt.")):
        delegation = orchestrator_json(thought="Not mine.", action="delegate", target_agent="coder", answer=answer)
        await model.script(says(delegation), says("I wrote it."), says("There it is."))
        events = await user.runs.say(chat, "write a poem")
        assert text_of(events) == "There it is."
        [call] = [event.data for event in events if event.name == "tool_call"]
        assert json.loads(call["tool_input"]) == {"task": task}


async def test_thought_of_an_object(user: User, model: ScriptedModel) -> None:
    """Live and read later."""
    wanted = orchestrator_json(thought="What is there?", action="use_tool", tool="list_tasks")
    prose = f'I look.\n\n```json\n{wanted}\n```\nOutput of list_tasks: {{"tasks": []}}'
    await model.script({"text": prose, "chunk_chars": 3}, says("Nothing is there."))
    events = await user.runs.say("chat", "go")
    assert text_of(events) == "I look.Nothing is there."
    for told in (events, await user.runs.read("chat", id_of(events))):
        assert [event.data["content"] for event in told if event.name == "answer"] == ["I look.", "Nothing is there."]
        assert [event.data["content"] for event in told if event.name == "thinking"] == ["What is there?"]
