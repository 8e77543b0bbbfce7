"""Requests of a simulated user through ChatKit. They have no idempotency key: the caller looks what was stored."""

import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.chaos.client_record import ClientRecord
from tests.chatkit_client import ChatKit, text_of
from todo_client.connection import ApiError, ConnectionLost

Json = dict[str, Any]
DECIDED = "decided already"


class RunIncomplete(Exception):
    """A run answered why it did not complete its work."""


class RecordingChatKit:
    """Sends each request once, and records what the stream acknowledged.

    The methods raise `ConnectionLost`, `ApiError` and `RunIncomplete`.
    """

    def __init__(self, chat: ChatKit, record: ClientRecord, rng: random.Random) -> None:
        self._chat = chat
        self._record = record
        self._rng = rng

    async def create_thread(self, text: str) -> str:
        """Returns the id of the thread if it was acknowledged, even if the connection broke later."""
        thread_ids: list[str] = []
        try:
            await self._read(self._chat.create_thread(text), text, thread_ids)
        except (ConnectionLost, RunIncomplete):
            if not thread_ids:
                raise
        return thread_ids[0]

    async def add_message(self, thread_id: str, text: str) -> None:
        await self._read(self._chat.add_user_message(thread_id, text), text)

    async def retry(self, thread_id: str, text: str) -> None:
        await self._read(self._chat.retry_after_item(thread_id, await self._find_message(thread_id, text)), text)

    async def edit(self, thread_id: str, text: str, new_text: str) -> None:
        payload = {"item_id": await self._find_message(thread_id, text), "text": new_text}
        action = {"type": "edit_message", "payload": payload}
        await self._read(self._chat.open("threads.custom_action", thread_id=thread_id, action=action), new_text)

    async def decide(self, thread_id: str, approval_id: str, *, approved: bool) -> None:
        """Clicks a button of the approval's card; raises ApiError if the approval was decided before."""
        card = next((item for item in await self._list_newest(thread_id) if _requests(item, approval_id)), None)
        if card is None:  # its widget has no buttons any more
            raise ApiError(400, DECIDED)
        action = card["widget"]["confirm" if approved else "cancel"]["action"]
        stream = self._chat.custom_action(thread_id, card["id"], {"type": action["type"], "payload": action["payload"]})
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

    async def _find_message(self, thread_id: str, text: str) -> str:
        for item in await self._list_newest(thread_id):
            if item["type"] == "user_message" and text_of(item) == text:
                return item["id"]
        raise AssertionError(f"{text!r} is not in {thread_id}")

    async def _list_newest(self, thread_id: str) -> list[Json]:
        return await self._chat.items(thread_id, order="desc")

    async def _read(
        self,
        stream: AbstractAsyncContextManager[AsyncIterator[Json]],
        text: str,
        thread_ids: list[str] | None = None,
    ) -> None:
        """Reads a stream, and sometimes closes it early, which stops the run in ChatKit.

        The id of a new thread is appended to `thread_ids`.
        """
        answers: dict[str, str] = {}
        error: str | None = None
        close_after = self._rng.randrange(1, 30) if self._rng.random() < 0.05 else None
        async with stream as events:
            number = 0
            async for event in events:
                number += 1
                self._take(event, text, answers, thread_ids)
                if event["type"] == "error":
                    error = event["message"]
                if number == close_after:
                    raise ConnectionLost
        if error is not None:
            raise ApiError(409, error) if "still answering" in error else RunIncomplete(error)
        self._record.chatkit_answers |= answers

    def _take(self, event: Json, text: str, answers: dict[str, str], thread_ids: list[str] | None) -> None:
        match event:
            case {"type": "thread.created", "thread": {"id": id}} if thread_ids is not None:
                thread_ids.append(id)
            case {"type": "thread.item.done", "item": {"type": "user_message"} as item}:
                if text_of(item) == text:
                    self._record.messages[item["id"]] = text
            case {"type": "thread.item.done", "item": {"type": "assistant_message"} as item}:
                answers[item["id"]] = text_of(item)
            case _:
                pass


def _requests(item: Json, approval_id: str) -> bool:
    """Returns whether an item is the card of an open approval."""
    confirm = item.get("widget", {}).get("confirm")
    return confirm is not None and confirm["action"]["payload"]["approval_id"] == approval_id
