"""Labels as words of a text: +shopping, @home."""

from collections.abc import Sequence


def without_labels(words: Sequence[str], signs: str) -> tuple[str, tuple[str, ...]]:
    """The text of the words, and the labels among them.

    A label at either end is no part of the text. One between other words stays, because the text would lose its sense.
    """
    labels = tuple(word[1:] for word in words if _is_label(word, signs))
    start, end = 0, len(words)
    while start < end and _is_label(words[start], signs):
        start += 1
    while end > start and _is_label(words[end - 1], signs):
        end -= 1
    return " ".join(words[start:end]), labels


def _is_label(word: str, signs: str) -> bool:
    return len(word) > 1 and word[0] in signs
