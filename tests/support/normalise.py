"""Replaces what differs between two runs of the same test: ids, times and event numbers."""

import json
import re
from typing import Any

_ID = re.compile(r"\b([a-z]{2,8})_(?:[0-9a-f]{32}|[0-9A-Za-z-]{20,})\b")
_CLOCK = re.compile(r'(?<=\d\d-\d\d )\d{2}:\d{2}(?=, [A-Z]|","time_zone")')  # what is now; due times stay
_DURATION = re.compile(r"(?<=after )\d+\.\d s")
_INSTANT = re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?")


class Normaliser:
    """Gives each id a number in the order of appearance; the same id is the same number everywhere."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self(each) for each in value]
        if isinstance(value, dict):
            return {self._text(name): self(each) for name, each in value.items()}
        return value

    def _text(self, text: str) -> str:
        text = _ID.sub(lambda found: self._name(found[0], found[1]), text)
        return _DURATION.sub("<seconds>", _INSTANT.sub("<instant>", _CLOCK.sub("<time>", text)))

    def _name(self, identifier: str, kind: str) -> str:
        if identifier not in self._numbers:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbers[identifier] = f"<{kind} {self._counts[kind]}>"
        return self._numbers[identifier]


def as_text(value: Any) -> str:
    return json.dumps(Normaliser()(value), indent=1, ensure_ascii=False) + "\n"
