"""Server-sent events out of bytes that may be cut anywhere.

httpx2 has a reader of its own, which takes nearly twice as long for an event and drops one that was cut off at the end.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Event(NamedTuple):
    """`id` is empty where the server sent none."""

    id: str
    name: str
    data: str


class Frames:
    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[str]:
        """The data of each event that this piece ends, its lines joined; comments and other fields are skipped."""
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" ").removesuffix(b"\r"))
            elif line in (b"", b"\r") and self._data:
                data, self._data = self._data, []
                yield b"\n".join(data).decode()

    @property
    def cut_off(self) -> bool:
        """Whether the bytes so far end within an event."""
        return bool(self._line or self._data)


class NamedFrames:
    """The same of events that have a name, and an id to go on from."""

    def __init__(self) -> None:
        self._line = b""
        self._fields: dict[str, str] = {}

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Each event that this piece ends; comments are skipped."""
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            if line:
                name, _, value = line.decode().partition(":")
                self._fields[name] = value.removeprefix(" ")
            elif (fields := self._fields) and "data" in fields:
                self._fields = {}
                yield Event(fields.get("id", ""), fields.get("event", "message"), fields["data"])
            else:
                self._fields = {}
