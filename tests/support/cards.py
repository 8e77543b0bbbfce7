"""The widgets of an answer: what a user reads in them, and how a user clicks."""

from collections.abc import Iterator
from typing import Any

from tests.chatkit_client import Answer, ChatKit
from todo_client.chatkit import request

Json = dict[str, Any]


def widgets_of(answer: Answer) -> list[Json]:
    return [item for item in answer.items if item["type"] == "widget"]


async def shown_widgets(chat: ChatKit, thread: str) -> list[Json]:
    """The widgets of a conversation that is opened now."""
    return [item for item in await chat.items(thread) if item["type"] == "widget"]


def parts(component: Json) -> list[Json]:
    """The components that have no others in them, in order."""
    if "children" not in component:
        return [component]
    return [part for child in component["children"] for part in parts(child)]


def components(root: Json) -> Iterator[Json]:
    yield root
    for child in root.get("children", ()):
        yield from components(child)


def component(root: Json, kind: str, label: str | None = None) -> Json:
    """The first component of a kind in a widget, or the one with this label."""
    found = [part for part in components(root) if part["type"] == kind and label in (None, part.get("label"))]
    assert found, f"There is no {kind} {label or ''} in it."
    return found[0]


def boxes(item: Json) -> dict[str, Json]:
    """The boxes of a widget by the task's title."""
    return {part["label"]: part for part in components(item["widget"]) if part["type"] == "Checkbox"}


def lines(item: Json) -> list[str]:
    """A widget in words: the status of a list, then each task with its box and all that is said of it.

    Buttons have square brackets; those without a label are left out.
    """
    root = item["widget"]
    rows = root["children"] if root["type"] == "ListView" else [root]
    status = root.get("status") or {}
    return [*([status["text"]] if status else []), *(line for row in rows if (line := _line(row)))]


def _line(row: Json) -> str:
    words: list[str] = []
    for part in parts(row):
        match part["type"]:
            case "Checkbox":
                words.append(f"{'☑' if part['defaultChecked'] else '☐'} {part['label']}")
            case "Button":
                words += [f"[{part['label']}]"] if "label" in part else []
            case _:
                words += [text for text in (part.get("label"), part.get("value")) if text]
    return " · ".join(words)


def undo_buttons(item: Json) -> list[Json]:
    """Those that undo what an answer did."""
    buttons = (part for part in components(item["widget"]) if part["type"] == "Button")
    return [button for button in buttons if button["onClickAction"]["type"] == "undo"]


async def listed(chat: ChatKit, *titles: str) -> tuple[str, Json]:
    """The thread and the list's item, of a list with these tasks."""
    first = await chat.say("add " + " and ".join(titles))
    answer = await chat.say("show all", first.thread_id)
    (item,) = widgets_of(answer)
    return first.thread_id, item


def action_of(button: Json) -> Json:
    """As a page sends it: a box when it changes, a button when it is clicked."""
    action = button.get("onChangeAction") or button["onClickAction"]
    return {"type": action["type"], "payload": action["payload"]}


async def tick(chat: ChatKit, item: Json, title: str) -> Answer:
    return await act(chat, item, action_of(boxes(item)[title]))


async def undo(chat: ChatKit, item: Json) -> Answer:
    return await act(chat, item, action_of(undo_buttons(item)[0]))


async def act(chat: ChatKit, item: Json, action: Json) -> Answer:
    return await chat.stream("threads.custom_action", thread_id=item["thread_id"], item_id=item["id"], action=action)


async def act_synchronously(chat: ChatKit, item: Json, action: Json) -> tuple[int, Json]:
    """The status, and the answer."""
    body = request("threads.sync_custom_action", thread_id=item["thread_id"], item_id=item["id"], action=action)
    response = await chat.http.post("/chatkit", json=body)
    return response.status_code, response.json()


def replaced(answer: Answer) -> Json:
    """The newest of the widgets that were redrawn."""
    return answer.of("thread.item.replaced")[-1]["item"]
