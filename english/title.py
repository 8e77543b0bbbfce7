"""The title of a task: a text without what was understood of it."""

import re
from itertools import groupby, pairwise

from english.dates.placement import MARKS
from english.words import Words

_SEPARATORS = (",", ";", "-", "\u2013", "\u2014", "&")
_ENDS = " ,;:-(\u2013\u2014"


def render_title(words: Words, removed_words: set[int]) -> str:
    if not removed_words:
        return words.text.strip()
    _remove_separators(words, removed_words)
    _remove_marks(words, removed_words)
    runs = [
        list(run) for is_kept, run in groupby(range(len(words.words)), lambda at: at not in removed_words) if is_kept
    ]
    pieces = [words.text[words.words[run[0]].start : words.words[run[-1]].end] for run in runs]
    title = re.sub(r" ([,;:.!?)])(?= |$)", r"\1", " ".join(" ".join(pieces).split())).strip(_ENDS)
    if 0 in removed_words:
        title = re.sub(r"^(?:(?:and|or|[&@/+]) )+", "", title)
    if len(words.words) - 1 in removed_words:
        title = re.sub(r"(?: (?:and|or|[&@/+]))+$", "", title)
    return title.strip(_ENDS)


def _remove_separators(words: Words, removed_words: set[int]) -> None:
    """Removes a comma before each removed word, and pairs of brackets around it."""
    opening = closing = -1
    for at in sorted(removed_words):
        if (left := at - 1) not in removed_words:
            if words.raw(left) in _SEPARATORS:
                removed_words.add(left)
                left -= 1
            if left not in removed_words:
                opening = left
        closing = max(closing, at)
        while opening in removed_words:
            opening -= 1
        while closing in removed_words:
            closing += 1
        if words.raw(opening) + words.raw(closing) in ("()", "[]"):
            removed_words.update((opening, closing))


def _remove_marks(words: Words, removed_words: set[int]) -> None:
    """Removes marks between removed words, and between one of them and an end of the text."""
    ends = [-1, *sorted(removed_words), len(words.words)]
    for before, after in pairwise(ends):
        between = range(before + 1, after)
        if all(MARKS.issuperset(words.raw(at)) for at in between):
            removed_words.update(between)


def remove_quotes(title: str) -> str:
    pairs = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d"}
    inner = title[1:-1]
    is_quoted = len(title) > 2 and pairs.get(title[0]) == title[-1] and not {title[0], title[-1]} & set(inner)
    return inner if is_quoted else title
