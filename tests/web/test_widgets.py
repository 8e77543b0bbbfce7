"""What the page shows of tasks: when they are due, their priority, labels and repeats, on every screen."""

import json
from datetime import datetime
from typing import Any

import pytest
from chatkit.types import ThreadItemDoneEvent
from playwright.async_api import Route, expect

from backend.conversation.items import Json
from backend.conversation.rows import as_shown
from backend.tools import widgets
from backend.tools.task import Task
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

EVERY_DAY = "FREQ=MONTHLY;BYMONTHDAY=" + ",".join(map(str, range(1, 29)))
NOW = datetime(2026, 11, 23, 15, 0)
TASKS: list[dict[str, Any]] = [
    {"title": "Pay the rent", "due": "Fri 2026-11-20", "priority": "high", "labels": ["home"]},
    {"title": "Call mum", "due": "Mon 2026-11-23 18:00", "priority": "medium", "repeat": "FREQ=WEEKLY;BYDAY=MO"},
    {"title": "word " * 40, "due": "Mon 2027-01-04", "priority": "low", "labels": ["y" * 40, "z" * 40]},
    {
        "title": "x" * 200,
        "description": "z" * 300,
        "repeat": "FREQ=MONTHLY;BYMONTHDAY=" + ",".join(map(str, range(1, 29))),
    },
    {"title": "Read", "status": "completed", "due": "Fri 2026-11-20", "priority": "high"},
    {"title": "Plain", "description": "two litres"},
]


def answer(*roots: Json) -> str:
    """The frames of an answer that is nothing but widgets."""
    frames = [json.dumps({"type": "thread.created", "thread": {"id": "thr_1", "created_at": "2026-11-23T15:00:00"}})]
    for root in roots:
        event = ThreadItemDoneEvent(item=as_shown("thr_1", widgets.item(root)))
        frames.append(event.model_dump_json(by_alias=True, exclude_none=True))
    return "".join(f"data: {frame}\n\n" for frame in frames)


async def test_all_that_is_told_of_a_task_can_be_read(open_page: OpenPage, violations: Violations) -> None:
    tasks = [Task.model_validate({"id": n, "status": "pending", **task}) for n, task in enumerate(TASKS, 1)]
    roots = [widgets.task_card(task, "Added", now=NOW) for task in tasks]
    roots.append(widgets.task_list(tasks, more=True, now=NOW))
    for variant in ("solid", "soft", "outline"):
        colors = ("secondary", "success", "danger", "warning", "info", "discovery", None)
        badges = [{"type": "Badge", "label": "word", "variant": variant, "color": color} for color in colors]
        roots.append({"type": "Card", "children": [{"type": "Row", "wrap": "wrap", "children": badges}]})

    async def reply(route: Route) -> None:
        await route.fulfill(content_type="text/event-stream", body=answer(*roots))

    page = await open_page()
    await screen.on(page, "threads.create", reply)
    await screen.send(page, "show all")
    shown = screen.task_list(page)
    for words in ("Fri, Nov 20", "Mon, Nov 23 6:00 PM", "Jan 4, 2027", "every Monday", "#home", "High"):
        await expect(shown.get_by_text(words, exact=True).first).to_be_visible()
    wide = "[...document.querySelectorAll('.widget *')].filter(e => e.getBoundingClientRect().right > %s).length"
    for width in (320, 390, 1280):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await page.evaluate(wide % "e.closest('.widget').getBoundingClientRect().right") == 0, width


async def test_what_a_call_did_to_many_tasks_is_one_list(open_page: OpenPage, model: ScriptedModel) -> None:
    """With dates as the reader writes them."""
    page = await open_page(locale="de-DE")
    titles = ["milk", "bread", "eggs", "soap"]
    arguments = {"title": titles[0], "also": titles[1:], "due": "2099-11-27 15:00", "repeat": "FREQ=DAILY"}
    await model.script({"tool_calls": [{"name": "add_task", "arguments": arguments}]}, {"text": "All four."})
    await screen.say(page, "add four")
    shown = screen.task_list(page)
    await expect(shown).to_contain_text("4 tasks added")
    await expect(shown.get_by_text("27. Nov. 2099 15:00")).to_have_count(4)
    heard = page.locator("todo-chat > [aria-live=polite]")
    await expect(heard).to_contain_text("4 tasks added: milk, 27. Nov. 2099 15:00; bread, 27. Nov. 2099 15:00;")
    await model.script({"tool_calls": [{"name": "complete_task", "arguments": {"task_id": 1}}]}, {"text": "Done."})
    await screen.say(page, "the milk is done")
    await expect(shown.get_by_role("checkbox", name="milk")).to_be_checked()
    await expect(screen.log(page).get_by_role("group", name="Card")).to_contain_text("next on 28. Nov. 2099 15:00")
