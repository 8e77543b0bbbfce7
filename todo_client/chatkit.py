"""The requests of the ChatKit protocol, and the events of its responses.

Threads, items and events are the JSON objects of `chatkit.types`; an `error` event is an event like the others.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx2

from todo_client.connection import Client, connected, read_events

Json = dict[str, Any]
Events = AbstractAsyncContextManager[AsyncIterator[Json]]
"""The events of one answer.

Leaving the block closes the connection, which stops the answer, unless the client is detached.
"""
Order = Literal["asc", "desc"]


@dataclass(frozen=True)
class Page:
    """Threads or items; `after` is where the next page begins."""

    data: list[Json]
    has_more: bool
    after: str | None


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

    def create_thread(self, text: str) -> Events:
        return self.open("threads.create", input=user_input(text))

    def add_user_message(self, thread_id: str, text: str) -> Events:
        return self.open("threads.add_user_message", thread_id=thread_id, input=user_input(text))

    def retry_after_item(self, thread_id: str, item_id: str) -> Events:
        """Answers a message of the user again."""
        return self.open("threads.retry_after_item", thread_id=thread_id, item_id=item_id)

    def custom_action(self, thread_id: str, item_id: str, action: Json) -> Events:
        """Sends the action of a widget's element."""
        return self.open("threads.custom_action", thread_id=thread_id, item_id=item_id, action=action)

    async def sync_custom_action(self, thread_id: str, item_id: str, action: Json) -> Json | None:
        """Does the same without a stream; returns the item if it has changed."""
        done = await self.ask("threads.sync_custom_action", thread_id=thread_id, item_id=item_id, action=action)
        return done.get("updated_item")

    async def get_thread(self, thread_id: str) -> Json:
        """Returns a thread with its newest items."""
        return await self.ask("threads.get_by_id", thread_id=thread_id)

    async def list_threads(self, *, limit: int = 20, order: Order = "desc", after: str | None = None) -> Page:
        return _page(await self.ask("threads.list", limit=limit, order=order, after=after))

    async def list_items(
        self, thread_id: str, *, limit: int = 20, order: Order = "desc", after: str | None = None
    ) -> Page:
        return _page(await self.ask("items.list", thread_id=thread_id, limit=limit, order=order, after=after))

    async def update_thread(self, thread_id: str, title: str) -> Json:
        return await self.ask("threads.update", thread_id=thread_id, title=title)

    async def delete_thread(self, thread_id: str) -> None:
        await self.ask("threads.delete", thread_id=thread_id)

    async def feedback(self, thread_id: str, item_ids: list[str], kind: Literal["positive", "negative"]) -> None:
        await self.ask("items.feedback", thread_id=thread_id, item_ids=item_ids, kind=kind)

    async def ask(self, kind: str, /, **params: Any) -> Any:
        """Returns the JSON of an operation that does not stream."""
        async with self._send(kind, params, "application/json") as response:
            with connected():
                return json.loads(await response.aread())

    @asynccontextmanager
    async def open(
        self, kind: str, /, metadata: Json | None = None, **params: Any
    ) -> AsyncIterator[AsyncIterator[Json]]:
        """Opens the events of an operation that streams."""
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


def _page(answer: Json) -> Page:
    return Page(answer["data"], answer["has_more"], answer.get("after"))
