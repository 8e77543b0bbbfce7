"""Three hundred phrases of three sources, whose reading was decided before the grammar was tried on them."""

from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from english import ParsedTask, read_task

NOW = datetime(2027, 3, 10, 10, 20)  # a Wednesday
FILES = sorted(Path(__file__).with_name("phrases").glob("*.txt"))
MOST_WRONG, LEAST_RIGHT = 0.01, 0.85
Outcome = Literal["right", "left whole and reported", "wrong"]


class Phrase(NamedTuple):
    text: str
    title: str
    fields: dict[str, str]
    is_reported: bool


def read_file(path: Path) -> list[Phrase]:
    return [read_line(line) for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]


def read_line(line: str) -> Phrase:
    _, text, title, fields = (cell.strip() for cell in line.split(" |", 3))
    words = fields.split()
    values = dict(word.split("=", 1) for word in words if "=" in word)
    return Phrase(text, text if title == "=" else title, values, "left" in words)


def list_fields(reading: ParsedTask) -> dict[str, str]:
    when = reading.when
    fields = {
        "due": when and f"{when.day}",
        "time": when and when.time and f"{when.time:%H:%M}",
        "repeat": when and when.repeat,
        "prio": reading.priority,
        "labels": ",".join(reading.labels),
        "remind": None if reading.remind is None else str(reading.remind),
    }
    return {name: value for name, value in fields.items() if value}


def is_as_expected(phrase: Phrase, reading: ParsedTask) -> bool:
    fields, expected = list_fields(reading), phrase.fields
    is_same = all(
        expected.get(name) == "?" or fields.get(name, "") in expected.get(name, "").split("|")
        for name in {*fields, *expected}
    )
    is_reported = bool(reading.unread) == phrase.is_reported
    return is_same and is_reported and reading.title.casefold() == phrase.title.casefold()


def judge(phrase: Phrase, reading: ParsedTask) -> Outcome:
    if is_as_expected(phrase, reading):
        return "right"
    is_subset = list_fields(reading).items() <= phrase.fields.items()
    is_left = reading.when is None and is_subset and reading.title in phrase.text
    return "left whole and reported" if reading.unread and is_left else "wrong"


@cache
def judge_all() -> dict[str, Counter[Outcome]]:
    return {path.stem: Counter(judge(each, read_task(each.text, NOW)) for each in read_file(path)) for path in FILES}


@pytest.mark.parametrize("source", [path.stem for path in FILES])
def test_hundred_phrases(source: str) -> None:
    counts = judge_all()[source]
    assert counts.total() == 100
    assert counts["right"] >= 100 * LEAST_RIGHT, counts


def test_few_phrases_are_read_wrong() -> None:
    total = sum(judge_all().values(), Counter[Outcome]())
    assert total["wrong"] <= MOST_WRONG * total.total(), total
