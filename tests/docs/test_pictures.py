"""The pictures of the README show the page as it is."""

import re

import pytest

from tests.browser.draw_screenshots import IMAGES, TEXTS
from tests.conftest import ROOT


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_a_picture_are_those_of_the_page(name: str) -> None:
    """If one is gone, draw the pictures again: `python -m tests.browser.draw_screenshots`."""
    assert (IMAGES / f"{name}.png").is_file()
    page = "".join((ROOT / "web" / file).read_text() for file in ("texts.js", "index.html"))
    assert [text for text in TEXTS[name] if not re.search(f'[">]{re.escape(text)}["<\\n]', page)] == []
