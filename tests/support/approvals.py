"""How a user decides an approval: in ChatKit's card, at the run API, and in the AI SDK's messages."""

import asyncio
import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from tests.support.users import User
from todo_client.sse import EventParser

Json = dict[str, Any]


@dataclass(frozen=True)
class Waiting:
    """A run that waits for one approval, in a conversation of its own."""

    chat: str
    run: str
    approval: str


class Api(Protocol):
    """One way to say something and to decide."""

    @abstractmethod
    async def say(self, user: User, chat: str | None, text: str) -> str:
        """Says something, reads until the answer ends or waits, and returns the chat's id."""
        ...

    @abstractmethod
    async def decide(self, user: User, waiting: Waiting, *, approved: bool, reason: str | None) -> None: ...


class RunApi:
    async def say(self, user: User, chat: str | None, text: str) -> str:
        chat = chat or f"chat-{user.name}"
        async with user.runs.interact(chat, text) as events:
            async for event in events:
                if event.name in ("approval_required", "interaction_complete"):
                    break
        return chat

    async def decide(self, user: User, waiting: Waiting, *, approved: bool, reason: str | None) -> None:
        place = (waiting.chat, waiting.run, waiting.approval)
        await user.runs.approve(*place, approved=approved, reason=reason)


class ChatKitApi:
    async def say(self, user: User, chat: str | None, text: str) -> str:
        return (await user.chatkit.say(text, chat)).thread_id

    async def decide(self, user: User, waiting: Waiting, *, approved: bool, reason: str | None) -> None:
        items = await user.chatkit.items(waiting.chat)
        [card] = [item for item in items if item["type"] == "widget" and item["widget"].get("confirm")]
        action = card["widget"]["confirm" if approved else "cancel"]["action"]
        payload = {**action["payload"], **({"reason": reason} if reason else {})}
        clicked = {"type": action["type"], "payload": payload}
        params = {"thread_id": waiting.chat, "item_id": card["id"], "action": clicked}
        await user.chatkit.stream("threads.custom_action", **params)


class AiSdkApi:
    async def say(self, user: User, chat: str | None, text: str) -> str:
        chat = chat or f"chat-{user.name}"
        await self._send(user, chat, {"role": "user", "parts": [{"type": "text", "text": text}]})
        return chat

    async def decide(self, user: User, waiting: Waiting, *, approved: bool, reason: str | None) -> None:
        approval = {"id": waiting.approval, "approved": approved, **({"reason": reason} if reason else {})}
        part = {"type": "dynamic-tool", "state": "approval-responded", "approval": approval}
        await self._send(user, waiting.chat, {"role": "assistant", "id": waiting.run, "parts": [part]})

    async def _send(self, user: User, chat: str, message: Json) -> list[Json]:
        """The chunks of the answer."""
        parser, chunks = EventParser(), list[Json]()
        body = {"threadId": chat, "messages": [message]}
        async with user.runs.http.stream("POST", "/chat/stream", json=body) as response:
            assert response.status_code == 200, (await response.aread()).decode()
            async for piece in response.aiter_bytes():
                chunks += [json.loads(one.data) for one in parser.feed(piece) if one.data != "[DONE]"]
        return chunks


APIS: dict[str, Api] = {"chatkit": ChatKitApi(), "run_api": RunApi(), "ai_sdk": AiSdkApi()}


async def waiting_of(user: User, chat: str) -> Waiting:
    """The approval that the newest run of the chat waits for: a sub-agent's is shown a moment before the run waits."""
    run = (await user.runs.get_chats())["chats"][0]["leaf"]
    async with asyncio.timeout(10):
        while (interaction := await user.runs.get_interaction(chat, run))["status"] == "RUNNING":
            await asyncio.sleep(0.05)
    assert interaction["status"] == "WAITING_APPROVAL", interaction["status"]
    [approval] = [one for one in interaction["approvals"] if one["approved"] is None]
    return Waiting(chat, run, approval["approval_id"])
