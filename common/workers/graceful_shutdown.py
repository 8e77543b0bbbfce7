"""How a process that is asked to end leaves: it says so at /ready, and goes on until what it has begun is done.

Who distributes requests looks there, and sends the next ones elsewhere.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send

_NOTICED_SECONDS = 3.0  # who asks every two seconds, and once more where the answer is another, has noticed by then
_BODY = json.dumps({"status": "not ready", "reason": "The service is shutting down and finishes its running work."})


class Leaving:
    """An application, and how long it may go on in a process that is asked to end; with 0 seconds not at all."""

    def __init__(self, app: Any, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._seconds = seconds
        self._clock = clock
        self._since: float | None = None

    def begin(self) -> bool:
        """Whether it may go on."""
        if self._seconds and self._since is None:
            self._since = self._clock()
        return self._since is not None

    def is_over(self, *, busy: bool) -> bool:
        """Whether a process that had begun to leave is to end now."""
        if self._since is None:
            return False
        took = self._clock() - self._since
        return took >= (self._seconds if busy else min(_NOTICED_SECONDS, self._seconds))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._since is None or scope["type"] != "http" or scope["path"] != "/ready":
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": _BODY.encode()})
