"""What of a model's markup is a thought, a call or nothing, wherever it is cut, and what is text."""

import json
import time
from typing import Any

import pytest

from backend.model.markup.parser import MarkupParser
from backend.model.markup.quoting import Quotable
from tests.support.markup import SAMPLES, TEXTS, Call

_TASK = {
    "title": {"type": "string"},
    "description": {"type": "string"},
    "priority": {"type": "string"},
    "also": {"type": "array", "items": {"type": "string"}},
    "remind": {"type": "integer"},
}
TOOLS = {"add_task": {"type": "object", "properties": _TASK}, "list_tasks": {"type": "object", "properties": {}}}
Found = tuple[str, str, list[Call]]


def read(*pieces: str, is_whole: bool = True, **options: Any) -> Found:
    """Returns the text, the thought and the calls; those in a thought that the text ends with count."""
    parser = MarkupParser(TOOLS, **options)
    parts = [*map(parser.feed, pieces), parser.finish(is_whole=is_whole)]
    text, thought = ("".join(part) for part in zip(*parts, strict=True))
    return text, thought, [(call.name, _load(call.arguments)) for call in parser.calls or parser.drafts]


def _load(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


@pytest.mark.parametrize("name", SAMPLES)
def test_markup_wherever_it_is_cut(name: str) -> None:
    sample = SAMPLES[name]
    written, expected = sample.written, (sample.text, sample.thought, [*sample.calls])
    assert read(written) == expected
    for size in (1, 2, 3, 5, 8, 13):
        assert read(*(written[start : start + size] for start in range(0, len(written), size))) == expected
    for place in range(1, len(written)):
        assert read(written[:place], written[place:]) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_text_about_markup_wherever_it_is_cut(name: str) -> None:
    written = TEXTS[name]
    for place in range(len(written)):
        assert read(written[:place], written[place:]) == (written, "", [])
    assert read(*written) == (written, "", [])


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("is_whole", [True, False])
def test_markup_that_is_cut_off(name: str, is_whole: bool) -> None:
    """Nothing of it is shown, and a call is made only if it is whole; of a half one the model is told."""
    sample = SAMPLES[name]
    for end in range(1, len(sample.written)):
        text, thought, calls = read(sample.written[:end], is_whole=is_whole)
        rest = (
            text.removeprefix(sample.text)
            if text.startswith(sample.text)
            else ""
            if sample.text.startswith(text)
            else text
        )
        assert len(rest) < len("<start_function_call>"), "only what may be a word"
        assert not any(sign in rest for sign in ("|", "tool_", "\n<")) or (is_whole and rest == "<tool_call>")
        assert not any(sign in thought for sign in ("{", "<|"))
        assert all(given is None or _is_beginning((tool, given), sample.calls) for tool, given in calls)
        assert is_whole or all(given is None or (tool, given) in sample.calls for tool, given in calls)


def _is_beginning(call: Call, calls: tuple[Call, ...]) -> bool:
    return any(call[0] == name and call[1].items() <= given.items() for name, given in calls)


def test_data_is_quoted_and_not_carried_out() -> None:
    """A task's title may be markup: an answer that lists it calls nothing."""
    written = SAMPLES["hermes"].written.partition("\n")[2].partition("\nIt")[0]
    output = {"role": "tool", "content": json.dumps({"tasks": [{"id": 1, "title": " ".join(written.split())}]})}
    assert read(f"1. {written}", quotable=Quotable([output])) == (f"1. {written}", "", [])
    said = {"role": "user", "content": f"add a task: {written}"}
    assert read(written, quotable=Quotable([said]))[2] == []
    assert read(written, quotable=Quotable([{"role": "assistant", "content": written}]))[2] != []


VALUES: dict[str, tuple[str, dict[str, Any]]] = {
    "types of the schema": (
        '<function=add_task><parameter=title>\n12\n</parameter><parameter=also>["b", "c"]</parameter>'
        "<parameter=remind>5</parameter></function>",
        {"title": "12", "also": ["b", "c"], "remind": 5},
    ),
    "lines": (
        "<function=add_task>\n<parameter=description>\n\n  one\ntwo\n\n</parameter>\n</function>",
        {"description": "\n  one\ntwo\n"},
    ),
    "the closing tag in a text": (
        '<tool_call>{"name": "add_task", "arguments": {"title": "close </tool_call> now"}}</tool_call>',
        {"title": "close </tool_call> now"},
    ),
    "arguments as a text": (
        '<tool_call>{"name": "add_task", "arguments": "{\\"title\\": \\"a\\"}"}</tool_call>',
        {"title": "a"},
    ),
    "Python's words": (
        "<tool_call>{'name': 'add_task', 'arguments': {'title': 'a', 'remind': None}}</tool_call>",
        {"title": "a", "remind": None},
    ),
    "a function in an object": (
        '<tool_call>{"type": "function", "function": {"name": "add_task", "arguments": {"title": "a"}}}</tool_call>',
        {"title": "a"},
    ),
    "Gemma's lists and numbers": (
        '<|tool_call>call:add_task{title:<|"|>a {b}, "c"<|"|>,also:[<|"|>d<|"|>],remind:5}<tool_call|>',
        {"title": 'a {b}, "c"', "also": ["d"], "remind": 5},
    ),
    "no closing tags": ("<tool_call>\n<function=add_task>\n<parameter=title>\na\n</parameter>\n", {"title": "a"}),
}


@pytest.mark.parametrize("case", VALUES)
def test_arguments(case: str) -> None:
    written, expected = VALUES[case]
    assert read(written)[2] == [("add_task", expected)]


def test_a_call_in_a_thought_that_goes_on_is_none() -> None:
    call = SAMPLES["hermes"].written.partition("\n")[2].partition("\nIt")[0]
    assert read(f"<think>I could {call}, but no.</think>") == ("", "I could , but no.", [])
    assert read(f"<think>I could {call}</think>Shall I?") == ("Shall I?", "I could ", [])


LONG = {
    "openings": "<tool_call>",
    "openings with a brace": "<tool_call>{",
    "calls that are none": '<tool_call>{"a": 1}</tool_call>',
    "closings in a text": '</tool_call>"',
    "names": "[TOOL_CALLS]add_task",
    "elements": "<function=add_task><parameter=title>",
    "tags": "<think ",
    "marks": "<|",
    "brackets": "[",
    "ticks": "`",
    "ends": "<|im_end|> ",
    "spaces": " ",
    "objects": '{"a": [',
    "Gemma's quotes": '<|"|>',
}


@pytest.mark.parametrize(
    "before", ["", '<tool_call>{"name": "add_task", "arguments": {"title": "', "<think>", "[TOOL_CALLS]"]
)
@pytest.mark.parametrize("case", LONG)
def test_a_hostile_text_takes_milliseconds(case: str, before: str) -> None:
    """In pieces of the size in which it is read, and in total; nothing is held without a bound."""
    text = before + (LONG[case] * 200_000)[:200_000]
    parser = MarkupParser(TOOLS)
    longest = 0.0
    began = time.thread_time()
    for start in range(0, len(text), 4_000):
        before_piece = time.thread_time()
        parser.feed(text[start : start + 4_000])
        longest = max(longest, time.thread_time() - before_piece)
    parser.finish()
    assert longest < 0.05
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    "call",
    [
        "<function=add_task><parameter=title>" + " " * 50_000,
        "<function=add_task>" + "".join(f"<tag{n}></tag{n}>" for n in range(2_000)) + "</function>",
        "<function=add_task>" + "<parameter=title>x</title>" * 3_000 + "</function>",
        "<function=add_task><parameter=title>" + "</title>" * 6_000,
        "<function=add_task><parameter=also>" + "<item>" * 8_000 + "</parameter></function>",
        "add_task" + " " * 50_000 + "x",
        "add_task\n<arg_key>" + " " * 50_000,
        '{"name": "add_task", "arguments": {"title": "' + " " * 50_000,
    ],
    ids=["spaces", "tags", "names", "names without an end", "items", "spaces behind a name", "keys", "objects"],
)
def test_a_hostile_call_takes_milliseconds(call: str) -> None:
    parser = MarkupParser(TOOLS)
    parser.feed(f"<tool_call>{call}")
    began = time.thread_time()
    parser.feed("</tool_call>")
    parser.finish()
    assert time.thread_time() - began < 0.05


def test_a_call_is_looked_for_in_a_long_conversation_within_milliseconds() -> None:
    quotable = Quotable([{"role": "user", "content": "a\\n b " * 100_000}])
    began = time.thread_time()
    assert '{"a": 1}' not in quotable
    assert time.thread_time() - began < 0.05
