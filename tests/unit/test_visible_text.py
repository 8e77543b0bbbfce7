"""Which text can be seen: what is taken out, and what emoji and other scripts need."""

import time
from collections.abc import Callable

import pytest

from backend.context.titles import extract_title
from common.text import is_single_line_text, is_visible, remove_invisible, remove_stacked_marks

KEPT = [
    "milk & bread, 3 < 4",
    "two\nlines\tand a tab",
    "1️⃣ ❤️ 👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "می‌خواهم",
    "क्‍ष",
    "שלום\u200f!",
    "葛\U000e0100飾区",
    "café",
]
TAKEN_OUT = {
    "milk\U000e0041\U000e0042": "milk",
    "\U0001f3f4" + "\U000e0061" * 20: "\U0001f3f4",
    "a\u202eb\u202c": "ab",
    "\u2066x\u2069": "x",
    "a\u200bb\u2060c\ufeffd\u00ade": "abcde",
    "a\u200cb\u200dc": "abc",
    "é\u200c\u200c\u200dé": "éé",
    "a\u200fb": "ab",
    "m\U000e0112i\U000e0113": "mi",
    "x\x1b[2Jy\x00\x85": "x[2Jy",
}


@pytest.mark.parametrize("text", KEPT)
def test_kept_characters(text: str) -> None:
    assert remove_invisible(text) == text
    assert is_visible(text)


@pytest.mark.parametrize("text", [*KEPT, "Mu\u0308ller", "\u05e9\u05c1\u05bc\u05b8", "a" + "\u0301" * 30], ids=ascii)
def test_kept_marks(text: str) -> None:
    assert remove_stacked_marks(text) == text


def test_many_marks_on_a_letter() -> None:
    heap = "\u0344\u05b0" * 20
    assert remove_stacked_marks(f"a{heap}b{heap}\n{heap}") == f"a{heap[:30]}b{heap[:30]}\n{heap[:30]}"


@pytest.mark.parametrize("text", TAKEN_OUT, ids=ascii)
def test_invisible_characters(text: str) -> None:
    assert remove_invisible(text) == TAKEN_OUT[text]


@pytest.mark.parametrize("text", ["", " ", "\u3164", "\u2800 \u115f", "\u200b", "\u0301", "\u00a0\u3000"], ids=ascii)
def test_blank_text(text: str) -> None:
    assert not is_visible(text)


@pytest.mark.parametrize("text", ["a\nb", "a\u2028b", "a\x1b", "\ud800", "x" * 201, "\u3164"], ids=ascii)
def test_single_line(text: str) -> None:
    assert not is_single_line_text(text, max_length=200)
    assert is_single_line_text("milk", max_length=200)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Groceries for Friday", "Groceries for Friday"),
        ("\n Groceries \t for  Friday. \n", "Groceries for Friday"),
        ("“Groceries”", "Groceries"),
        ("**Title: Mum's birthday**", "Mum's birthday"),
        ("Was ist heute fällig?", "Was ist heute fällig?"),
        ("قائمة المشتريات", "قائمة المشتريات"),
        ("Gro\u202ecer\x07ies\u200b", "Groceries"),
        ("", None),
        (' "" ', None),
        ("\u200b", None),
        ("Title:", None),
        ("Here is a title:\nGroceries", None),
        ("word " * 13, None),
        ("<think>They want a title", None),
    ],
)
def test_title_is_one_short_line(answer: str, title: str | None) -> None:
    assert extract_title(answer) == title


def test_a_long_text_takes_no_longer_than_other_work_on_it() -> None:
    text = "".join(map(chr, range(0x4E00, 0x5E00))) * 10

    def measure(work: Callable[[str], str]) -> float:
        began = time.thread_time()
        assert len(work(text)) == len(text)
        return time.thread_time() - began

    assert measure(remove_invisible) < 100 * max(measure(str.casefold), 0.0001)
