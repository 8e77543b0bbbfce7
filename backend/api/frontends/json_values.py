"""Arguments and results of tools, as values that every client can read."""

import json
import math
from typing import Any

_UNSAFE_NAMES = ("__proto__", "constructor", "prototype")


def parse_value(text: str) -> Any:
    """The object or list in this JSON; the text where it is none, or has what clients in JavaScript reject."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_reject, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(name in _UNSAFE_NAMES for name, _ in pairs):
        raise ValueError
    return dict(pairs)


def _reject(_: str) -> Any:
    raise ValueError


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError
    return number
