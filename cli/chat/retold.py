"""An answer that is told again from its beginning, where the server does not hold any more what it had told."""

import json
from collections import Counter
from typing import Any


class Retold:
    """What of it is new."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        self._characters = self._known = 0

    def begin_again(self) -> None:
        """What follows was told already, as far as it is the same."""
        self._again, self._told, self._characters = self._told, Counter(), 0

    def is_new(self, name: str, data: dict[str, Any]) -> bool:
        """Whether an event that is no piece of a text was not told before."""
        told = f"{name} {json.dumps(data, sort_keys=True)}"
        self._told[told] += 1
        self._again[told] -= 1
        return self._again[told] < 0

    def new_of(self, said: str) -> str:
        """What of the next piece of all that is said was not told before."""
        begin = max(self._known - self._characters, 0)
        self._characters += len(said)
        self._known = max(self._known, self._characters)
        return said[begin:]
