"""Sends a scripted response, which may be slow, end early or hang, and detects whether the client disconnects."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from starlette.types import Receive, Scope, Send

from tests.scripted_endpoint.request_log import Outcome, ReceivedRequest

_FRAMES_WITHOUT_PAUSE = 32


@dataclass(frozen=True, kw_only=True)
class Delivery:
    frames: Iterable[str]
    charset: str = "utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0
    token_delay: float = 0
    ending: Literal["complete", "abort", "hang"] = "complete"
    hold_after: int | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)
    request: ReceivedRequest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        outcome: Outcome = "aborted"
        sending = asyncio.create_task(self._send(send))
        disconnect = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, disconnect), return_when=asyncio.FIRST_COMPLETED)
            outcome = sending.result() if sending.done() else "client_closed"
        except OSError:
            outcome = "client_closed"
        finally:
            sending.cancel()
            disconnect.cancel()
            self.request.finish(outcome)

    async def _send(self, send: Send) -> Outcome:
        await asyncio.sleep(self.delay)
        headers = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for index, frame in enumerate(self.frames):
            if index == self.hold_after:
                await self.released.wait()
            if index and (self.token_delay or index % _FRAMES_WITHOUT_PAUSE == 0):
                await asyncio.sleep(self.token_delay)  # even of 0, so that other requests are served, too
            await send({"type": "http.response.body", "body": frame.encode(self.charset), "more_body": True})
        if self.ending == "hang":
            await asyncio.Event().wait()
        if self.ending == "abort":
            return "aborted"  # the server closes the connection of a response that was not completed
        await send({"type": "http.response.body", "body": b""})
        return "completed"


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
