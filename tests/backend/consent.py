"""Turns that ask their person before they go on, and what the person answers."""

from typing import Any

from tests.backend.widgets import component
from tests.chatkit_client import Answer, ChatKit
from tests.scripted_model import ScriptedModel


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def deleting(*numbers: int) -> dict[str, Any]:
    first, *others = numbers
    return call("delete_task", task_id=first, **({"also": others} if others else {}))


def calls(*wanted: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "tool_calls": [*wanted]}


async def with_tasks(chat: ChatKit, model: ScriptedModel, count: int) -> str:
    """The thread in which so many tasks were added, numbered from 1."""
    titles = [f"task number {number}" for number in range(1, count + 1)]
    await model.script(calls(call("add_task", title=titles[0], also=titles[1:])), {"text": "Added."})
    return (await chat.say("add them")).thread_id


def cards(answer: Answer) -> list[dict[str, Any]]:
    """The cards that ask, in an answer."""
    return [item for item in answer.items if item["type"] == "widget" and item["widget"].get("confirm")]


async def decide(chat: ChatKit, card: dict[str, Any], *, approve: bool, reason: str | None = None) -> Answer:
    """Click in a card, as ChatKit's element sends it."""
    action = card["widget"]["confirm" if approve else "cancel"]["action"]
    payload = {"reason": reason, **action["payload"]} if reason is not None else action["payload"]
    clicked = {"type": action["type"], "payload": payload}
    return await chat.stream("threads.custom_action", thread_id=card["thread_id"], item_id=card["id"], action=clicked)


def badge(item: dict[str, Any]) -> str:
    """What a card says that was decided."""
    return component(item["widget"], "Badge")["label"]
