"""Commands about the list of tasks."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from cli.chat.connection import Connection
from cli.chat.rendering import render_copied_task, render_tasks
from cli.chat.session import ChatSession
from todo_client.connection import ApiError

VIEWS = ("today", "upcoming", "all", "done", "deleted")
_CONFLICT = 409
_TASK = "- ["  # a line of text that a card of tasks gives; that of all changes gives another one


async def show(chat: ChatSession, view: str) -> None:
    view = view or "all"
    if view not in VIEWS:
        await chat.screen.fail(f"There is no view {view}. Choose one of these: {', '.join(VIEWS)}.")
        return
    page = await chat.connection.runs.tasks(view)
    if not page["tasks"]:
        await chat.screen.show("No tasks.")
        return
    more = page["total"] - len(page["tasks"])
    table = render_tasks(page["tasks"], chat.screen.width)
    await chat.screen.show(table, *([f"and {more:,} more"] if more > 0 else []))


async def list_views(_: Connection) -> Sequence[str]:
    return VIEWS


async def undo(chat: ChatSession, _: str) -> None:
    """Presses the newest Undo button, as on the page: all cards then say so, and the assistant learns of it."""
    connection, chat_id = chat.connection, chat.chat_id
    thread = await connection.thread(chat_id) if chat_id and chat.last_run else None
    items = await connection.items(thread) if thread else []
    buttons = [(item, action) for item in items for action in _undo_actions(item.get("widget"))]
    if thread is None or not buttons:
        await chat.screen.fail("There is nothing to undo in this conversation.")
        return
    pressed, action = buttons[0]
    cards = {item["id"] for item, other in buttons if other == action} | _find_task_cards(items, pressed)
    tasks: dict[str, None] = {}
    async with connection.chatkit.custom_action(thread, pressed["id"], action) as events:
        async for event in events:
            match event:
                case {"type": "error", "message": message}:
                    raise ApiError(_CONFLICT, message)
                case {"type": "thread.item.replaced", "item": item} if item["id"] in cards:
                    tasks |= dict.fromkeys(line for line in item["copy_text"].splitlines() if line.startswith(_TASK))
                case _:
                    pass
    await chat.screen.show("Undone. The tasks are now:" if tasks else "Undone.", *map(render_copied_task, tasks))


def _find_task_cards(items: Sequence[dict[str, Any]], pressed: dict[str, Any]) -> set[str]:
    """Returns the cards of the answer whose last line undoes what all of them show."""
    answer = takewhile(lambda item: item["type"] != "user_message", items[items.index(pressed) :])
    return {item["id"] for item in answer if item.get("widget", {}).get("type") == "Card"}


def _undo_actions(component: Any) -> Iterator[dict[str, Any]]:
    match component:
        case {"type": "Button", "onClickAction": {"type": "undo"} as action}:
            yield action
        case {"children": [*children]}:
            for child in children:
                yield from _undo_actions(child)
        case _:
            pass
