"""Which sentences of an answer claim a change, and how long it takes to find them."""

import time

import pytest

from common.claims import MAX_CHARS, Claim, find_claims
from offline_model import replies
from tests.claims.turns import SENTENCES, UNKNOWN

HOSTILE = ["I've added milk ", "ich habe die und ", "“", "**a", "'a ", "i did and i ", "我已经把", "- a\n", "a", "is, "]


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_of_the_corpus(language: str) -> None:
    """Claims in languages that the table does not have are missed, and those in `missed`, but nothing is taken for a
    claim that is none.
    """
    row, is_known = SENTENCES[language], language not in UNKNOWN
    for kind, has_read, is_claim in (
        ("own", False, True),
        ("own", True, True),
        ("claims", False, is_known),
        ("others", False, False),
        ("others", True, False),
        ("told", True, False),
        ("missed", False, False),
    ):
        wrong = [text for text in row.get(kind, ()) if bool(find_claims(text, has_read=has_read)) != is_claim]
        assert not wrong, (kind, has_read)


def test_language_of_each_sentence_is_told_in_a_mixed_text() -> None:
    text = "Dodałem mleko. Here is a haiku. Ich habe Milch hinzugefügt. Jag har lagt till mjölk. 我已添加牛奶。"
    assert [claim.sentence for claim in find_claims(text)] == ["Ich habe Milch hinzugefügt.", "我已添加牛奶。"]


def test_answer_that_has_read_claims_only_what_it_says_of_itself() -> None:
    text = "You've added milk. “Dentist” has been moved.\n- I've deleted bread.\nI have completed tea."
    assert len(find_claims(text)) == 4
    assert find_claims(text, has_read=True) == [
        Claim("deleted", "I've deleted bread."),
        Claim("completed", "I have completed tea."),
    ]


def test_time_grows_with_the_length_of_a_text_only() -> None:
    def measure(length: int) -> float:
        began = time.process_time()
        for part in HOSTILE:
            find_claims(part * (length // len(part)))
        return time.process_time() - began

    measure(1_000)
    assert measure(MAX_CHARS) < 10 * measure(MAX_CHARS // 4)


def test_signs_in_a_row_are_read_in_time() -> None:
    began = time.process_time()
    find_claims(f"Tarea {'-' * 60} {'-' * 60} {'-' * 60} de la lista")
    assert time.process_time() - began < 2


@pytest.mark.parametrize("end", ["(at 9:00)", "and more", ""])
def test_title_of_many_characters_is_read_in_time(end: str) -> None:
    began = time.process_time()
    for start in ("✅ Added", "Added", "OK", "✅"):
        find_claims(f'{start} "{"Finish the report, " * 12}" {end}')
    assert time.process_time() - began < 1


def test_long_answer_is_searched_at_its_beginning_and_end() -> None:
    text = "Here is what you asked for. " * 1_000
    assert len(find_claims(f"I've added milk. {text} I've deleted bread.")) == 2
    began = time.process_time()
    assert find_claims(text * 40) == []
    assert time.process_time() - began < 1


def test_offline_model_claims_only_what_it_has_done() -> None:
    sentences = [text for text in vars(replies).values() if isinstance(text, str)]
    claiming = [text for text in sentences if find_claims(text)]
    assert len(claiming) > 5
    assert all("{tasks}" in text for text in claiming), claiming
