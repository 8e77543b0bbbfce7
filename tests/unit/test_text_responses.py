"""What of a text is a tool call, an answer, a mistake that the model is told of, or text for the user."""

import json
import time

import pytest

from backend.model.responses.reader import Piece
from backend.model.responses.stream import WrittenCalls
from backend.model.responses.text_responses import TextResponse
from tests.support.completions import orchestrator_json

GOAL = "write a poem"
TOOLS = ("add_task", "list_tasks", "do_with_coder", "do_with_researcher")
Call = tuple[str, str]

ONE = '{"name": "add_task", "arguments": {"title": "a"}}'
TWO = '{"tool": "list_tasks", "args": {}}'
ADD, LIST = ("add_task", '{"title": "a"}'), ("list_tasks", "{}")

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
        [("do_with_coder", '{"task": "x"}')],
    ),
    "the task as answer": (orchestrator_json(target_agent="coder", answer="x"), [("do_with_coder", '{"task": "x"}')]),
    "no task": (orchestrator_json(target_agent="coder"), [("do_with_coder", json.dumps({"task": GOAL}))]),
    "another argument than the task": (
        orchestrator_json(action="delegate", target_agent="coder", args={"task": None, "task_id": 3}),
        [("do_with_coder", json.dumps({"task": GOAL, "task_id": 3}))],
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
        [("add_task", '{"title": "} {,}\\"}"}')],
    ),
    "a raw line break": (
        '{"name": "add_task", "arguments": {"title": "a\nb"}}',
        [("add_task", '{"title": "a\\nb"}')],
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
    "an answer that is no text": orchestrator_json(action="final", answer=["a"]),
}


def read(text: str) -> TextResponse:
    """Read at once and character by character, which makes no difference; `raw` is what is shown."""
    found: list[TextResponse] = []
    for size in {1, len(text)}:
        response = TextResponse(TOOLS, goal=GOAL)
        parts = [response.feed(text[start : start + size]) for start in range(0, len(text), size)]
        response.raw = "".join([*parts, response.finish(cut_off=False)[0]])
        found.append(response)
    first, last = found[0], found[-1]
    assert (first.raw, first.fault, calls_of(first)) == (last.raw, last.fault, calls_of(last))
    return first


def calls_of(response: TextResponse) -> list[Call]:
    return [(call.name, json.dumps(json.loads(call.arguments))) for call in response.calls]


@pytest.mark.parametrize("prose", [("", ""), ("I look:\n", "\nOutput of it: none.")], ids=["alone", "prose"])
@pytest.mark.parametrize("case", CALLS)
def test_calls(case: str, prose: tuple[str, str]) -> None:
    """Objects are called and not shown; text before them is shown, and text behind them is not."""
    (text, expected), (before, after) = CALLS[case], prose
    response = read(before + text + after)
    assert calls_of(response) == [(name, json.dumps(json.loads(given))) for name, given in expected]
    assert (response.raw.strip(), response.fault) == (before.strip(), None)


@pytest.mark.parametrize("case", TEXTS)
def test_all_else_is_text(case: str) -> None:
    text, expected = TEXTS[case]
    response = read(text)
    assert (response.raw, response.calls, response.fault) == (text if expected is None else expected, [], None)


@pytest.mark.parametrize("case", FAULTS)
def test_what_cannot_be_carried_out(case: str) -> None:
    response = read(FAULTS[case])
    assert response.fault
    assert response.raw == ""


LONG = {
    "names without arguments": '{"name":',
    "tool names": '{"name": "add_task", ',
    "objects": '{"a": 1}',
    "objects in objects": '{"a": {',
    "answers": '{"action":"final","answer":"x"}',
    "fences": '```json\n{"a": 1}\n```\n',
    "commas": '{"a": ["",',
}
SECONDS = 0.2  # ten times the goal, for a busy machine


@pytest.mark.parametrize("case", LONG)
def test_a_long_text_takes_milliseconds(case: str) -> None:
    """As a response of a model that writes its calls, and of one that has written none."""
    text = (LONG[case] * 400_000)[:400_000]
    response, written = TextResponse(TOOLS, goal=GOAL), WrittenCalls(TOOLS, lambda: None)
    began = time.thread_time()
    response.feed(text)
    response.finish(cut_off=False)
    assert time.thread_time() - began < SECONDS
    began = time.thread_time()
    written.read(Piece(text=text, finish="stop"))
    assert time.thread_time() - began < SECONDS


@pytest.mark.parametrize("before", ["", "Here is the JSON that you asked for: " * 2_000])
def test_a_call_after_a_long_text_is_noticed(before: str) -> None:
    noticed: list[str] = []
    WrittenCalls(TOOLS, lambda: noticed.append("call")).read(Piece(text=f"{before}\n{ONE}", finish="stop"))
    assert noticed == ["call"]
