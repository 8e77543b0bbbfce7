"""The line below an answer that says what it changed, and undoes all of it."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

ADD_TWO = [call("add_task", title="milk"), call("add_task", title="bread")]
HEBREW = "לקנות חלב"


def lines(page: Page) -> Locator:
    return screen.log(page).get_by_role("group", name="What this answer changed")


def undos(page: Page) -> Locator:
    return screen.log(page).get_by_role("button", name="Undo")


def heard(page: Page) -> Locator:
    return page.locator("todo-chat > [aria-live=polite]")


async def changed(page: Page, model: ScriptedModel, *tool_calls: Any, text: str = "There.") -> None:
    await model.script(calls(*tool_calls), says(text))
    await screen.say(page, "do it")


async def test_line_says_and_undoes_all(
    open_page: OpenPage, model: ScriptedModel, tasks: TaskApi, violations: Violations
) -> None:
    await tasks.add("dentist", due="2026-12-01")
    page = await open_page()
    adding = call("add_task", title="milk", also=["bread"])
    await changed(page, model, adding, call("update_task", task_id=1, due="2026-12-04"), text="All done.")
    await expect(lines(page)).to_contain_text("Added 2 · Moved 1")
    await expect(heard(page)).to_contain_text("Added 2 · Moved 1.")
    said = await heard(page).inner_text()
    assert said.count("Added 2 · Moved 1.") == 1
    await expect(undos(page)).to_have_count(1)
    for width in (320, 640, 1280):  # at 640, half of it is what a zoom of 200 % leaves
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    undo = screen.button(page, "Undo: Added 2 · Moved 1")
    await undo.focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(lines(page)).to_have_text("Undone: Added 2 · Moved 1", use_inner_text=True)
    await expect(lines(page)).to_be_focused()
    await expect(heard(page)).to_have_text("Undone: Added 2 · Moved 1")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(undos(page)).to_have_count(0)
    assert [(task["title"], task["due"]) for task in await tasks.view()] == [("dentist", "2026-12-01")]
    await page.reload()
    await expect(lines(page)).to_have_text("Undone: Added 2 · Moved 1", use_inner_text=True)
    await expect(undos(page)).to_have_count(0)


async def test_no_answer_has_two_equal_buttons(open_page: OpenPage, model: ScriptedModel, tasks: TaskApi) -> None:
    page = await open_page()
    await changed(page, model, call("add_task", title="tea"))
    await expect(lines(page)).to_have_text("Added 1", use_inner_text=True)
    await expect(undos(page)).to_have_count(1)
    await screen.button(page, "Undo: tea").click()
    await expect(lines(page)).to_have_text("Undone: Added 1", use_inner_text=True)
    await changed(page, model, call("add_task", title="a", also=["b", "c", "d"]))
    await expect(undos(page)).to_have_count(1)
    await expect(screen.task_list(page).get_by_role("button", name="Undo")).to_be_visible()
    await model.script(calls(call("list_tasks")), says("Four."))
    await screen.say(page, "show them")
    await expect(lines(page)).to_have_count(2)


async def test_undo_that_is_not_possible_says_why(open_page: OpenPage, model: ScriptedModel, tasks: TaskApi) -> None:
    page = await open_page()
    await changed(page, model, call("add_task", title=HEBREW), call("add_task", title="bread"))
    other = await open_page(await page.evaluate("location.pathname"))  # another browser, which hears of nothing
    await expect(undos(other)).to_have_count(1)
    await tasks.change(1, title=f"{HEBREW}!")
    alert = page.get_by_role("alert")
    await undos(page).click()
    await expect(alert).to_contain_text(f"later changes to task 1 ({HEBREW}!)")
    await expect(undos(page)).to_have_count(0)  # it is not offered any more
    await expect(lines(page)).to_have_text("Added 2", use_inner_text=True)

    await changed(page, model, *ADD_TWO)
    await other.reload()
    await expect(undos(other)).to_have_count(1)
    await undos(page).click()
    await expect(lines(page).last).to_have_text("Undone: Added 2", use_inner_text=True)
    await undos(other).click()
    await expect(other.get_by_role("alert")).to_contain_text("undone already")
    await expect(lines(other).last).to_have_text("Undone: Added 2", use_inner_text=True)


async def test_undo_without_a_connection_and_in_a_deleted_conversation(
    open_page: OpenPage, model: ScriptedModel, tasks: TaskApi
) -> None:
    page = await open_page()
    await changed(page, model, *ADD_TWO)
    for url in ("**/chatkit", "**/health"):
        await page.route(url, lambda route: route.abort())
    await undos(page).click()
    await expect(page.get_by_text(screen.LOST)).to_be_visible()
    await page.unroute_all()
    await expect(page.get_by_text(screen.LOST)).to_have_count(0)
    await expect(lines(page)).to_contain_text("Added 2")
    other = await open_page(await page.evaluate("location.pathname"))
    await expect(undos(other)).to_have_count(1)
    await undos(page).click()
    await expect(lines(page)).to_contain_text("Undone")

    await changed(page, model, call("add_task", title="tea"), call("add_task", title="salt"))
    await other.reload()
    await expect(undos(other)).to_have_count(1)
    await screen.open_history(page)
    await screen.button(screen.history(page), "Delete do it").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(screen.questions(page)).to_have_count(0)
    await undos(other).click()
    await expect(other.get_by_text("That conversation no longer exists")).to_be_visible()
    assert await tasks.titles() == ["tea", "salt"]
