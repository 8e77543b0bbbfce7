"""What is said while an answer runs: it is answered afterwards, or read before the model is asked again."""

import asyncio

from cli.chat.answer import Answer
from cli.chat.connection import Connection
from client.connection import Refused

_NOT_NOW = 409


class Queue:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: list[tuple[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def add(self, answer: Answer, following: "asyncio.Future[None]", text: str) -> bool:
        """Let an answer be followed by one to this; False where it has just ended, once all of it is told."""
        await answer.begun.wait()
        if answer.reading.run_id is not None and not answer.status:
            try:
                await self.send(answer.reading.chat_id, answer.reading.run_id, text)
            except Refused as refusal:
                if refusal.status != _NOT_NOW:
                    raise
            else:
                return True
        await asyncio.wait({following})
        return False

    async def send(self, chat_id: str, run_id: str, text: str) -> None:
        sent = await self._connection.runs.send(chat_id, run_id, text, mode="follow_up")
        self._waiting.append((sent["input_id"], text))

    async def send_now(self, chat_id: str) -> None:
        """Have what waits read before the model is asked again."""
        waiting, self._waiting = self._waiting, []
        thread = await self._connection.thread(chat_id)
        for input_id, _ in waiting:
            action = {"type": "send_input_now", "payload": {"input_id": input_id}}
            asked = {"thread_id": thread, "item_id": None, "action": action}
            async with self._connection.chatkit.open("threads.custom_action", **asked) as events:
                async for event in events:
                    if event["type"] == "error":
                        raise Refused(_NOT_NOW, event["message"])

    def give_back(self) -> str:
        """What nobody answers any more."""
        waiting, self._waiting = self._waiting, []
        return "\n".join(text for _, text in waiting)
