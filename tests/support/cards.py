"""Reads and clicks the widgets of answers."""

from collections.abc import Iterator
from typing import Any

from tests.chatkit_client import Answer, ChatKit
from todo_client.chatkit import request

Json = dict[str, Any]


def list_widgets(answer: Answer) -> list[Json]:
    """Returns the cards of an answer, without the line of what it changed in all."""
    return [item for item in answer.items if item["type"] == "widget" and item["widget"]["type"] != "Basic"]


def list_latest_widgets(answer: Answer) -> list[Json]:
    """Returns the cards of an answer as the answer has replaced them."""
    latest = {event["item"]["id"]: event["item"] for event in answer.of("thread.item.replaced")}
    return [latest.get(item["id"], item) for item in list_widgets(answer)]


def get_total(answer: Answer) -> Json:
    """Returns the line of what the answer changed in all."""
    [line] = [item for item in answer.items if item["type"] == "widget" and item["widget"]["type"] == "Basic"]
    return line


async def fetch_widgets(chat: ChatKit, thread: str) -> list[Json]:
    """Returns the cards of a conversation as ChatKit lists them, without the lines of what answers changed in all."""
    items = await chat.items(thread)
    return [item for item in items if item["type"] == "widget" and item["widget"]["type"] != "Basic"]


def list_leaves(find_component: Json) -> list[Json]:
    """Returns the components without children, in order."""
    if "children" not in find_component:
        return [find_component]
    return [part for child in find_component["children"] for part in list_leaves(child)]


def walk_components(root: Json) -> Iterator[Json]:
    yield root
    for child in root.get("children", ()):
        yield from walk_components(child)


def find_component(root: Json, kind: str, label: str | None = None) -> Json:
    """Returns the first component of a kind, or the one with this label."""
    matches = [part for part in walk_components(root) if part["type"] == kind and label in (None, part.get("label"))]
    assert matches, f"There is no {kind} {label or ''} in it."
    return matches[0]


def find_checkboxes(item: Json) -> dict[str, Json]:
    """Returns the checkboxes of a widget by the titles of their tasks."""
    return {part["label"]: part for part in walk_components(item["widget"]) if part["type"] == "Checkbox"}


def render_lines(item: Json) -> list[str]:
    """Renders a widget as text: the status of a list, then a line for each task.

    Buttons are in square brackets; those without a label are left out.
    """
    root = item["widget"]
    rows = root["children"] if root["type"] == "ListView" else [root]
    status = root.get("status") or {}
    return [*([status["text"]] if status else []), *(line for row in rows if (line := _line(row)))]


def _line(row: Json) -> str:
    words: list[str] = []
    for part in list_leaves(row):
        match part["type"]:
            case "Checkbox":
                words.append(f"{'☑' if part['defaultChecked'] else '☐'} {part['label']}")
            case "Button":
                words += [f"[{part['label']}]"] if "label" in part else []
            case _:
                words += [text for text in (part.get("label"), part.get("value")) if text]
    return " · ".join(words)


def find_undo_buttons(item: Json) -> list[Json]:
    """Returns the buttons that undo the changes of an answer."""
    buttons = (part for part in walk_components(item["widget"]) if part["type"] == "Button")
    return [button for button in buttons if button["onClickAction"]["type"] == "undo"]


def get_action(button: Json) -> Json:
    """Returns the action of a checkbox or button as ChatKit sends it."""
    action = button.get("onChangeAction") or button["onClickAction"]
    return {"type": action["type"], "payload": action["payload"]}


async def tick(chat: ChatKit, item: Json, title: str) -> Answer:
    return await send_action(chat, item, get_action(find_checkboxes(item)[title]))


async def click_undo(chat: ChatKit, item: Json) -> Answer:
    return await send_action(chat, item, get_action(find_undo_buttons(item)[0]))


async def send_action(chat: ChatKit, item: Json, action: Json) -> Answer:
    return await chat.stream("threads.custom_action", thread_id=item["thread_id"], item_id=item["id"], action=action)


async def send_sync_action(chat: ChatKit, item: Json, action: Json) -> tuple[int, Json]:
    """Returns the HTTP status and the body."""
    body = request("threads.sync_custom_action", thread_id=item["thread_id"], item_id=item["id"], action=action)
    response = await chat.http.post("/chatkit", json=body)
    return response.status_code, response.json()


def get_replaced_widget(answer: Answer) -> Json:
    """Returns the last card that the answer replaced."""
    replaced = [event["item"] for event in answer.of("thread.item.replaced")]
    return next(item for item in reversed(replaced) if item["widget"]["type"] != "Basic")
