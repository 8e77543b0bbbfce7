"""The texts that an answer is writing: after a reconnection they are sent from their beginning."""

from collections import Counter

from todo_client.runs import Event

_DELTAS = {"answer": "answer_delta", "thinking": "thinking_delta"}


class OpenTexts:
    """Leaves out what was read of them before the connection broke."""

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()  # characters, by the name of the deltas
        self._repeated: Counter[str] = Counter()

    def reconnect(self) -> None:
        self._repeated, self._read = self._read + self._repeated, Counter()

    def read(self, event: Event) -> Event | None:
        """The event with what is new of it; None where it has nothing new."""
        if event.name in _DELTAS and not event.data.get("agent"):
            delta = _DELTAS[event.name]
            del self._read[delta], self._repeated[delta]
        if event.name not in _DELTAS.values():
            return event
        content = event.data["content"]
        known = min(self._repeated[event.name], len(content))
        self._read[event.name] += len(content)
        self._repeated[event.name] -= known
        if known and known == len(content):
            return None
        return event._replace(data={**event.data, "content": content[known:]})
