"""Folded text and what an edit makes of it, for random texts of signs that are folded in different ways."""

import random

from workspace.files.text_folding import fold_text
from workspace.files.text_match import replace_text

SIGNS = ["a", "b", '"', "\u201c", "\u2026", ".", "e\u0301", "é", "\u200b", "\r\n", "\n", "\u00a0", " ", "\u2014", "-"]
SIGNS += ["각", "\u1100\u1161\u11a8", "日"]
TEXTS = 5_000


def fold(text: str) -> str:
    return fold_text(text, line_end="\r\n", signs=True).text


def test_places_and_edits_of_random_texts() -> None:
    chosen = random.Random(58)
    for _ in range(TEXTS):
        text = "".join(chosen.choice(SIGNS) for _ in range(chosen.randrange(1, 30)))
        folded = fold_text(text, line_end="\r\n", signs=True)
        start = chosen.randrange(len(folded.text) + 1)
        end = chosen.randrange(start, len(folded.text) + 1)
        if start < end and (place := folded.find_original(start, end)):
            assert fold(text[slice(*place)]) == folded.text[start:end], text
        old, new = folded.text, f"{folded.text[:start]}Z{folded.text[end:]}"
        edited = replace_text(text, old, new, adapt=lambda part: part.replace("\n", "\r\n"), line_end="\r\n")
        assert fold(edited) == fold(new), (text, new)


def test_parts_that_are_searched_at_a_time_divide_no_sign() -> None:
    chosen = random.Random(58)
    parts = ["".join(chosen.choice(SIGNS) for _ in range(100)) for _ in range(5_000)]
    assert fold("\t".join(parts)) == "\t".join(map(fold, parts))
