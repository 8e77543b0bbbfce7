"""Whole turns with models whose tool calls do not come as streamed calls."""

import json
from itertools import pairwise
from typing import Any

from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import text_of
from tests.scripted_model import ScriptedModel


def text(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


async def test_a_model_without_calls_of_its_own_uses_all_five_tools(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    both = text("add_task", title="milk") + "\n" + text("add_task", title="bread")
    steps = [
        f"```json\n{both}\n```",
        f"<tool_call>{text('list_tasks')}</tool_call>",
        json.dumps({"action": "use_tool", "tool": "update_task", "args": {"task_id": 1, "title": "oat milk"}}),
        json.dumps({"tool": "complete_task", "args": {"task_id": 1}}),
        json.dumps({"name": "delete_task", "parameters": {"task_id": 2}}),
        json.dumps({"action": "final", "answer": "All done."}),
        "You are welcome.",
    ]
    await model.script(*({"text": step, "chunk_chars": 7} for step in steps))
    async with backend(llm_tool_calls="text") as chat:
        first = await chat.say("go")
        second = await chat.say("thank you", first.thread_id)
        kept = await chat.items(first.thread_id)
    assert first.error is second.error is None
    assert (first.text, second.text) == ("All done.", "You are welcome.")
    assert [text_of(item) for item in kept if item["type"] == "assistant_message"] == [first.text, second.text]
    assert rows("SELECT title, status FROM tasks") == [{"title": "oat milk", "status": "completed"}]

    bodies = [request["body"] for request in await model.finished_requests()]
    assert not any("tools" in body for body in bodies)
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    said = [message for message in bodies[-1]["messages"] if message["role"] == "assistant"]
    assert [message["content"] for message in said] == [
        both,
        text("list_tasks"),
        text("update_task", task_id=1, title="oat milk"),
        text("complete_task", task_id=1),
        text("delete_task", task_id=2),
        "All done.",
    ]
    outputs = [message["content"] for message in bodies[-1]["messages"] if "Output of " in message["content"][:10]]
    assert [output.count("Output of ") for output in outputs] == [2, 1, 1, 1, 1]
