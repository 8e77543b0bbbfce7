"""Messages that are typed while an answer runs: it is followed by an answer to them, or reads them itself."""

import asyncio
from contextlib import suppress

from cli.chat.answer import Answer
from cli.chat.connection import Connection
from todo_client.connection import ApiError, ConnectionLost

_CONFLICT = 409


class MessageQueue:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._follow_ups: dict[str, str] = {}
        self._steering: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._follow_ups)

    async def add(self, answer: Answer, following: "asyncio.Task[None]", text: str) -> bool:
        """Sends a follow-up; if the answer has just ended, returns False once all of it is shown."""
        await answer.has_begun.wait()
        reading = answer.reading
        if reading.run_id is not None and not answer.status:
            try:
                sent = await self._connection.runs.send(reading.chat_id, reading.run_id, text, mode="follow_up")
            except ApiError as error:
                if error.status != _CONFLICT:
                    raise
            else:
                self._follow_ups[sent["input_id"]] = text
                return True
        await asyncio.wait({following})
        return False

    async def steer(self, chat_id: str, run_id: str) -> None:
        for message_id in [*self._follow_ups]:
            try:
                await self._connection.runs.steer(chat_id, run_id, message_id)
            except ApiError as error:  # a message that was read already
                if error.status != _CONFLICT:
                    raise
            self._steering[message_id] = self._follow_ups.pop(message_id, "")

    def take(self) -> dict[str, str]:
        taken = self._follow_ups | self._steering
        self._follow_ups, self._steering = {}, {}
        return taken

    async def find_unread(self, chat_id: str, queued: dict[str, str]) -> str:
        """Returns the texts of queued messages that no model has read, so that they get no answer."""
        if not queued:
            return ""
        with suppress(ApiError, ConnectionLost):
            chat = await self._connection.runs.get_chat(chat_id, limit=0)
            unread = {message["input_id"] for message in chat["unread"]}
            return "\n".join(text for message_id, text in queued.items() if message_id in unread)
        return "\n".join(queued.values())
