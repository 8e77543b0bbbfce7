"""Models without tool calls of their own, which write them as text (LLM_TOOL_CALLS=text)."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from tests.chatkit_client import text_of as text_of_item
from tests.runs_client import id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.completions import orchestrator_json
from tests.support.model_requests import requests_to
from tests.support.script import says
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.runs import RunEvent

pytestmark = pytest.mark.long


@pytest.fixture
def stack_name() -> str:
    return "text_calls"


class Call(NamedTuple):
    name: str
    arguments: str


ONE = '{"name": "add_task", "arguments": {"title": "a"}}'
TWO = '{"tool": "list_tasks", "args": {}}'
ADD, LIST = Call("add_task", '{"title": "a"}'), Call("list_tasks", "{}")

CALLS: dict[str, tuple[str, list[Call]]] = {
    "name, parameters": ('{"name": "add_task", "parameters": {"title": "a"}}', [ADD]),
    "arguments as text": ('{"name": "add_task", "arguments": "{\\"title\\": \\"a\\"}"}', [ADD]),
    "no action": ('{"tool": "add_task", "args": {"title": "a"}}', [ADD]),
    "all keys": (orchestrator_json(action="use_tool", tool="add_task", args={"title": "a"}), [ADD]),
    "words for null": (
        orchestrator_json(action="use_tool", tool="list_tasks", target_agent="null", args=None, answer=None),
        [LIST],
    ),
    "a tool as agent": ('{"action": "delegate", "target_agent": "add_task", "args": {"title": "a"}}', [ADD]),
    "an agent as tool": (
        orchestrator_json(action="tool", tool="Coder", args={"task": "x"}),
        [Call("do_with_coder", '{"task": "x"}')],
    ),
    "the task as answer": (
        orchestrator_json(target_agent="coder", answer="x"),
        [Call("do_with_coder", '{"task": "x"}')],
    ),
    "fence": (f"```json\n{ONE}\n```", [ADD]),
    "fence without a word": (f"\n```\n{ONE}\n```\n", [ADD]),
    "tags": (f"<tool_call>\n{ONE}\n</tool_call>", [ADD]),
    "two in tags": (f"<tool_call>{ONE}</tool_call> <tool_call>{TWO}</tool_call>", [ADD, LIST]),
    "two fences": (f"```json\n{ONE}\n```\n\n```json\n{TWO}\n```", [ADD, LIST]),
    "a list": (f"[{ONE}, {TWO}]", [ADD, LIST]),
    "an answer before its time": (f'{{"action": "final", "answer": "Added."}} {ONE}', [ADD]),
    "a comma too many": ('{"name": "add_task", "arguments": {"title": "a",},}', [ADD]),
    "braces in a value": (
        '{"name": "add_task", "arguments": {"title": "} {,}\\"}"}}',
        [Call("add_task", '{"title": "} {,}\\"}"}')],
    ),
    "a raw line break": (
        '{"name": "add_task", "arguments": {"title": "a\nb"}}',
        [Call("add_task", '{"title": "a\\nb"}')],
    ),
}
TEXTS: dict[str, tuple[str, str | None]] = {
    "final": ('{"action": "final", "answer": "Done: {a}"}', "Done: {a}"),
    "an answer alone": ('{"thought": "t", "answer": "Done."}', "Done."),
    "final with other keys": (
        orchestrator_json(action="final", tool="add_task", answer="Done.", confidence=0.9),
        "Done.",
    ),
    "a number": (orchestrator_json(action="final", answer=42), "42"),
    "no answer": (orchestrator_json(action="final"), "[NO ANSWER]"),
    "text and no answer": (f"Done.\n{orchestrator_json(action='final')}", "Done."),
    "final in prose": (
        f"Here:\n\n```json\n{orchestrator_json(action='final', answer='It is.')}\n```\nBye.",
        "Here:\n\nIt is.\n\nBye.",
    ),
    "prose": ("There are two.", None),
    "prose with braces": ("Use {name} and {other}.", None),
    "braces, then prose": ("{name} is what you fill in.", None),
    "JSON that was asked for": ('As JSON:\n```json\n{"name": "Ada", "age": 36}\n```\n`{}` is empty.', None),
    "JSON that is not whole": ('{"milk": 2, "eggs": ', None),
    "code": ('```python\nd = {"name": "add_task", "arguments": {}}\n```', None),
    "a table of code": ("`{` opens, <b> is bold, ``` fences", None),
    "nested": ('{"a":' * 5_000 + "{}" + "}" * 5_000, None),
    "backticks": ("`" * 2_000 + "{ [", None),
}
FAULTS = {
    "cut off": ONE[:-3],
    "the second cut off": f"{ONE}\n{TWO[:-2]}",
    "cut off in its thought": '{"thought": "I shou',
    "single quotes": "{'name': 'add_task', 'arguments': {'title': 'a'}}",
    "a list of arguments": '{"name": "add_task", "arguments": ["a"]}',
    "an unknown tool": orchestrator_json(action="use_tool", tool="mow"),
    "an unknown name": '{"name": "mow", "arguments": {}}',
    "an unknown agent": orchestrator_json(action="delegate", target_agent="cook"),
    "an unknown action": orchestrator_json(action="dance"),
    "nothing but a thought": orchestrator_json(thought="hm"),
    "two at once": orchestrator_json(tool="add_task", target_agent="coder"),
    "no tool": orchestrator_json(action="use_tool"),
    "no agent": orchestrator_json(action="delegate"),
    "no task": orchestrator_json(action="delegate", target_agent="coder"),
    "an answer that is no text": orchestrator_json(action="final", answer=["a"]),
}


def sizes(text: str) -> Iterator[int]:
    """In how many characters a frame a text is sent: all of it at once, and cut everywhere."""
    yield len(text)
    if len(text) < 1_000:
        yield 1


def called(events: list[RunEvent]) -> list[Call]:
    """What the assistant called."""
    inputs = [(event.data["tool_name"], event.data["tool_input"]) for event in events if event.name == "tool_call"]
    return [Call(name, json.dumps(json.loads(arguments))) for name, arguments in inputs]


@pytest.mark.parametrize("prose", [("", ""), ("I look:\n", "\nOutput of it: none.")], ids=["alone", "prose"])
@pytest.mark.parametrize("case", CALLS)
async def test_calls(case: str, prose: tuple[str, str], user: User, model: ScriptedModel) -> None:
    """Objects are called and not shown; text before them is shown, and text behind them is not."""
    (text, expected), (before, after) = CALLS[case], prose
    written = before + text + after
    coder = [says("The coder is done.")] if expected[0].name == "do_with_coder" else []
    for size in sizes(written):
        await model.script({"text": written, "chunk_chars": size}, *coder, says("Over."))
        events = await user.runs.say(f"chat-{size}", "go")
        assert called(events) == [Call(name, json.dumps(json.loads(given))) for name, given in expected], size
        assert text_of(events) == f"{before.strip()}Over.", size
        assert events[-1].data["status"] == "COMPLETED"


@pytest.mark.parametrize("case", TEXTS)
async def test_all_else_is_text(case: str, user: User, model: ScriptedModel) -> None:
    text, expected = TEXTS[case]
    for size in sizes(text):
        await model.script({"text": text, "chunk_chars": size})
        events = await user.runs.say(f"chat-{size}", "go")
        assert (text_of(events), called(events)) == (text if expected is None else expected, []), size


@pytest.mark.parametrize("case", FAULTS)
async def test_what_cannot_be_carried_out(case: str, user: User, model: ScriptedModel) -> None:
    """It is not shown; the model is asked once more and told why, and the second time the run fails."""
    text = FAULTS[case]
    answered = says(orchestrator_json(action="final", answer="Well."))
    for size in sizes(text):
        await model.reset()
        await model.script({"text": text, "chunk_chars": size}, answered)
        events = await user.runs.say(f"chat-{size}", "go")
        assert (text_of(events), called(events)) == ("Well.", []), size
        first, second = [body["messages"] for body in await requests_to(model)]
        assert second[: len(first)] == first
        wrong, told = second[len(first) :]
        assert wrong == {"role": "assistant", "content": text}
        assert told["role"] == "user"
    await model.script(says(text), says(text))
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
        orchestrator_json(thought="Done.", action="final", answer="There is a file."),
    ]
    await model.script(*({"text": step, "chunk_chars": 5} for step in steps))
    answer = await user.chatkit.say("write a")
    assert (answer.error, answer.text) == (None, "There is a file.")
    items = await user.chatkit.items(answer.thread_id)
    reasoning = [item["workflow"] for item in items if item.get("workflow", {}).get("type") == "reasoning"]
    assert [one["tasks"][0]["content"] for one in reasoning] == ["Not mine.", "Done."]
    assert "target_agent" not in json.dumps(items)
    assert [file["path"] for file in (await user.page.files(answer.thread_id))["files"]] == ["a"]


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
