"""The list of tasks, and taking back what was done to it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cli.chat.screens import drawing
from todo_client.connection import ApiError

if TYPE_CHECKING:
    from cli.chat.talk import Talk

VIEWS = ("today", "upcoming", "all", "done", "deleted")
_NOT_NOW = 409


async def show(talk: "Talk", view: str) -> None:
    view = view or "all"
    if view not in VIEWS:
        await talk.screen.fail(f"There is no view {view}. Choose one of these: {', '.join(VIEWS)}.")
        return
    page = await talk.connection.page.tasks(view)
    style = talk.screen.style
    lines = drawing.task_lines(style, page["tasks"], talk.screen.size[0])
    more = page["total"] - len(page["tasks"])
    lines += [style.dim(f"and {more:,} more")] if more > 0 else []
    await talk.screen.show(*(lines or [style.dim("No tasks.")]))


async def undo(talk: "Talk", _: str) -> None:
    """As the newest button of the page's does it: all cards say so then, and the assistant is told."""
    connection, chat_id = talk.connection, talk.chat_id
    thread = await connection.thread(chat_id) if chat_id and talk.last_run else None
    shown = (await connection.chatkit.list_items(thread, limit=100)).data if thread else []
    offers = [(item, action) for item in shown for action in _undoing(item.get("widget"))]
    if thread is None or not offers:
        await talk.screen.fail("There is nothing to undo in this conversation.")
        return
    pressed, action = offers[0]
    cards = {item["id"] for item, other in offers if other == action}
    tasks: dict[str, None] = {}
    async with connection.chatkit.custom_action(thread, pressed["id"], action) as events:
        async for event in events:
            match event:
                case {"type": "error", "message": message}:
                    raise ApiError(_NOT_NOW, message)
                case {"type": "thread.item.replaced", "item": item} if item["id"] in cards:
                    tasks |= dict.fromkeys(item["copy_text"].splitlines())
                case _:
                    pass
    style, width = talk.screen.style, talk.screen.size[0]
    await talk.screen.show(
        style.dim("Undone. The tasks are now:"), *(drawing.copied_line(style, task, width) for task in tasks)
    )


def _undoing(component: Any) -> Iterator[dict[str, Any]]:
    """The actions of the buttons below a component that take something back."""
    match component:
        case {"type": "Button", "onClickAction": {"type": "undo"} as action}:
            yield action
        case {"children": [*children]}:
            for child in children:
                yield from _undoing(child)
        case _:
            pass
