"""Compares what the product sends with committed files; UPDATE_GOLDEN=1 writes the files."""

import json
import os
import re
from pathlib import Path
from typing import Any

UPDATE = "UPDATE_GOLDEN"
_ID = re.compile(r"\b([a-z]{2,8})_(?:[0-9a-f]{32}|[0-9A-Za-z-]{20,})\b")
_CLOCK = re.compile(r'(?<=\d\d-\d\d )\d{2}:\d{2}(?=, [A-Z]|","time_zone")')  # the current time; due times stay
_DURATION = re.compile(r"(?<=after )\d+\.\d s")
_INSTANT = re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?")


class Golden:
    """The files of one test module, in the folder `golden` next to it."""

    def __init__(self, module: Path) -> None:
        self._directory = module.parent / "golden" / module.stem.removeprefix("test_")

    def check(self, name: str, value: Any) -> None:
        """Replaces ids, times and durations, and compares the JSON with the file."""
        path = self._directory / f"{name}.json"
        text = json.dumps(Normaliser()(value), indent=1, ensure_ascii=False) + "\n"
        if os.environ.get(UPDATE):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run the test with {UPDATE}=1 and read what it writes"
        assert text == path.read_text(), f"differs from {path}: if that is wanted, run the test with {UPDATE}=1"


class Normaliser:
    """Replaces times and durations, and each id by a number in order of first appearance."""

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
        text = _ID.sub(lambda match: self._name(match[0], match[1]), text)
        return _DURATION.sub("<seconds>", _INSTANT.sub("<instant>", _CLOCK.sub("<time>", text)))

    def _name(self, identifier: str, kind: str) -> str:
        if identifier not in self._numbers:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._numbers[identifier] = f"<{kind} {self._counts[kind]}>"
        return self._numbers[identifier]
