"""What the endpoint was asked, for the tests that script it."""

from dataclasses import asdict, dataclass
from time import time
from typing import Any, Literal

from starlette.datastructures import Headers

from offline_model.protocol import NotJson, parsed

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
    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._requests: list[ReceivedRequest] = []

    def receive(self, raw: bytes, headers: Headers) -> ReceivedRequest:
        if not self._keep:
            return ReceivedRequest(0, None, {}, time())
        shown = {name: _without_secret(name, value) for name, value in headers.items()}
        request = ReceivedRequest(len(self._requests) + 1, _readable(raw), shown, time())
        self._requests.append(request)
        return request

    def clear(self) -> None:
        self._requests.clear()

    def as_list(self) -> list[dict[str, Any]]:
        return [asdict(request) for request in self._requests]


def _readable(raw: bytes) -> Any:
    try:
        return parsed(raw)
    except NotJson:
        return raw.decode(errors="replace")


def _without_secret(name: str, value: str) -> str:
    return value.partition(" ")[0] if name == "authorization" else value
