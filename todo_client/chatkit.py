"""The requests of the ChatKit protocol, and the events of its responses.

Threads, items and events are the JSON objects of `chatkit.types`; an `error` event is an event like the others.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2

from todo_client.connection import Client, connected, read_events

Json = dict[str, Any]
Events = AbstractAsyncContextManager[AsyncIterator[Json]]
"""The events of one answer.

Leaving the block closes the connection, which stops the answer, unless the client is detached.
"""


def user_input(text: str, **more: Any) -> Json:
    """Returns a message; `more` are further fields, such as `quoted_text`."""
    return {"content": [{"type": "input_text", "text": text}], "attachments": [], "inference_options": {}, **more}


def request(kind: str, /, metadata: Json | None = None, **params: Any) -> Json:
    """Returns the body of a POST to `/chatkit`; `metadata` is for the backend only."""
    return {"type": kind, "params": params, **({"metadata": metadata} if metadata else {})}


class ChatKit(Client):
    """Each method raises `ApiError` or `ConnectionLost`. Answers of a `detached` client go on without readers."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120,
        detached: bool = False,
        over: Client | None = None,
    ) -> None:
        super().__init__(base_url, token=token, headers=headers, timeout=timeout, over=over)
        self._detached = detached

    def custom_action(self, thread_id: str, item_id: str, action: Json) -> Events:
        return self.open("threads.custom_action", thread_id=thread_id, item_id=item_id, action=action)

    async def ask(self, kind: str, /, **params: Any) -> Any:
        async with self._send(kind, params, "application/json") as response:
            with connected():
                return json.loads(await response.aread())

    @asynccontextmanager
    async def open(
        self, kind: str, /, metadata: Json | None = None, **params: Any
    ) -> AsyncIterator[AsyncIterator[Json]]:
        async with self._send(kind, params, "text/event-stream", metadata) as response:
            yield _events(response)

    def _send(
        self, kind: str, params: Json, media_type: str, metadata: Json | None = None
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        sent = {**(metadata or {}), **({"detached": True} if self._detached else {})}
        return self.open_response("POST", "/chatkit", request(kind, sent, **params), media_type=media_type)


async def _events(response: httpx2.Response) -> AsyncIterator[Json]:
    with connected():
        async for event in read_events(response):
            yield json.loads(event.data)
