"""Finds the text that an edit replaces, although a model wrote other signs or line ends, and explains what differs."""

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from workspace.errors import OldTextNotFound, OldTextNotFoundNear, OldTextNotUnique
from workspace.files.diff import count_common
from workspace.files.text_folding import fold_text
from workspace.files.text_form import split_lines

_MAX_COMPARED_LINES = 250_000  # the lines of one text times those of the other
_MAX_LINES = 50_000  # among which the nearest one is looked for
_MAX_RUN = 20  # equal lines that are counted
_MAX_LINE_CHARS = 500  # that are compared word by word or aligned
_SHOWN_CHARS = 60  # of a line, on each side of a difference
_LEAST_LIKENESS = 0.5
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"\d{1,7}: ")  # as `read_file` numbers lines


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def find_once(text: str, part: str, path: str) -> tuple[int, int]:
    """Returns the place of a part that occurs once, whatever its line ends, or else whatever its signs.

    Raises `OldTextNotFound`, `OldTextNotFoundNear` or `OldTextNotUnique`.
    """
    if "\r" in part and count_matches(text, part) == 1:
        return text.find(part), text.find(part) + len(part)
    line_end, searched, wanted = get_folded_line_end(text), text, part
    for signs in (False,) if text.isascii() and part.isascii() else (False, True):
        folded = fold_text(text, line_end=line_end, signs=signs)
        searched, wanted = folded.text, fold_text(part, line_end=line_end, signs=signs).text
        times = count_matches(searched, wanted)
        if times > 1:
            raise OldTextNotUnique(path=path, times=times)
        start = searched.find(wanted)
        if times and (place := folded.find_original(start, start + len(wanted))):
            return place
    raise _explain_missing(searched, wanted, path)


def count_matches(text: str, part: str) -> int:
    """Also finds two overlapping matches, but not all of them, whose number may be the text's length."""
    first = text.find(part) if part else -1
    if first == -1:
        return 0
    return max(text.count(part), 1 if text.find(part, first + 1) == -1 else 2)


def get_folded_line_end(text: str) -> str:
    return "\r" if "\n" not in text else "\r\n"


def replace_text(there: str, old: str, new: str, *, adapt: Callable[[str], str], line_end: str) -> str:
    """Returns the new text with the signs and line ends of the file, which has `there`, where it repeats the old text.

    `adapt` gives all other text the line ends of the file.
    """
    if there == old:
        return adapt(new)
    end = adapt("\n")
    there, old, new = there + end, f"{old}\n", f"{new}\n"  # the last line is compared as all others are
    from_old, from_file = (fold_text(text, line_end=line_end, signs=True) for text in (old, there))
    merged, place = "", 0
    for edit in _list_edits(old, new):
        places = [from_old.find_folded(edit.start), from_old.find_folded(edit.end)]
        first, last = (None if at is None else from_file.find_place(at) for at in places)
        if first is None or last is None:
            return adapt(new[:-1])
        merged += there[place:first] + adapt(edit.text)
        place = last
    merged += there[place:]
    ending = next((ending for ending in (line_end, end, "\n") if merged.endswith(ending)), None)
    return merged.removesuffix(ending) if ending else adapt(new[:-1])


def _list_edits(old: str, new: str) -> Iterator[_Edit]:
    olds, news = split_lines(old), split_lines(new)
    blocks = [("replace", 0, len(olds), 0, len(news))]
    if len(olds) * len(news) <= _MAX_COMPARED_LINES:
        blocks = difflib.SequenceMatcher(None, olds, news, autojunk=False).get_opcodes()
    place = 0
    for _, first, last, start, end in blocks:
        pairs = [("".join(olds[first:last]), "".join(news[start:end]))]
        if is_paired := last - first == end - start:
            pairs = list(zip(olds[first:last], news[start:end], strict=True))
        for before, after in pairs:
            if before != after:
                head = count_common(before, after) if is_paired else 0  # or two lines would have half of a pair each
                tail = min(count_common(before[::-1], after[::-1]), len(before) - head, len(after) - head)
                tail = tail if is_paired else min(tail, 1)
                yield _Edit(place + head, place + len(before) - tail, after[head : len(after) - tail])
            place += len(before)


