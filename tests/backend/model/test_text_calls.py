"""Calls that a model writes as text: what is one, wherever the text is cut, and how such a model is asked."""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import pytest
from agents import Agent, ModelSettings, Runner, function_tool

from backend.model.chat_model import ChatModel
from backend.model.providers import PROFILES, Endpoint
from backend.model.text_calls import Answer, Call, Said, Unreadable
from tests.scripted_model import ScriptedModel

ADD = Call("add_task", '{"title": "a"}')
LIST = Call("list_tasks", "{}")
ONE = '{"name": "add_task", "arguments": {"title": "a"}}'
TWO = '{"tool": "list_tasks", "args": {}}'

CALLS: dict[str, tuple[str, list[Call]]] = {
    "name, arguments": (ONE, [ADD]),
    "name, parameters": ('{"name": "add_task", "parameters": {"title": "a"}}', [ADD]),
    "arguments as text": ('{"name": "add_task", "arguments": "{\\"title\\": \\"a\\"}"}', [ADD]),
    "tool, args": ('{"tool": "add_task", "args": {"title": "a"}}', [ADD]),
    "action, tool": ('{"action": "use_tool", "tool": "add_task", "args": {"title": "a"}}', [ADD]),
    "action, agent": ('{"action": "delegate", "target_agent": "add_task", "args": {"title": "a"}}', [ADD]),
    "fence": (f"```json\n{ONE}\n```", [ADD]),
    "fence without a word": (f"\n```\n{ONE}\n```\n", [ADD]),
    "tags": (f"<tool_call>\n{ONE}\n</tool_call>", [ADD]),
    "two": (f"{ONE}\n{TWO}", [ADD, LIST]),
    "two in tags": (f"<tool_call>{ONE}</tool_call> <tool_call>{TWO}</tool_call>", [ADD, LIST]),
    "two fences": (f"```json\n{ONE}\n```\n\n```json\n{TWO}\n```", [ADD, LIST]),
    "an answer before its time": (f'{ONE} {{"action": "final", "answer": "Added."}}', [ADD]),
    "braces in a value": (
        '{"name": "add_task", "arguments": {"title": "} {\\"}"}}',
        [Call("add_task", '{"title": "} {\\"}"}')],
    ),
    "a raw line break": (
        '{"name": "add_task", "arguments": {"title": "a\nb"}}',
        [Call("add_task", '{"title": "a\\nb"}')],
    ),
}
TEXTS: dict[str, tuple[str, str | None]] = {
    "final": ('{"action": "final", "answer": "Done: {a}"}', "Done: {a}"),
    "prose": ("There are two.", None),
    "prose with braces": ("Use {name} and {other}.", None),
    "braces, then prose": ("{name} is what you fill in.", None),
    "a call in prose": (f"I would say {ONE} then.", None),
    "prose after a call": (f"{ONE} does it.", None),
    "JSON that was asked for": ('{"name": "Ada", "arguments": {"for": 1}}', None),
    "JSON beside a call": (f'{ONE} {{"milk": 2}}', None),
    "JSON that is not whole": ('{"milk": 2, "eggs": ', None),
    "a list": (f"[{ONE}]", None),
    "code": ('```python\nd = {"name": "add_task"}\n```', None),
    "a table of code": ("`{` opens, <b> is bold, ``` fences", None),
    "nested": ('{"a":' * 5_000 + "{}" + "}" * 5_000, None),
    "nothing": ("", None),
}
FAULTS: dict[str, tuple[str, str]] = {
    "cut off": (ONE[:-3], "no valid JSON"),
    "the second cut off": (f"{ONE}\n{TWO[:-2]}", "no valid JSON"),
    "a comma too many": ('{"name": "add_task", "arguments": {"title": "a",}}', "no valid JSON"),
    "single quotes": ("{'name': 'add_task', 'arguments': {'title': 'a'}}", "no valid JSON"),
    "no arguments": ('{"name": "add_task"}', "arguments of add_task"),
    "a list of arguments": ('{"name": "add_task", "arguments": ["a"]}', "arguments of add_task"),
}


def read(pieces: Iterable[str]) -> list[Call] | Said | Unreadable:
    answer = Answer({"add_task", "list_tasks"})
    pieces = list(pieces)
    if all(answer.may_be_calls(piece) for piece in pieces):
        return answer.whole(cut_off=False)
    return Said("".join(pieces))


def cuts(text: str) -> Iterable[list[str]]:
    """All of it, each half of it, and every letter by itself."""
    yield [text]
    if len(text) < 1_000:
        yield from ([text[:cut], text[cut:]] for cut in range(1, len(text)))
        yield list(text)


@pytest.mark.parametrize(("text", "calls"), CALLS.values(), ids=CALLS)
def test_an_answer_that_is_nothing_but_calls_is_calls_wherever_it_is_cut(text: str, calls: list[Call]) -> None:
    for pieces in cuts(text):
        assert read(pieces) == calls, pieces


