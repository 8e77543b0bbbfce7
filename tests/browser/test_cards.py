"""Cards in the chat: of tasks with their undo, and one that asks before something is done."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says
from tests.support.stack import NOW

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


def cards(page: Page) -> Locator:
    return screen.log(page).get_by_role("group", name="Card")


def heard(page: Page) -> Locator:
    return page.locator("todo-chat > [aria-live=polite]")


async def called(page: Page, model: ScriptedModel, tool: str, **arguments: Any) -> None:
    await model.script({"tool_calls": [{"name": tool, "arguments": arguments}]}, {"text": "Fine."})
    await screen.say(page, tool)


async def test_undo(open_page: OpenPage, model: ScriptedModel, tasks: TaskApi) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.button(cards(page), "Undo: milk").dblclick()
    await expect(cards(page)).to_contain_text("Undone")
    await expect(cards(page).get_by_role("checkbox")).to_be_focused()
    await expect(heard(page)).to_have_text("Undone; milk (deleted)")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(cards(page).get_by_role("button")).to_have_count(0)
    await called(page, model, "add_task", title="tea")
    await called(page, model, "update_task", task_id=2, title="green tea")
    await expect(cards(page).nth(1)).to_contain_text("green tea")
    await expect(cards(page).nth(1).get_by_role("button", name="Undo")).to_have_count(0)  # it was changed since
    await tasks.change(2, title="black tea")
    await screen.button(cards(page).nth(2), "Undo: green tea").click()
    await expect(page.get_by_role("alert")).to_be_visible()


async def test_cards_and_lists_are_readable_on_every_screen(
    open_page: OpenPage, model: ScriptedModel, violations: Violations
) -> None:
    every_day = "FREQ=MONTHLY;BYMONTHDAY=" + ",".join(map(str, range(1, 29)))
    await model.script(
        calls(
            call("add_task", title="Pay the rent", due="2026-11-20", priority="high", labels=["home"]),
            call("add_task", title="Call mum", due="2026-11-25 18:00", repeat="FREQ=WEEKLY;BYDAY=WE"),
            call("add_task", title="word " * 30, due="2027-01-04", priority="low", labels=["y" * 40, "z" * 40]),
            call("add_task", title="x" * 150, description="z" * 300, due="2026-11-25", repeat=every_day),
            call("add_task", title="Plain", description="two litres"),
        ),
        calls(call("complete_task", task_id=5)),
        calls(call("list_tasks")),
        says("There."),
    )
    page = await open_page(locale="en-US", timezone_id="UTC")
    await page.clock.set_fixed_time(NOW)
    await screen.say(page, "show all")
    shown = screen.task_list(page)
    for words in ("Fri, Nov 20", "Today 6:00 PM", "Jan 4, 2027", "#home", "High"):
        await expect(shown.get_by_text(words, exact=True).first).to_be_visible()
    wide = "[...document.querySelectorAll('.widget *')].filter(e => e.getBoundingClientRect().right > %s).length"
    for width in (320, 1280):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await page.evaluate(wide % "e.closest('.widget').getBoundingClientRect().right") == 0, width


async def test_many_changed_tasks_are_one_list_with_the_readers_dates(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page(locale="de-DE")
    titles = ["milk", "bread", "eggs", "soap"]
    await model.script(
        calls(call("add_task", title=titles[0], also=titles[1:], due="2099-11-27 15:00", repeat="FREQ=DAILY")),
        says("All four."),
    )
    await screen.say(page, "add four")
    shown = screen.task_list(page)
    await expect(shown.get_by_text("27. Nov. 2099 15:00")).to_have_count(4)
    await expect(heard(page)).to_contain_text("milk, 27. Nov. 2099 15:00; bread, 27. Nov. 2099 15:00;")
    await model.script(calls(call("complete_task", task_id=1)), says("Fine."))
    await screen.say(page, "the milk is done")
    await expect(shown.get_by_role("checkbox", name="milk")).to_be_checked()
    await expect(cards(page)).to_contain_text("28. Nov. 2099 15:00")


TITLES = [f"task number {number}" for number in range(1, 13)]


def card(page: Page, text: str = "Delete 12 tasks") -> Locator:
    return screen.log(page).locator(".card").filter(has_text=text)


async def asked(page: Page, model: ScriptedModel, *then: dict[str, Any]) -> None:
    """Twelve tasks, and a card that asks whether they are to be deleted."""
    adding = {"name": "add_task", "arguments": {"title": TITLES[0], "also": TITLES[1:]}}
    deleting = {"name": "delete_task", "arguments": {"task_id": 1, "also": list(range(2, 13))}}
    await model.script({"tool_calls": [adding]}, {"text": "Added."}, {"tool_calls": [deleting]}, *then)
    await screen.say(page, "add them")
    await screen.say(page, "delete all")
    await expect(card(page)).to_be_visible()


async def test_approve(open_page: OpenPage, model: ScriptedModel, violations: Violations) -> None:
    page = await open_page()
    await asked(page, model, {"text": "They are gone."})
    await expect(page.get_by_role("group", name="Delete 12 tasks?")).to_be_visible()
    await expect(card(page)).to_contain_text("“task number 12”")
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await screen.button(card(page), "Delete 12 tasks").dblclick()
    await expect(screen.answers(page).last).to_have_text("They are gone.")
    await expect(card(page)).to_contain_text("Approved")
    await expect(card(page).get_by_role("button")).to_have_count(0)
    await expect(page.get_by_role("alert")).to_have_count(0)
    await screen.answered(page)
    assert await violations(page) == []
    await page.reload()
    await expect(card(page)).to_contain_text("Approved")


async def test_reject_with_a_reason_by_keyboard(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await asked(page, model, {"text": "I leave them."})
    await screen.button(card(page), "Delete 12 tasks").focus()
    await page.keyboard.press("Shift+Tab")
    await expect(card(page).get_by_label("Reason (optional)")).to_be_focused()
    await page.keyboard.type("not these")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(screen.button(card(page), "Keep them: Delete 12 tasks?")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(screen.answers(page).last).to_have_text("I leave them.")
    await expect(card(page)).to_contain_text("Rejected")
    await expect(card(page)).to_contain_text("Reason: not these")
    await expect(screen.message_box(page)).to_be_focused()
    assert "not these" in (await model.finished_requests())[-1]["body"]["messages"][-1]["content"]


async def test_approval_survives_a_reload_and_is_decided_once(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await asked(page, model, {"text": "They are gone."})
    other = await open_page(await page.evaluate("location.pathname"))  # another browser, which hears of nothing
    await page.reload()
    await expect(card(other)).to_be_visible()
    await screen.button(card(page), "Delete 12 tasks").click()
    await expect(screen.answers(page).last).to_have_text("They are gone.")
    await screen.answered(page)
    await screen.button(card(other), "Keep them: Delete 12 tasks?").click()
    await expect(other.get_by_role("alert")).to_be_visible()
    await expect(card(other)).to_contain_text("Approved")
