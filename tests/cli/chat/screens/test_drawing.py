"""What is drawn, without a terminal: how it grows, how wide it is, and what never gets through."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cli.chat.screens import drawing
from cli.chat.screens.markdown import Growing, drawn
from cli.chat.screens.text import Style, clean, one_line, wrapped
from tests.conftest import ROOT

PLAIN = Style(colour=False)
TEXT = """# A head

Some **bold** words, a [link](https://example.org) and `code`.

- one
  - below

1. first

2. second

```python
def f():

    return 1
```

| a | b |
|---|---|
| 1 | 日本語 |

> a quote

שלום, and the end"""
LINES = [
    *("text", "- a", "  more", "", "", "", "1. b", "2. c", "    code", "```", "> q", "---", "===", "# h", "| a | b |"),
    *("|---|---|", "<!-- x", "-->", "***", "+ d", "<div>", "\tt", "- ", "[a]: http://b"),
]
TASKS: list[dict[str, Any]] = [
    {"id": 1, "title": "buy milk", "status": "completed", "due": "Tue 2026-11-24"},
    {"id": 12, "title": "日本語のとても長いタスク " * 5, "status": "pending", "due": "2026-11-27", "time": "15:00"},
    {"id": 3, "title": "a" * 200, "status": "pending", "priority": "medium", "labels": ["at-home", "with-others"]},
]


@pytest.mark.parametrize("size", [1, 3, 17, 1_000])
@pytest.mark.parametrize("colour", [False, True])
def test_what_came_in_pieces_is_what_came_at_once(size: int, colour: bool) -> None:
    growing, lines = Growing(), list[str]()
    for begin in range(0, len(TEXT), size):
        growing.add(TEXT[begin : begin + size])
        lines += growing.finished(width=60, colour=colour)
    lines += growing.rest(width=60, colour=colour)
    assert lines == drawn(TEXT, width=60, colour=colour)
    assert not growing.is_open


@given(st.lists(st.sampled_from(LINES), max_size=12), st.integers(1, 9))
def test_what_is_finished_stays_as_it_is_whatever_follows(lines: list[str], size: int) -> None:
    growing, text, told = Growing(), "\n".join(lines), list[str]()
    for begin in range(0, len(text), size):
        growing.add(text[begin : begin + size])
        told += growing.finished(width=60, colour=False)
    told += growing.rest(width=60, colour=False)
    assert told == drawn(text, width=60, colour=False)


def test_a_paragraph_is_finished_once_the_next_one_begins() -> None:
    growing = Growing()
    growing.add("# A head\n\nOne paragraph.\n\nA")
    assert growing.finished(width=60, colour=False) == ["A head", "", "One paragraph."]
    assert growing.open_lines(width=60, colour=False) == ["", "A"]


@pytest.mark.parametrize("width", [79, 39])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    lines = [*drawn(TEXT, width=width, colour=False), *drawing.task_lines(PLAIN, TASKS, width)]
    lines += drawing.asked_lines(PLAIN, f"Let the coder do this\n{TASKS[1]['title']}\n{'x' * 300}", width)
    lines += drawing.call_line(PLAIN, "add_task", '{"title": "日本語"}', "It is not there. " * 20, width).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert any("15:00" in line for line in lines)


@given(st.text(st.characters(codec="utf-8"), max_size=80), st.integers(20, 60))
def test_no_text_is_obeyed_by_a_terminal(text: str, width: int) -> None:
    task = {"id": 1, "title": text, "status": text, "due": text, "labels": [text]}
    told = [one_line(text, width), *wrapped(text, width), *drawing.task_lines(PLAIN, [task], width)]
    told += [drawing.call_line(PLAIN, text, text, text, width), *drawn(text, width=width, colour=False)]
    told += drawing.asked_lines(PLAIN, text, width)
    assert clean("".join(told)) == "".join(told)


def test_the_prompt_waits_for_no_slow_import() -> None:
    asked = "import sys, cli.commands.chat, cli.chat.conversation, cli.chat.screens.live, cli.chat.screens.completion;"
    slow = "{'httpx2', 'rich.markdown', 'markdown_it', 'pydantic'} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", f"{asked} print({slow} or 'none')"], cwd=ROOT, capture_output=True)
    assert done.stdout.decode().strip() == "none"


@pytest.mark.parametrize(
    "said",
    [
        '{"tasks": [{"id": "\\u001b]0;x\\u0007", "title": "a"}]}',
        '{"tasks": ["a"]}',
        '{"tasks": [{"name": "x"}]}',
        '{"tasks": [{"id": 1, "title": "a", "labels": 5}]}',
        '{"tasks": [{"id": 1, "title": "a", "priority": ["high"]}]}',
        '{"title": "a", "also": 5}',
        "[" * 100_000,
    ],
)
def test_what_an_agent_answers_is_no_list_of_tasks_because_it_looks_like_one(said: str) -> None:
    assert drawing.listed(said) is None
    assert "\x1b" not in drawing.call_line(PLAIN, "do_with_researcher", "{}", said, 80)


@pytest.mark.parametrize("colour", [False, True])
def test_an_entity_of_markdown_is_no_way_past(colour: bool) -> None:
    [line] = drawn("a &#8238;abc&#8236; **b** &#x2028; &#27;[31m", width=60, colour=colour)
    assert clean(line.replace("\x1b", "")) == line.replace("\x1b", "")
    assert "abc" in line
