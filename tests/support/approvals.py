"""Decides approvals through ChatKit, the run API and the AI SDK's messages."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from tests.chatkit_client import Answer
from tests.scripted_model import ScriptedModel
from tests.support.cards import send_action
from tests.support.script import add_task, says
from tests.support.users import User
from tests.waiting import until
from todo_client.runs import Runs

Json = dict[str, Any]


@dataclass(frozen=True)
class PendingApproval:
    """The approval that a run waits for."""

    chat: str
    run: str
    approval: str


class HasRuns(Protocol):
    @property
    def runs(self) -> Runs: ...


def list_open_cards(items: list[Json]) -> list[Json]:
    """Returns the widgets with buttons to decide an approval."""
    return [item for item in items if item["type"] == "widget" and item["widget"].get("confirm")]


async def decide_card(user: User, card: Json, *, approve: bool, reason: str | None = None) -> Answer:
    action = card["widget"]["confirm" if approve else "cancel"]["action"]
    payload = {**action["payload"], **({"reason": reason} if reason else {})}
    return await send_action(user.chatkit, card, {"type": action["type"], "payload": payload})


class Api(Protocol):
    @abstractmethod
    async def say(self, user: User, chat: str | None, text: str) -> str:
        """Sends a message, reads until the answer ends or waits for an approval, and returns the chat's id."""
        ...

    @abstractmethod
    async def decide(self, user: User, pending: PendingApproval, *, approved: bool, reason: str | None) -> None: ...


class RunApi:
    async def say(self, user: User, chat: str | None, text: str) -> str:
        chat = chat or f"chat-{user.name}"
        async with user.runs.interact(chat, text) as events:
            async for event in events:
                if event.name in ("approval_required", "interaction_complete"):
                    break
        return chat

    async def decide(self, user: User, pending: PendingApproval, *, approved: bool, reason: str | None) -> None:
        await user.runs.approve(pending.chat, pending.run, pending.approval, approved=approved, reason=reason)


class ChatKitApi:
    async def say(self, user: User, chat: str | None, text: str) -> str:
        return (await user.chatkit.say(text, chat)).thread_id

    async def decide(self, user: User, pending: PendingApproval, *, approved: bool, reason: str | None) -> None:
        [card] = list_open_cards(await user.chatkit.items(pending.chat))
        await decide_card(user, card, approve=approved, reason=reason)


class AiSdkApi:
    async def say(self, user: User, chat: str | None, text: str) -> str:
        chat = chat or f"chat-{user.name}"
        await self._send(user, chat, {"role": "user", "parts": [{"type": "text", "text": text}]})
        return chat

    async def decide(self, user: User, pending: PendingApproval, *, approved: bool, reason: str | None) -> None:
        approval = {"id": pending.approval, "approved": approved, **({"reason": reason} if reason else {})}
        part = {"type": "dynamic-tool", "state": "approval-responded", "approval": approval}
        await self._send(user, pending.chat, {"role": "assistant", "id": pending.run, "parts": [part]})

    async def _send(self, user: User, chat: str, message: Json) -> None:
        body = {"threadId": chat, "messages": [message]}
        response = await user.runs.http.post("/chat/stream", json=body)
        assert response.status_code == 200, response.text


APIS: dict[str, Api] = {"chatkit": ChatKitApi(), "run_api": RunApi(), "ai_sdk": AiSdkApi()}


async def wait_for_approval(user: User, chat: str) -> PendingApproval:
    """Returns the open approval of the newest run."""
    run = await newest_run(user, chat)
    assert run["status"] == "WAITING_APPROVAL", run["status"]
    [approval] = pending(run)
    return PendingApproval(chat, run["id"], approval["approval_id"])


async def newest_run(person: HasRuns, chat: str) -> Json:
    """Returns the newest run when it has ended or waits: an approval is shown a moment before the run waits."""

    async def settled() -> Json | None:
        run = (await person.runs.get_chat(chat))["interactions"][-1]
        asks = run["status"] == "WAITING_APPROVAL" and pending(run)
        return run if asks or run["status"] in ("COMPLETED", "FAILED", "CANCELLED") else None

    return await until(settled)


def pending(run: Json) -> list[Json]:
    return [approval for approval in run["approvals"] if approval["approved"] is None]


async def decide(person: HasRuns, chat: str, approval: Json, *, approved: bool = True, **more: Any) -> Json:
    """Returns the run when it has ended or waits for another decision."""
    run = (await person.runs.get_chat(chat))["interactions"][-1]["id"]
    await person.runs.approve(chat, run, approval["approval_id"], approved=approved, **more)
    return await newest_run(person, chat)


async def talk_with_tasks(user: User, model: ScriptedModel, count: int) -> str:
    """Returns the conversation in which so many tasks were added."""
    titles = [f"task number {number}" for number in range(1, count + 1)]
    await model.script(add_task(titles[0], also=titles[1:]), says("Added."))
    return (await user.chatkit.say("add them")).thread_id
