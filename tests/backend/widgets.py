"""The widgets of an answer, and what a person does in them."""

from collections.abc import Iterator
from typing import Any

from tests.chatkit_client import Answer, ChatKit


def widgets_of(answer: Answer) -> list[dict[str, Any]]:
    return [item for item in answer.items if item["type"] == "widget"]


def boxes(item: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The boxes of a widget by the task's title."""
    waiting, found = [item["widget"]], {}
    while waiting:
        component = waiting.pop()
        waiting.extend(component.get("children", ()))
        if component["type"] == "Checkbox":
            found[component["label"]] = component
    return found


def component(root: dict[str, Any], kind: str, label: str | None = None) -> dict[str, Any]:
    """The first component of a kind in a widget, or the one with this label."""
    found = [part for part in _all(root) if part["type"] == kind and label in (None, part.get("label"))]
    assert found, f"There is no {kind} {label or ''} in it."
    return found[0]


def _all(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield root
    for child in root.get("children", ()):
        yield from _all(child)


async def listed(chat: ChatKit, *titles: str) -> tuple[str, dict[str, Any]]:
    """The thread and the list's item, of a list with these tasks."""
    first = await chat.say("add " + " and ".join(titles))
    answer = await chat.say("show all", first.thread_id)
    (item,) = widgets_of(answer)
    return first.thread_id, item


async def tick(chat: ChatKit, item: dict[str, Any], title: str) -> Answer:
    action = boxes(item)[title]["onChangeAction"]
    return await act(chat, item, {"type": action["type"], "payload": action["payload"]})


async def act(chat: ChatKit, item: dict[str, Any], action: dict[str, Any]) -> Answer:
    return await chat.stream("threads.custom_action", thread_id=item["thread_id"], item_id=item["id"], action=action)


def replaced(answer: Answer) -> dict[str, Any]:
    """The newest of the widgets that were redrawn."""
    return answer.of("thread.item.replaced")[-1]["item"]
