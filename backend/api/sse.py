"""Responses that are sent in pieces, and server-sent events: the format of one, and the response that sends them."""

import asyncio
import json
from collections.abc import AsyncIterable, Mapping
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from common.server.connection_owner import cut_off

MEDIA_TYPE = "text/event-stream"
KEEP_ALIVE_SECONDS = 15.0  # proxies close a connection that was silent for 60 s, some after 30
# A comment line. No blank line follows: at one, httpx-sse after an event with an id and fetch-event-source always hand
# on an empty event (Azure/fetch-event-source issue 15, florimondmanca/httpx-sse issue 35).
KEEP_ALIVE = b": keep-alive\n"
# Traefik, Caddy and Node's compression hold a stream back unless it may not be transformed.
STREAM_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


def format_event(data: Any, *, event: str | None = None, id: int | None = None) -> bytes:
    """Formats one event; `data` is a text in one line, or written as JSON.

    Half of a surrogate pair, which a model can write into arguments, is sent as JSON's escape of it.
    """
    head = (f"id: {id}\n" if id is not None else "") + (f"event: {event}\n" if event else "")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {text}\n\n".encode(errors="backslashreplace")


class UserStream(StreamingResponse):
    """Sends its content until its reader leaves, or the sign-in of its request is over: nothing is sent after that.

    The reader then finds the response cut off. Starlette's own class (1.10) reads the content in a task group, which
    cancels what the content awaits at its end, and leaves it to the garbage collector.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state, sign_in = scope["app"].state, scope["state"]["user"].sign_in
        seconds = state.keep_alive_seconds

        async def send_while_signed_in(message: Message) -> None:
            if message["type"] == "http.response.start" or not sign_in.is_over:
                await send(message)

        streaming = asyncio.create_task(self._send_content(send_while_signed_in, seconds))
        leaving = asyncio.create_task(self.listen_for_disconnect(receive))
        ends = [leaving]
        if sign_in.can_end:
            ends.append(asyncio.create_task(sign_in.wait_until_over(state.services.sessions, look_seconds=seconds)))
        for end in ends:
            end.add_done_callback(lambda _: streaming.cancel())
        try:
            await streaming
        except asyncio.CancelledError:
            if not any(end.done() for end in ends):
                raise
        finally:
            for end in ends:
                end.cancel()
        if sign_in.is_over and not leaving.done():
            await self._end_early(scope, send)

    async def _send_content(self, send: Send, keep_alive_seconds: float) -> None:
        await self.stream_response(send)

    async def _end_early(self, scope: Scope, send: Send) -> None:
        """Leaves the response incomplete, so that its reader does not take it for the whole.

        One that reads slowly does not get what is buffered either, which may take it half a minute.
        """
        cut_off(scope)


class EventStream(UserStream):
    """Sends events, and `KEEP_ALIVE` when nothing was sent for `app.state.keep_alive_seconds`."""

    media_type = MEDIA_TYPE

    def __init__(self, content: AsyncIterable[bytes], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, headers={**STREAM_HEADERS, **(headers or {})})

    async def _send_content(self, send: Send, keep_alive_seconds: float) -> None:
        now = asyncio.get_running_loop().time
        sent_at = now()

        async def send_at(message: Message) -> None:
            nonlocal sent_at
            await send(message)
            sent_at = now()

        async def keep_alive() -> None:
            while True:
                rest = sent_at + keep_alive_seconds - now()
                if rest > 0:
                    await asyncio.sleep(rest)
                else:
                    await send_at({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

        keeping_alive = asyncio.create_task(keep_alive())
        try:
            await self.stream_response(send_at)
        finally:
            keeping_alive.cancel()

    async def _end_early(self, scope: Scope, send: Send) -> None:
        """Ends in order: its reader asks for what it lacks, and learns that it has to sign in."""
        await send({"type": "http.response.body", "body": b"", "more_body": False})
