"""No spelling of the hidden context's tag is missed, however long the text, and other texts stay as they are."""

import random
import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.context.hidden_context import sanitize
from backend.context.tag_letters import SPELLINGS
from common.text import remove_invisible
from tests.tag_spellings import NAME, collect_spellings, spells_name

_ALIKE = sorted({character for characters in SPELLINGS.values() for character in characters})
_SIGNS = st.text(st.characters(exclude_categories=["L", "N", "Cs"]), max_size=2)
_SIZE = 400_000
SECONDS = 0.1  # five times the goal, for a busy machine


@st.composite
def _spellings(draw: st.DrawFn) -> str:
    """Draws the name in letters that may be alike, and sometimes others, with signs between them."""
    text, place = "", 0
    while place < len(NAME):
        parts = [part for part in SPELLINGS if part and NAME.startswith(part, place)]
        part = draw(st.sampled_from(parts))
        text += draw(st.sampled_from(SPELLINGS[part])) + draw(_SIGNS)
        place += len(part)
    return text


@pytest.mark.long
def test_the_table_has_each_character_that_this_python_knows() -> None:
    for part, characters in collect_spellings().items():
        assert {*characters} <= {*SPELLINGS[part]}, part
        newer = {*SPELLINGS[part]}.difference(characters)
        assert all(unicodedata.category(character) == "Cn" for character in newer), part


@given(st.text(max_size=5), _spellings(), st.text(max_size=5))
def test_no_spelling_is_missed(before: str, spelling: str, after: str) -> None:
    text = f"{before}<{spelling}>{after}"
    if spells_name(remove_invisible(text)):
        assert "<" not in sanitize(text)


@given(st.lists(st.sampled_from([*"hidencotxl130_-. ", "hidden", "context", "\u0445", "\u03b7", "a", "\u0431"])))
def test_a_text_is_changed_only_if_it_spells_the_name(parts: list[str]) -> None:
    text = f"<{''.join(parts)}"
    assert ("<" not in sanitize(text)) == spells_name(text)


@pytest.mark.parametrize(
    "characters",
    [
        pytest.param([*map(chr, range(0x20, 0xD800)), *map(chr, range(0xF900, sys.maxunicode))], id="all"),
        pytest.param([c for c in map(chr, range(0x10000)) if c.isalpha()], id="letters"),
        pytest.param(_ALIKE, id="letters that look like those of the name"),
        pytest.param(["h\u2026"], id="its first letter"),
        pytest.param(["hidden\u2105nte\u2026x"], id="nearly the name"),
    ],
)
def test_a_long_text_takes_milliseconds(characters: list[str]) -> None:
    text = "<" + "".join(random.Random(1).choices(characters, k=_SIZE))[:_SIZE]
    sanitize("<\u2026")  # builds the table
    began = time.thread_time()
    sanitize(text)
    assert time.thread_time() - began < SECONDS
