"""What docs/troubleshooting.md says that is said: each sentence is one of the program's, but for values in it."""

import re

import pytest

from tests.conftest import ROOT

ROOMS = ("backend", "cli", "mcp_server", "offline_model", "service", "web")
QUOTED = re.findall(r"`([^`\n]+)`", (ROOT / "docs" / "troubleshooting.md").read_text())
SENTENCES = [text for text in QUOTED if re.match(r"[A-Z…(.][^`/]* \S+ \S+ ", text)]


@pytest.fixture(scope="module")
def program() -> str:
    files = [ROOT / "todo", *(file for room in ROOMS for file in (ROOT / room).rglob("*.*"))]
    source = "\n".join(file.read_text() for file in files if file.suffix in ("", ".py", ".js"))
    return re.sub(r'"\s*\n\s*f?"', "", source)  # the parts of a text as one


def test_sentences_are_quoted() -> None:
    assert len(SENTENCES) > 20


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_that_is_quoted_is_said(sentence: str, program: str) -> None:
    for part in re.split("[…()]", sentence):
        assert part.strip(" ") in program
