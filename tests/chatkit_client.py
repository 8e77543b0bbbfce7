"""A ChatKit client that checks the protocol on everything it receives."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from chatkit.types import ThreadStreamEvent
from pydantic import TypeAdapter

EVENT = TypeAdapter[ThreadStreamEvent](ThreadStreamEvent)
HIDDEN = ("hidden_context_item", "sdk_hidden_context")


def user_input(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "input_text", "text": text}], "attachments": [], "inference_options": {}, **more}


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
        """The assistant's messages, one after the other."""
        return "\n".join(text_of(item) for item in self.items if item["type"] == "assistant_message")

    @property
    def listed(self) -> list[str]:
        """The tasks in the list that is shown, if one is; each with `[x]` or `[ ]` before its title."""
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


class ChatKit:
    """One client of one backend."""

    def __init__(self, base_url: str, *, headers: dict[str, str] | None = None) -> None:
        self.base_url = base_url
        self.http = httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=30, trust_env=False, verify=False)

    async def __aenter__(self) -> "ChatKit":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def post(self, kind: str, /, **params: Any) -> httpx2.Response:
        return await self.http.post("/chatkit", json={"type": kind, "params": params})

    async def ask(self, kind: str, /, **params: Any) -> Any:
        """The JSON of an operation that does not stream."""
        response = await self.post(kind, **params)
        assert response.status_code == 200, response.text
        return response.json()

    async def say(self, text: str, thread_id: str | None = None, **more: Any) -> Answer:
        if thread_id is None:
            return await self.stream("threads.create", input=user_input(text, **more))
        return await self.stream("threads.add_user_message", thread_id=thread_id, input=user_input(text, **more))

    async def stream(self, kind: str, /, **params: Any) -> Answer:
        """The whole answer of a streaming operation, held to the protocol."""
        answer = Answer()
        async with self.open(kind, **params) as events:
            async for event in events:
                answer.events.append(event)
        check_sequence(answer.events, created=kind == "threads.create")
        return answer

    @asynccontextmanager
    async def open(self, kind: str, /, **params: Any) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The events as they come; leaving the block closes the connection."""
        body = {"type": kind, "params": params}
        async with self.http.stream("POST", "/chatkit", json=body) as response:
            assert response.status_code == 200, (await response.aread()).decode()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield _events(response)

    async def items(self, thread_id: str, *, limit: int = 100, order: str = "asc") -> list[dict[str, Any]]:
        return (await self.ask("items.list", thread_id=thread_id, limit=limit, order=order))["data"]


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    buffer = ""
    async for text in response.aiter_text():
        buffer += text
        *frames, buffer = buffer.split("\n\n")
        for frame in frames:
            yield check_frame(frame)
    assert buffer == "", "the stream ends with a whole frame"


def check_frame(frame: str) -> dict[str, Any]:
    """The event of one SSE frame: it parses as ChatKit's union and loses no key on the way."""
    assert frame.startswith("data: ")
    assert "\n" not in frame
    event = json.loads(frame.removeprefix("data: "))
    parsed = EVENT.validate_python(event)
    assert not _lost(event, parsed.model_dump(mode="json", by_alias=True)), "a key that the protocol does not know"
    return event


def _lost(given: Any, kept: Any, path: str = "") -> list[str]:
    if isinstance(given, dict) and isinstance(kept, dict):
        missing = [f"{path}.{key}" for key in given if key not in kept]
        return missing + [
            lost for key in given if key in kept for lost in _lost(given[key], kept[key], f"{path}.{key}")
        ]
    if isinstance(given, list) and isinstance(kept, list):
        return [
            lost
            for index, (a, b) in enumerate(zip(given, kept, strict=True))
            for lost in _lost(a, b, f"{path}[{index}]")
        ]
    return []


def check_sequence(events: Sequence[dict[str, Any]], *, created: bool) -> None:
    """The rules every client may rely on; an answer that ended in an error may leave no item open either."""
    kinds = [event["type"] for event in events]
    if kinds == ["error"]:
        return
    if created and kinds[1] != "error":
        assert kinds[:3] == ["thread.created", "thread.item.done", "stream_options"]
        assert events[1]["item"]["type"] == "user_message"
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
