"""Renders the difference between two versions of a file as git does."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from workspace.files.text_form import read_form, split_lines

_MAX_BYTES = 20_000
_MAX_LINES = 2_000  # on each side: the time grows with their product
_MAX_SPLIT_LINES = 100_000  # on each side, as other threads wait until so many are deleted
_CONTEXT_LINES = 3  # before and after a change
_CUT = "(further changes are not shown)"
_NO_LINE_END = "\n\\ No newline at end of file"


def render_diff(before: str | None, after: str, path: str) -> str:
    """Renders a unified diff; `before` is None if it cannot be compared. ^M marks a CR if not all lines end alike."""
    if before is None or max(before.count("\n"), after.count("\n")) > _MAX_SPLIT_LINES:
        return _CUT
    show_ends = len({*read_form(before).line_ends, *read_form(after).line_ends}) > 1
    old, new = ([_render_line(line, show_end=show_ends) for line in split_lines(text)] for text in (before, after))
    head = count_common(old, new)
    tail = count_common(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > _MAX_LINES:
        return _CUT
    first, rest = max(0, head - _CONTEXT_LINES), max(0, tail - _CONTEXT_LINES)
    lines = difflib.unified_diff(old[first : len(old) - rest], new[first : len(new) - rest], path, path, lineterm="")
    return "\n".join(_limit_lines(_shift_numbers(first, lines)))


def count_common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _render_line(line: str, *, show_end: bool) -> str:
    text = line.removesuffix("\n").removesuffix("\r")
    if text == line:
        return text + _NO_LINE_END
    return f"{text}^M" if show_end and "\r" in line[len(text) :] else text


def _shift_numbers(first: int, lines: Iterable[str]) -> Iterator[str]:
    """Adds the number of omitted leading lines to a diff's line numbers."""
    for line in lines:
        if line.startswith("@@"):
            yield re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + first), line)
        else:
            yield line


def _limit_lines(lines: Iterable[str]) -> Iterator[str]:
    left = _MAX_BYTES - len(_CUT) - 1
    for line in lines:
        left -= len(line.encode()) + 1
        if left < 0:
            yield _CUT
            return
        yield line