def describe_signs(there: str, old: str) -> str | None:
    """Names the first sign in which the file differs from the old text, except line ends."""
    there, old = there.replace("\r\n", "\n").replace("\r", "\n"), old.replace("\r\n", "\n").replace("\r", "\n")
    if there == old:
        return None
    place = count_common(there, old)
    return f"the file has {_name_sign(there, place)} where old_text has {_name_sign(old, place)}"


def _explain_missing(text: str, part: str, path: str) -> OldTextNotFound | OldTextNotFoundNear:
    """Takes a time that grows with the length of the text, not with its product with the part's."""
    if max(text.count("\n"), part.count("\n")) > _MAX_LINES:
        return OldTextNotFound(path=path)
    lines, wanted = text.split("\n"), part.lstrip("\n").split("\n")
    start = None if _NUMBERED.match(wanted[0]) else _find_nearest(lines, wanted)
    if start is None:
        return OldTextNotFound(path=path)
    place = next((at for at in range(len(wanted)) if not _is_same(lines, start, wanted, at)), None)
    if place is None:
        return OldTextNotFound(path=path)
    if start + place >= len(lines):
        values = {"text": _shorten_around(lines[-1], 0), "there": "the end of the file", "here": "a line end"}
        return OldTextNotFoundNear(path=path, line=len(lines), **values)
    there, here = lines[start + place], wanted[place]
    offset = _align(there, here) if place == 0 else 0
    at = count_common(there[offset:], here)
    values = {"there": _name_sign(there, offset + at), "here": _name_sign(here, at)}
    return OldTextNotFoundNear(path=path, line=start + place + 1, text=_shorten_around(there, offset + at), **values)


def _find_nearest(lines: list[str], wanted: list[str]) -> int | None:
    """Returns the line where most of the wanted lines begin, or else the one with most words of the first of them."""
    stripped, parts = [line.strip() for line in lines], [line.strip() for line in wanted[:_MAX_RUN]]
    words = set(_WORD.findall(parts[0][:_MAX_LINE_CHARS]))
    best, most = None, _LEAST_LIKENESS
    for number, line in enumerate(stripped):
        run = 0
        while parts[0] and run < min(len(parts), len(lines) - number) and stripped[number + run] == parts[run]:
            run += 1
        found = words.intersection(_WORD.findall(line[:_MAX_LINE_CHARS])) if words and not run else ()
        likeness = 1 + run if run else len(found) / len(words or "-")
        if likeness > most:
            best, most = number, likeness
    return best


def _is_same(lines: list[str], start: int, wanted: list[str], at: int) -> bool:
    if start + at >= len(lines):
        return False
    line, part = lines[start + at], wanted[at]
    is_first, is_last = at == 0, at == len(wanted) - 1
    return line == part or (is_first and line.endswith(part)) or (is_last and line.startswith(part))


def _align(line: str, part: str) -> int:
    """Returns where a part that may begin within a line begins."""
    matcher = difflib.SequenceMatcher(None, line[:_MAX_LINE_CHARS], part[:_MAX_LINE_CHARS], autojunk=False)
    match = matcher.find_longest_match()
    return max(0, match.a - match.b)


def _shorten_around(line: str, place: int) -> str:
    start, end = max(0, place - _SHOWN_CHARS), place + _SHOWN_CHARS
    shown = "".join(c if c.isprintable() else " " for c in line[start:end])
    return f"{'…' if start else ''}{shown}{'…' if end < len(line) else ''}"


def _name_sign(text: str, place: int) -> str:
    if place >= len(text) or text[place] == "\n":
        return "the end of the line"
    sign = text[place]
    name = {" ": "SPACE", "\t": "TAB"}.get(sign) or unicodedata.name(sign, "")
    shown = f"{sign} " if sign.isprintable() and not sign.isspace() else ""
    return f"{shown}(U+{ord(sign):04X}{' ' if name else ''}{name})"
