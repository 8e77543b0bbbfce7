"""What is said while an answer runs: it is answered afterwards, or read before the model is asked again."""

import asyncio
from contextlib import suppress

from cli.chat.answer import Answer
from cli.chat.connection import Connection
from todo_client.connection import ApiError, ConnectionLost

Input = tuple[str, str]
"""The id of a message, and its text."""
_NOT_NOW = 409


class Queue:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: list[Input] = []
        self._hurried: list[Input] = []  # that are read before the model is asked again

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def add(self, answer: Answer, following: "asyncio.Future[None]", text: str) -> bool:
        """Let an answer be followed by one to this; False where it has just ended, once all of it is told."""
        await answer.begun.wait()
        if answer.reading.run_id is not None and not answer.status:
            try:
                await self.send(answer.reading.chat_id, answer.reading.run_id, text)
            except ApiError as refusal:
                if refusal.status != _NOT_NOW:
                    raise
            else:
                return True
        await asyncio.wait({following})
        return False

    async def send(self, chat_id: str, run_id: str, text: str) -> None:
        sent = await self._connection.runs.send(chat_id, run_id, text, mode="follow_up")
        self._waiting.append((sent["input_id"], text))

    async def send_now(self, chat_id: str, run_id: str) -> None:
        """Have what waits read before the model is asked again; what was read already is left at that."""
        while self._waiting:
            try:
                await self._connection.runs.steer(chat_id, run_id, self._waiting[0][0])
            except ApiError as refusal:
                if refusal.status != _NOT_NOW:
                    raise
            self._hurried += self._waiting[:1]
            del self._waiting[:1]

    def take(self) -> list[Input]:
        """What was said, and may not have been read; it is nothing that waits any more."""
        taken = [*self._waiting, *self._hurried]
        self._waiting, self._hurried = [], []
        return taken

    async def unread(self, chat_id: str, queued: list[Input]) -> str:
        """Of what was queued that which nobody answers any more: what was read stands in the conversation."""
        if not queued:
            return ""
        read = set[str]()
        with suppress(ApiError, ConnectionLost):
            items = await self._connection.chatkit.list_items(await self._connection.thread(chat_id), limit=100)
            read = {item["id"] for item in items.data}
        return "\n".join(text for input_id, text in queued if input_id not in read)
