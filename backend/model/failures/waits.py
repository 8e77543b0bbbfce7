"""How long a provider asks to wait before a request is sent again, from its headers, the body of its error or words."""

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_LENGTH = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|min|minutes?|h|hours?|d|days?)?(?![a-z])",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"(?:(?:try|retry|again|wait|available|reset)\w*)\W{1,3}(?:\w+\W{1,3}){0,4}?(?:in|after|for)\W{1,3}(?:about )?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|h|hours?|m|min|minutes?|s|secs?|seconds?)\W{0,2}){1,3})",
    re.IGNORECASE,
)
_UNITS = {"m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_KEYS = ("retry_after", "retryafter", "retry_after_seconds", "retrydelay", "retry_delay", "retry_after_ms")
_MAX_DEPTH, _MAX_WORDS = 6, 2_000
_EPOCH_SECONDS, _EPOCH_MS = 1e9, 1e12


def find_wait(headers: Mapping[str, str], body: Any, words: str) -> float | None:
    """Returns seconds; None if nothing says how long."""
    for value in (*_read_headers(headers), *_read_body(body, _MAX_DEPTH)):
        if value is not None and value >= 0:
            return value
    said = _IN_WORDS.search(words[:_MAX_WORDS])
    return _parse_length(said[1]) if said else None


def _read_headers(headers: Mapping[str, str]) -> Iterator[float | None]:
    values = {name.lower(): value for name, value in headers.items()}
    if (ms := values.get("retry-after-ms")) is not None:
        yield _scale(_parse_number(ms), 0.001)
    if (after := values.get("retry-after")) is not None:
        yield _parse_after(after)
    resets = [
        _parse_reset(value)
        for name, value in values.items()
        if re.match(r"(x-|anthropic-)?ratelimit.*reset", name) and not _has_rest(name, values)
    ]
    yield max((one for one in resets if one is not None), default=None)


def _has_rest(name: str, values: Mapping[str, str]) -> bool:
    """Whether this limit has something left, so that it is not the one that was reached."""
    rest = _parse_number(values.get(name.replace("reset", "remaining"), ""))
    return rest is not None and rest > 0


def _parse_after(text: str) -> float | None:
    if (seconds := _parse_length(text)) is not None:
        return seconds
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _parse_reset(text: str) -> float | None:
    """Returns seconds of a length such as `6m0s`, of Unix time in seconds or milliseconds, or of an instant."""
    number = _parse_number(text)
    if number is not None and number >= _EPOCH_SECONDS:
        return max(0.0, (number / 1000 if number >= _EPOCH_MS else number) - time.time())
    if (seconds := _parse_length(text)) is not None:
        return seconds
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - time.time())
    except ValueError:
        return None


def _read_body(value: Any, depth: int) -> Iterator[float | None]:
    if depth and isinstance(value, list):
        for one in value[:100]:
            yield from _read_body(one, depth - 1)
    if not depth or not isinstance(value, dict):
        return
    for key, inner in list(value.items())[:100]:
        name = re.sub(r"\W+", "_", str(key).lower())
        if name in _KEYS and isinstance(inner, str | int | float) and not isinstance(inner, bool):
            yield _scale(_parse_length(str(inner)), 0.001 if name.endswith("_ms") else 1.0)
        elif isinstance(inner, dict | list):
            yield from _read_body(inner, depth - 1)


def _scale(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_length(text: str) -> float | None:
    """Returns the seconds of `4`, `1.2s`, `6m0s`, `250ms` or `1 minute 5 seconds`; None for anything else."""
    text = text.strip()
    if not re.fullmatch(rf"(?:{_LENGTH.pattern}[\s,.]*)+", text, re.IGNORECASE):
        return None
    return sum(float(number) * _factor(unit.lower()) for number, unit in _LENGTH.findall(text))


def _factor(unit: str) -> float:
    if unit.startswith(("ms", "milli")):
        return 0.001
    return next((seconds for name, seconds in _UNITS.items() if unit and unit.startswith(name)), 1.0)
