"""Which texts repeat themselves without an end."""

import random
import string

import pytest

from backend.model.responses.hidden_frame import FRAME
from backend.model.responses.repetition import RepetitionDetector

RANDOM = random.Random(1)


def write_prose(chars: int) -> str:
    words = ("".join(RANDOM.choices(string.ascii_lowercase, k=RANDOM.randint(2, 9))) for _ in range(chars))
    return " ".join(words)[:chars]


def read(text: str, size: int = 4) -> str | None:
    """Returns what was read until the text was known to repeat itself; None if it does not."""
    detector = RepetitionDetector()
    passed = ""
    for at in range(0, len(text), size):
        passed += detector.feed(text[at : at + size])
        if detector.is_repeated:
            return passed
    assert passed == text
    return None


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("chars", [1, 3, 7, 41, 100, 199, 200, 201, 600, 1_900])
def test_loop_is_ended(chars: int, size: int) -> None:
    """After four times and 800 characters, to a few characters, wherever it begins and whatever follows it."""
    before, unit = write_prose(333), write_prose(chars)
    times = max(4, -(-800 // chars))
    passed = read(before + unit * times + write_prose(300), size)
    assert passed is not None
    assert passed.startswith(before + (unit * times)[:740])
    assert abs(len(passed) - len(before) - max(800, 4 * chars)) <= 20
    assert read(before + unit * (3 if chars >= 200 else 760 // chars) + write_prose(300), size) is None


LOOPS = {
    "frames": f"{FRAME.format('Sat 2026-11-28 22:07, Europe/Berlin')}\n" * 9,
    "calls as text": '{"name": "add_task", "arguments": {"title": "milk"}}\n' * 20,
    "lines": "\n" * 900,
    "a list of three, again and again": "- milk\n- bread\n- eggs\n" * 60,
    "equal tasks without an end": "- Call the dentist about it\n" * 200,
    "two tasks in turn without an end": "- Call the dentist\n- Buy some milk\n" * 70,
    "a blank table without an end": "|           |           |\n" * 200,
    "a JSON array without an end": "[" + '{"title": "milk", "due": null}, ' * 200,
    "sentences with commas": "Well, I have looked at your list, and it is long,\nso I look again.\n" * 13,
    "sentences after a link": "[Here](https://example.com) is your list.\n" * 25,
    "numbered tasks without an end": "".join(f"{number}. Buy milk\n" for number in range(1, 200)),
    "long numbered tasks without an end": "".join(f"{number}) {'Buy milk, ' * 12}\n" for number in range(50)),
    "numbered tasks in turn without an end": "".join(
        f"{n}. milk\n{n + 1}. bread\n{n + 2}. eggs\n" for n in range(1, 99, 3)
    )
    * 2,
    "a paragraph of rows": (write_prose(60) + "\n- " + write_prose(80) + "\n- " + write_prose(80) + "\n") * 4,
    "calls in a code block": "```json\n" + '{"name": "add_task", "arguments": {"title": "milk"}}\n' * 20,
    "a separator without an end": "-" * 5_000,
    "arguments without an end": '{"name": "add_task", "arguments": {"title": "' + "milk " * 1_000,
    "code without an end": "```\n" + "x.append(0)\n" * 500,
}
LEGITIMATE = {
    "laughter": "ha " * 100,
    "a separator": "-" * 1_000 + "\n" + "=" * 200,
    "a file in a call": '{"name": "write_file", "arguments": {"content": "' + "0,0,0\\n" * 200 + '"}}',
    "code without a fence": "    items.append(None)\n" * 60,
    "equal tasks with boxes": "- [ ] **Call the dentist** (Fri 2026-11-27)\n\n" * 50,
    "a page of equal tasks": "- Call the dentist about it\n" * 50,
    "equal tasks with long titles": f"- {write_prose(190)}\n" * 10,
    "equal tasks of two lines": "- Call the dentist about it\n  Fri 2026-11-27, 15:00, every month, health\n" * 30,
    "equal tasks of two long lines": f"- {write_prose(120)}\n  {write_prose(120)}\n" * 10,
    "two tasks in turn": "- Call the dentist\n- Buy some milk\n" * 55,
    "a blank table": "|" + ("           |" * 3 + "\n|") * 90,
    "a JSON array": "[\n" + '  {"title": "milk", "due": null},\n' * 60 + "]",
    "values between commas": "title,due,status\n" + "milk,2026-11-27,open\n" * 60,
    "a log": "2026-11-27 15:00:00 INFO reminded the user\n" * 60,
    "numbered tasks": "".join(f"{number}. Buy some milk\n" for number in range(1, 110)),
    "numbered tasks that differ": "".join(f"{number}. Read page {number}\n" for number in range(1, 400)),
    "numbered answers": "".join(f"{number}. {write_prose(20)}\n" for number in range(1, 400)),
    "a table of equal rows": "| milk | open | Fri 2026-11-27 |\n" * 50,
    "a table": "|---|---|---|---|\n" * 5 + "".join(f"| task {number} | open |  |  |\n" for number in range(100)),
    "code": "```python\n" + "    items.append(None)\n" * 60 + "```\n",
    "blocks of code": "```html\n" + f'<li class="{write_prose(200)}"></li>\n' * 8 + "```\n",
    "zeros": "```\n" + "0, " * 1_000 + "\n```",
    "a refrain": "".join(write_prose(300) + "\nAnd so we sing, and so we sing.\n" * 4 for _ in range(8)),
    "prose": write_prose(20_000),
}


@pytest.mark.parametrize("case", LOOPS)
def test_loops(case: str) -> None:
    assert read(LOOPS[case]) is not None


@pytest.mark.parametrize("case", LEGITIMATE)
def test_legitimate_repetition(case: str) -> None:
    assert read(LEGITIMATE[case]) is None
