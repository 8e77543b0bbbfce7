"""Tells whether a message asks about what was done, or for a change, by a table of several languages."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_MAX_CHARS = 2_000
"""Of a longer message only the beginning is searched, and it is taken for a request."""


def asks_about_past(message: str) -> bool:
    """Whether a message asks about what was done, or thanks for it, and asks for no change."""
    return any(map(_read_table().past.search, _split(message))) and not asks_for_change(message)


def asks_for_change(message: str) -> bool:
    table = _read_table()
    parts = [part for part in _split(message) if not table.past.search(part)]
    return len(message) > _MAX_CHARS or any(map(table.requests.search, parts))


def _split(message: str) -> list[str]:
    text = message[:_MAX_CHARS].replace("\u2019", "'")
    return [part.strip() for part in _read_table().parts.split(text) if part.strip()]


@dataclass(frozen=True)
class _Table:
    parts: re.Pattern[str]
    past: re.Pattern[str]
    requests: re.Pattern[str]


@cache
def _read_table() -> _Table:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    past, requests = ("|".join(rows[name].values()) for name in ("past", "requests"))
    return _Table(*(re.compile(pattern, re.IGNORECASE) for pattern in (rows["parts"], past, requests)))
