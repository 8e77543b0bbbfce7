"""The requests of the ChatKit protocol, and the events of its responses.

Threads, items and events are the JSON objects of `chatkit.types`; an `error` event is an event like the others.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from todo_client.connection import Client, Json

Events = AbstractAsyncContextManager[AsyncIterator[Json]]
"""The events of one answer. Leaving the block stops the answer, unless `metadata` says that it is `detached`."""


def user_input(text: str, **more: Any) -> Json:
    """Returns a message; `more` are further fields, such as `quoted_text`."""
    return {"content": [{"type": "input_text", "text": text}], "attachments": [], "inference_options": {}, **more}


def request(kind: str, /, metadata: Json | None = None, **params: Any) -> Json:
    """Returns the body of a POST to `/chatkit`; `metadata` is for the backend only."""
    return {"type": kind, "params": params, **({"metadata": metadata} if metadata else {})}


class ChatKit(Client):
    """Each method raises `ApiError` or `ConnectionLost`."""

    def custom_action(self, thread_id: str, item_id: str, action: Json) -> Events:
        return self.open("threads.custom_action", thread_id=thread_id, item_id=item_id, action=action)

    async def ask(self, kind: str, /, **params: Any) -> Any:
        return await self.request_json("POST", "/chatkit", request(kind, **params))

    @asynccontextmanager
    async def open(
        self, kind: str, /, metadata: Json | None = None, **params: Any
    ) -> AsyncIterator[AsyncIterator[Json]]:
        async with self.open_events("POST", "/chatkit", request(kind, metadata, **params)) as events:
            yield (event.data async for event in events)
