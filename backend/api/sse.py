"""Server-sent events: the format of one, and the response that sends them."""

import asyncio
from collections.abc import AsyncIterable, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
KEEP_ALIVE_SECONDS = 15.0  # proxies close a connection that was silent for 60 s, some after 30
# A comment line. No blank line follows: at one, httpx-sse after an event with an id and fetch-event-source always hand
# on an empty event (Azure/fetch-event-source issue 15, florimondmanca/httpx-sse issue 35).
KEEP_ALIVE = b": keep-alive\n"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def format_event(data: str, *, event: str | None = None, id: int | None = None) -> bytes:
    """Formats one event; `data` is JSON in one line.

    Half of a surrogate pair, which a model can write into arguments, is sent as JSON's escape of it.
    """
    head = (f"id: {id}\n" if id is not None else "") + (f"event: {event}\n" if event else "")
    return f"{head}data: {data}\n\n".encode(errors="backslashreplace")


class Stream(StreamingResponse):
    """Sends what `content` yields, and ends when its reader leaves.

    Starlette's own class (1.10) reads it in a task group: each reader would hold one, and each that has left would
    leave it to the garbage collector, with all that it had read.
    """

    def __init__(
        self,
        content: AsyncIterable[bytes | str],
        headers: Mapping[str, str] | None = None,
        *,
        media_type: str | None = None,
    ) -> None:
        super().__init__(content, media_type=media_type, headers={**_HEADERS, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop, reading, is_over = asyncio.get_running_loop(), asyncio.timeout(None), False

        def stop_reading(_: object) -> None:
            if not is_over:
                reading.reschedule(loop.time())

        listening = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            async with reading:
                listening.add_done_callback(stop_reading)
                try:
                    await self.stream_response(send)
                finally:
                    is_over = True
        except TimeoutError:
            if not reading.expired():
                raise
        finally:
            listening.cancel()


class EventStream(Stream):
    """Sends events, and `KEEP_ALIVE` whenever nothing was sent for `app.state.keep_alive_seconds`."""

    media_type = MEDIA_TYPE
    _keep_alive_seconds = KEEP_ALIVE_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._keep_alive_seconds = scope["app"].state.keep_alive_seconds
        await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        now = asyncio.get_running_loop().time
        sent_at = now()

        async def send_at(message: Message) -> None:
            nonlocal sent_at
            await send(message)
            sent_at = now()

        async def keep_alive() -> None:
            while True:
                rest = sent_at + self._keep_alive_seconds - now()
                if rest > 0:
                    await asyncio.sleep(rest)
                else:
                    await send_at({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

        keeping_alive = asyncio.create_task(keep_alive())
        try:
            await super().stream_response(send_at)
        finally:
            keeping_alive.cancel()
