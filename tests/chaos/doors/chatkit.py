"""A conversation as ChatKit's widget has it: what is not acknowledged when the connection breaks is looked for."""

import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.chaos.patience import NotDone
from tests.chaos.record import Record
from tests.chatkit_client import ChatKit, text_of
from todo_client.connection import ApiError, ConnectionLost

Json = dict[str, Any]
Opening = AbstractAsyncContextManager[AsyncIterator[Json]]
DECIDED = "decided already"


class ChatKitDoor:
    """Each request once; raises `ConnectionLost`, `ApiError` and `NotDone`."""

    def __init__(self, chat: ChatKit, record: Record, chance: random.Random) -> None:
        self._chat = chat
        self._record = record
        self._chance = chance

    async def begin(self, text: str) -> str | None:
        """The id of a new conversation, as soon as it is acknowledged."""
        found: list[str] = []
        try:
            await self._read(self._chat.create_thread(text), text, found)
        except (ConnectionLost, NotDone):
            if not found:
                raise
        return found[0]

    async def say(self, thread: str, text: str) -> None:
        await self._read(self._chat.add_user_message(thread, text), text)

    async def answer_again(self, thread: str, text: str) -> None:
        await self._read(self._chat.retry_after_item(thread, await self._message(thread, text)), text)

    async def edit(self, thread: str, text: str, new_text: str) -> None:
        payload = {"item_id": await self._message(thread, text), "text": new_text}
        edit = {"type": "edit_message", "payload": payload}
        await self._read(self._chat.open("threads.custom_action", thread_id=thread, action=edit), new_text)

    async def decide(self, thread: str, approval_id: str, *, approved: bool) -> None:
        """By a click in its card; what was decided already is `ApiError`."""
        [card] = [item for item in await self._newest(thread) if _asks(item, approval_id)] or [None]
        if card is None:  # its widget does not ask any more
            raise ApiError(400, DECIDED)
        action = card["widget"]["confirm" if approved else "cancel"]["action"]
        stream = self._chat.custom_action(thread, card["id"], {"type": action["type"], "payload": action["payload"]})
        acknowledged = False
        try:
            async with stream as events:
                async for event in events:
                    if event["type"] == "error" and not acknowledged:
                        raise ApiError(400 if DECIDED in event["message"] else 503, event["message"])
                    acknowledged = acknowledged or event["type"] == "thread.item.replaced"
        except ConnectionLost:
            if not acknowledged:
                raise

    async def _message(self, thread: str, text: str) -> str:
        """The id of the message that says so."""
        said = [item for item in await self._newest(thread) if item["type"] == "user_message" and text_of(item) == text]
        assert said, f"{text!r} is not in {thread}"
        return said[0]["id"]

    async def _newest(self, thread: str) -> list[Json]:
        return (await self._chat.list_items(thread, limit=100, order="desc")).data

    async def _read(self, stream: Opening, text: str, began: list[str] | None = None) -> None:
        """What a stream says; it is left to break off now and then, which is ChatKit's way to say stop."""
        shown: dict[str, str] = {}
        error: str | None = None
        leave_after = self._chance.randrange(1, 30) if self._chance.random() < 0.05 else None
        async with stream as events:
            number = 0
            async for event in events:
                number += 1
                self._take(event, text, shown, began)
                if event["type"] == "error":
                    error = event["message"]
                if number == leave_after:
                    raise ConnectionLost
        if error is not None:
            raise ApiError(409, error) if "still answering" in error else NotDone(error)
        self._record.shown |= shown

    def _take(self, event: Json, text: str, shown: dict[str, str], began: list[str] | None) -> None:
        match event:
            case {"type": "thread.created", "thread": {"id": id}} if began is not None:
                began.append(id)
            case {"type": "thread.item.done", "item": {"type": "user_message"} as item}:
                if text_of(item) == text:
                    self._record.messages[item["id"]] = text
            case {"type": "thread.item.done", "item": {"type": "assistant_message"} as item}:
                shown[item["id"]] = text_of(item)
            case _:
                pass


def _asks(item: Json, approval_id: str) -> bool:
    confirm = item.get("widget", {}).get("confirm")
    return confirm is not None and confirm["action"]["payload"]["approval_id"] == approval_id
