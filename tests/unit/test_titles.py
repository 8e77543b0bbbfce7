"""What becomes of a model's suggestion for the title of a conversation."""

import pytest

from backend.context.titles import title_of


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
    assert title_of(answer) == title