@pytest.mark.parametrize(("text", "said"), TEXTS.values(), ids=TEXTS)
def test_all_else_is_text_wherever_it_is_cut(text: str, said: str | None) -> None:
    for pieces in cuts(text):
        assert read(pieces) == Said(text if said is None else said), pieces


@pytest.mark.parametrize(("text", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_call_that_cannot_be_read_has_a_reason_and_is_never_completed(text: str, reason: str) -> None:
    for pieces in cuts(text):
        found = read(pieces)
        assert isinstance(found, Unreadable), pieces
        assert reason in found.reason


@pytest.mark.parametrize(
    ("text", "held"),
    [("Hello", ""), (" {na", " {"), ("```py", "```"), ("<b", "<"), (f"{ONE} so", f"{ONE} "), ('{"a": 1} b', '{"a": 1')],
)
def test_text_is_held_back_until_the_first_letter_that_no_call_has(text: str, held: str) -> None:
    answer = Answer({"add_task"})
    released = next(index for index, letter in enumerate(text) if not answer.may_be_calls(letter))
    assert text[:released] == held


@pytest.fixture
async def chat_model(model: ScriptedModel) -> AsyncIterator[ChatModel]:
    profile = replace(PROFILES["custom"], tool_calls="text")
    chat_model = ChatModel(Endpoint(profile, model.openai_base_url, "none", "m"))
    yield chat_model
    await chat_model.client.close()


@function_tool
def echo(text: str) -> str:
    """Says it again."""
    return f"echo {text}"


async def run(chat_model: ChatModel) -> tuple[list[str], Any]:
    """The pieces of text as they were streamed, and the result."""
    settings = ModelSettings(include_usage=True, tool_choice="auto")
    agent = Agent(name="a", instructions="Be kind.", model=chat_model, tools=[echo], model_settings=settings)
    result = Runner.run_streamed(agent, "go")
    events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
    return [event.delta for event in events if event.type == "response.output_text.delta"], result


def written(*texts: str) -> str:
    return "\n".join(json.dumps({"name": "echo", "arguments": {"text": text}}, ensure_ascii=False) for text in texts)


async def test_such_a_model_is_told_of_tools_calls_and_outputs_in_text(
    chat_model: ChatModel, model: ScriptedModel
) -> None:
    await model.script({"text": f"```json\n{written('a', 'b')}\n```", "chunk_chars": 3}, {"text": "Both were said."})
    streamed, result = await run(chat_model)
    first, second = (request["body"] for request in await model.finished_requests())
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & {*first, *second}
    system, said = first["messages"]
    assert system["content"].startswith("Be kind.\n\n# Tools")
    assert written("…") in system["content"]
    [shown] = [line for line in system["content"].splitlines() if '"description": "Says it again."' in line]
    assert json.loads(shown)["parameters"]["required"] == ["text"]
    assert second["messages"] == [
        system,
        said,
        {"role": "assistant", "content": written("a", "b")},
        {"role": "user", "content": "Output of echo:\necho a\n\nOutput of echo:\necho b"},
    ]
    assert "".join(streamed) == result.final_output == "Both were said."
    assert len(streamed) > 1


async def test_a_native_call_wins_over_text_that_looks_like_one(chat_model: ChatModel, model: ScriptedModel) -> None:
    native = {"name": "echo", "arguments": {"text": "n"}}
    await model.script({"text": written("t"), "tool_calls": [native], "chunk_chars": 4}, {"text": "done"})
    streamed, result = await run(chat_model)
    assert "".join(streamed) == f"{written('t')}done"
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert outputs == ["echo n"]


BROKEN = '{"name": "echo", "arguments": {"text": "a'


@pytest.mark.parametrize(("finish", "reason"), [("stop", "no valid JSON"), ("length", "cut off")])
async def test_what_cannot_be_read_is_asked_for_once_more_with_the_reason(
    chat_model: ChatModel, model: ScriptedModel, finish: str, reason: str
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    await model.script(
        {"text": BROKEN, "chunk_chars": 5, "finish_reason": finish, "usage": usage},
        {"text": written("b"), "usage": usage},
        {"text": "done", "usage": usage},
    )
    streamed, result = await run(chat_model)
    assert "".join(streamed) == "done"
    assert result.context_wrapper.usage.total_tokens == 36
    first, again, last = (request["body"]["messages"] for request in await model.finished_requests())
    assert again[:2] == first
    assert again[2] == {"role": "assistant", "content": BROKEN}
    assert reason in again[3]["content"]
    assert [message["content"] for message in last[2:]] == [written("b"), "Output of echo:\necho b"]


async def test_what_cannot_be_read_twice_is_shown(chat_model: ChatModel, model: ScriptedModel) -> None:
    await model.script({"text": BROKEN}, {"text": f"{BROKEN} again"})
    streamed, result = await run(chat_model)
    assert "".join(streamed) == result.final_output == f"{BROKEN} again"
    assert len(await model.finished_requests()) == 2
