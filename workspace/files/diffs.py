"""What a write changed, as people read it."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

_MOST_BYTES = 20_000
_MOST_LINES = 2_000  # compared on each side: the time that takes grows with their product
_AROUND = 3  # lines before and after a change
_CUT = "(further changes are not shown)"


def between(before: str | None, after: str, path: str) -> str:
    """A unified diff; `before` is None for what cannot be compared."""
    if before is None:
        return _CUT
    old, new = before.splitlines(), after.splitlines()
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > _MOST_LINES:
        return _CUT
    first, rest = max(0, head - _AROUND), max(0, tail - _AROUND)
    lines = difflib.unified_diff(old[first : len(old) - rest], new[first : len(new) - rest], path, path, lineterm="")
    return "\n".join(_fitting(_numbered_from(first, lines)))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at their beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _numbered_from(first: int, lines: Iterable[str]) -> Iterator[str]:
    """The lines of a diff in which the first `first` lines of both files were left out."""
    for line in lines:
        if line.startswith("@@"):
            yield re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + first), line)
        else:
            yield line


def _fitting(lines: Iterable[str]) -> Iterator[str]:
    room = _MOST_BYTES - len(_CUT) - 1
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            yield _CUT
            return
        yield line
