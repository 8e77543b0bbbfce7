import json
from dataclasses import asdict, dataclass
from time import time
from typing import Any, Literal

from starlette.datastructures import Headers

Outcome = Literal["open", "completed", "client_closed", "aborted"]


@dataclass
class ReceivedRequest:
    """Times are seconds since the epoch."""

    n: int
    body: Any
    headers: dict[str, str]
    received_at: float
    finished_at: float | None = None
    outcome: Outcome = "open"

    def finish(self, outcome: Outcome) -> None:
        self.finished_at = time()
        self.outcome = outcome


class RequestLog:
    def __init__(self) -> None:
        self._requests: list[ReceivedRequest] = []

    def receive(self, raw: bytes, headers: Headers) -> ReceivedRequest:
        shown = {name: _hide_secret(name, value) for name, value in headers.items()}
        request = ReceivedRequest(len(self._requests) + 1, _parse_body(raw), shown, time())
        self._requests.append(request)
        return request

    def clear(self) -> None:
        self._requests.clear()

    def as_list(self) -> list[dict[str, Any]]:
        return [asdict(request) for request in self._requests]


def _parse_body(raw: bytes) -> Any:
    """Returns the text of a body that is not valid JSON."""
    try:
        value = json.loads(raw)
        json.dumps(value, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")
    return value


def _hide_secret(name: str, value: str) -> str:
    return value.partition(" ")[0] if name == "authorization" else value
