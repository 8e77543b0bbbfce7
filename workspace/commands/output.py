"""Keeps and shortens the output of a command."""

import codecs

_HALF_BYTES = 100_000


class Output:
    """Keeps the first and the last 100,000 bytes, and counts the rest."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self.bytes = 0

    @property
    def truncated(self) -> bool:
        return self.bytes > 2 * _HALF_BYTES

    def add(self, data: bytes) -> None:
        self.bytes += len(data)
        room = _HALF_BYTES - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > 4 * _HALF_BYTES:  # seldom, because it copies the rest
            del self._last[:-_HALF_BYTES]

    def text(self) -> str:
        if not self.truncated:
            return _decode(bytes(self._first + self._last))
        last = bytes(self._last[-_HALF_BYTES:])
        left_out = self.bytes - 2 * _HALF_BYTES
        return f"{_decode(bytes(self._first))}\n[… {left_out:,} bytes left out …]\n{_decode(last)}"


def _decode(data: bytes) -> str:
    """Omits cut characters at both ends. Invalid bytes become one character each, so that nothing grows."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:])
    return text.replace("\N{REPLACEMENT CHARACTER}", "?").replace("\0", "?")  # PostgreSQL stores no NUL


def shorten(text: str, most_bytes: int, most_lines: int) -> str:
    lines = text.rstrip("\n").split("\n")
    data = "\n".join(lines[-most_lines:]).encode()
    if len(lines) <= most_lines and len(data) <= most_bytes:
        return data.decode()
    if len(data) > most_bytes:
        data = data[-most_bytes:]
        data = data[data.find(b"\n") + 1 :]
    end = _decode(data)
    return f"[the beginning was left out; these are the last {end.count(chr(10)) + 1:,} lines]\n{end}"
