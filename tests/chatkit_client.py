"""A ChatKit client that checks each event by the protocol."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2
from chatkit.types import ThreadStreamEvent
from pydantic import TypeAdapter

from tests.waiting import WAIT_SECONDS
from todo_client import chatkit
from todo_client.chatkit import request, user_input

Json = dict[str, Any]
Order = Literal["asc", "desc"]
EVENT = TypeAdapter[ThreadStreamEvent](ThreadStreamEvent)
JSON = {"Content-Type": "application/json"}
HIDDEN = ("hidden_context_item", "sdk_hidden_context")


@dataclass(frozen=True)
class Page:
    """A page of threads or items; `after` is the cursor of the next one."""

    data: list[Json]
    has_more: bool
    after: str | None


@dataclass
class Answer:
    """The events of one stream, in order."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def thread_id(self) -> str:
        return next(
            event["thread"]["id"] if "thread" in event else event["item"]["thread_id"]
            for event in self.events
            if "thread" in event or "item" in event
        )

    @property
    def items(self) -> list[dict[str, Any]]:
        return [event["item"] for event in self.of("thread.item.done")]

    @property
    def text(self) -> str:
        """The assistant's messages, one per line."""
        return "\n".join(text_of(item) for item in self.items if item["type"] == "assistant_message")

    @property
    def listed(self) -> list[str]:
        """The tasks of the lists in the answer, each with `[x]` or `[ ]` before its title."""
        lists = [item for item in self.items if item["type"] == "widget" and item["widget"]["type"] == "ListView"]
        return [line.removeprefix("- ") for item in lists for line in item["copy_text"].splitlines()]

    @property
    def user_item_id(self) -> str:
        return next(item["id"] for item in self.items if item["type"] == "user_message")

    @property
    def error(self) -> dict[str, Any] | None:
        return next(iter(self.of("error")), None)


def text_of(item: dict[str, Any]) -> str:
    return "".join(part["text"] for part in item["content"])


class ChatKit(chatkit.ChatKit):
    def __init__(self, base_url: str, *, headers: dict[str, str] | None = None, detached: bool = False) -> None:
        super().__init__(base_url, headers=headers, timeout=WAIT_SECONDS)
        self._metadata = {"detached": True} if detached else {}

    async def post(self, kind: str, /, **params: Any) -> httpx2.Response:
        return await self.http.post("/chatkit", json=request(kind, **params))

    async def say(self, text: str, thread_id: str | None = None, **more: Any) -> Answer:
        if thread_id is None:
            return await self.stream("threads.create", input=user_input(text, **more))
        return await self.stream("threads.add_user_message", thread_id=thread_id, input=user_input(text, **more))

    async def stream(self, kind: str, /, **params: Any) -> Answer:
        """Reads the whole answer of a streaming operation, and checks the order of its events."""
        answer = Answer()
        async with self.open(kind, **params) as events:
            async for event in events:
                answer.events.append(event)
        check_sequence(answer.events, created=kind == "threads.create")
        return answer

    @asynccontextmanager
    async def open(
        self, kind: str, /, metadata: dict[str, Any] | None = None, **params: Any
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        async with super().open(kind, {**self._metadata, **(metadata or {})}, **params) as events:
            yield (check_event(event) async for event in events)

    def create_thread(self, text: str) -> chatkit.Events:
        return self.open("threads.create", input=user_input(text))

    def add_user_message(self, thread_id: str, text: str) -> chatkit.Events:
        return self.open("threads.add_user_message", thread_id=thread_id, input=user_input(text))

    def retry_after_item(self, thread_id: str, item_id: str) -> chatkit.Events:
        return self.open("threads.retry_after_item", thread_id=thread_id, item_id=item_id)

    async def get_thread(self, thread_id: str) -> Json:
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

    async def items(self, thread_id: str, *, order: Order = "asc") -> list[Json]:
        return (await self.list_items(thread_id, limit=100, order=order)).data


def _page(answer: Json) -> Page:
    return Page(answer["data"], answer["has_more"], answer.get("after"))


def check_event(event: dict[str, Any]) -> dict[str, Any]:
    """Parses an event as ChatKit's union, and checks that the protocol knows all of its keys."""
    parsed = EVENT.validate_python(event)
    assert not _find_unknown_keys(event, parsed.model_dump(mode="json", by_alias=True)), (
        "a key that the protocol does not know"
    )
    return event


def _find_unknown_keys(received: Any, parsed: Any, path: str = "") -> list[str]:
    unknown: list[str] = []
    if isinstance(received, dict) and isinstance(parsed, dict):
        for key, value in received.items():
            if key not in parsed:
                unknown.append(f"{path}.{key}")
            else:
                unknown += _find_unknown_keys(value, parsed[key], f"{path}.{key}")
    elif isinstance(received, list) and isinstance(parsed, list):
        for index, (value, parsed_value) in enumerate(zip(received, parsed, strict=True)):
            unknown += _find_unknown_keys(value, parsed_value, f"{path}[{index}]")
    return unknown


def check_sequence(events: Sequence[dict[str, Any]], *, created: bool) -> None:
    """Checks what every client may rely on; even an answer that ended with an error leaves no item open.

    A `progress_update` may come before all other events.
    """
    kinds = [event["type"] for event in events if event["type"] != "progress_update"]
    if kinds == ["error"]:
        return
    if created and kinds[1] != "error":
        assert kinds[:3] == ["thread.created", "thread.item.done", "stream_options"]
        assert next(event["item"] for event in events if "item" in event)["type"] == "user_message"
    added: set[str] = set()
    open_items: set[str] = set()
    texts: dict[str, str] = {}
    for event in events:
        item = event.get("item", {})
        assert item.get("type") not in HIDDEN
        assert item.get("id") != "__fake_id__"
        match event["type"]:
            case "thread.item.added":
                assert item["id"] not in added
                added.add(item["id"])
                open_items.add(item["id"])
            case "thread.item.updated":
                assert event["item_id"] in open_items
                if event["update"]["type"] == "assistant_message.content_part.text_delta":
                    texts[event["item_id"]] = texts.get(event["item_id"], "") + event["update"]["delta"]
            case "thread.item.done":
                open_items.discard(item["id"])
                if item["type"] == "assistant_message":
                    assert texts.get(item["id"], "") == text_of(item)
            case "thread.item.removed":
                open_items.discard(event["item_id"])
            case "thread.item.replaced":
                open_items.discard(item["id"])
    assert not open_items, "every item that was opened is closed"
