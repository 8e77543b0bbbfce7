"""Compares what the product sends with a committed file; UPDATE_GOLDEN=1 writes the files anew."""

import os
from pathlib import Path
from typing import Any

from tests.support.normalise import as_text

UPDATE = "UPDATE_GOLDEN"


class Golden:
    """The files of one test module, in the folder `golden` beside it."""

    def __init__(self, module: Path) -> None:
        self._directory = module.parent / "golden" / module.stem.removeprefix("test_")

    def check(self, name: str, value: Any) -> None:
        """Ids, times and event numbers of `value` are replaced first."""
        path = self._directory / f"{name}.json"
        text = as_text(value)
        if os.environ.get(UPDATE):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run the test with {UPDATE}=1 and read what it writes"
        assert text == path.read_text(), f"differs from {path}: if that is wanted, run the test with {UPDATE}=1"
