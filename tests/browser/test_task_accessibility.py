"""The list for everybody: by keyboard, in both themes, on small and large screens."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi, today

pytestmark = [pytest.mark.long(seconds=12), pytest.mark.asyncio(loop_scope="session")]

LONG = "a task with a title that is much longer than others and has averyveryverylongwordthatdoesnotendatall in it"
STOPS = """[...document.querySelectorAll('.rows [data-row]')]
    .filter(row => row.querySelector('[tabindex="0"]')).length"""
SMALL = """[...document.querySelectorAll('.tasks button, .tasks select, .tasks input')].filter((one) => {
    const target = (one.closest('.tick') && one.closest('.task')) ?? one;
    const { width, height } = target.getBoundingClientRect();
    return width && height < 44 && !one.matches('.title, .label');
}).map(one => one.outerHTML)"""


async def fill(tasks: TaskApi) -> None:
    await tasks.add(LONG, due=str(today(-1)), priority="high", labels=["home", "a-label-that-is-rather-long"])
    await tasks.add("plants", due="today 23:59", repeat="FREQ=WEEKLY;BYDAY=MO", priority="medium")
    await tasks.add("dentist", due="tomorrow", description="Bring the papers. " * 20)
    await tasks.change(await tasks.add("done"), status="completed")
    await tasks.delete(await tasks.add("gone"))


async def states(page: Page) -> AsyncIterator[str]:
    """One after the other, all that the list can look like."""
    await task_list.see(page, "Today")
    yield "today"
    await task_list.adding(page).fill("call mum every friday at 3pm #home !high")
    yield "what is understood"
    await task_list.adding(page).fill("")
    await task_list.title_of(page, "plants").click()
    await page.get_by_role("textbox", name="Repeat").fill("never")
    await page.get_by_role("textbox", name="Repeat").press("Enter")
    yield "open for changes"
    await page.get_by_role("textbox", name="Repeat").press("Escape")
    await page.keyboard.press("t")
    await page.keyboard.type("friday")
    yield "asked for a date"
    await page.keyboard.press("Escape")
    await task_list.open_menu(page, "plants")
    yield "menu of a row"
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Filter").click()
    await page.get_by_role("button", name="Select tasks").click()
    await task_list.box(page, "plants").check()
    yield "selected"
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    await expect(task_list.notice(page)).to_be_visible()
    yield "deleted, with a way back"
    for view in ("Upcoming", "All", "Done", "Deleted"):
        await task_list.see(page, view)
        yield view
    await page.get_by_role("searchbox").fill("nothing of this")
    await expect(task_list.rows(page)).to_contain_text("No matches")
    yield "nothing found"


async def test_every_state_is_accessible(open_list: OpenPage, tasks: TaskApi, violations: Violations) -> None:
    await fill(tasks)
    page = await open_list(viewport={"width": 320, "height": 800}, reduced_motion="reduce")
    wide = "[document.documentElement, ...document.querySelectorAll('.tasks, .rows, .below, .move')]"
    cut = f"{wide}.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className)"
    async for state in states(page):
        for width in (1280, 320):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await violations(page) == [], (state, width)
            assert await page.evaluate(cut) == [], (state, width)


async def test_every_failure_is_accessible(open_list: OpenPage, violations: Violations) -> None:
    page = await open_list()
    await page.route("**/tasks/changes*", lambda route: route.abort())
    await expect(task_list.region(page).get_by_text("Cannot reach the server")).to_be_visible()
    assert await violations(page) == []
    await page.route(task_list.API, lambda route: route.fulfill(status=429, json={"error": "Too much at once."}))
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("Too much at once.")
    assert await violations(page) == []


async def test_list_by_keyboard(open_list: OpenPage, tasks: TaskApi) -> None:
    page = await open_list()
    await task_list.adding(page).focus()
    for title in ("milk", "bread", "dentist in 2 days"):
        await page.keyboard.type(title)
        await page.keyboard.press("Enter")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    await page.keyboard.press("ArrowDown")
    await expect(task_list.title_of(page, "milk")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(task_list.title_of(page, "bread")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.type(" and butter")
    await page.keyboard.press("Enter")
    await expect(task_list.title_of(page, "bread and butter")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(task_list.tick(page, "bread and butter")).to_be_focused()
    await page.keyboard.press("Space")
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await expect(task_list.tick(page, "milk")).to_be_focused()
    await page.keyboard.press("Delete")
    await expect(task_list.titles(page)).to_have_count(0)
    await page.keyboard.press("Escape")  # leaves the field for a new task
    await page.keyboard.press("ControlOrMeta+z")
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await screen.side_bar(page).get_by_role("link", name="Upcoming").press("Enter")
    await task_list.title_of(page, "dentist").focus()
    await page.keyboard.press("t")
    await page.keyboard.type("tomorrow 9am")
    await page.keyboard.press("Enter")
    await expect(task_list.section(page, "Tomorrow")).to_contain_text("dentist")
    await expect(task_list.title_of(page, "dentist")).to_be_focused()
    await tasks.until("done", ["bread and butter"])
    await tasks.until("today", ["milk"])


async def test_arrows_move_between_rows_whose_position_and_language_are_given(
    open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add_many([f"task {number}" for number in range(30)], due=str(today(2)))
    page = await open_list(locale="de-DE")
    await task_list.see(page, "Upcoming")
    await expect(task_list.section(page, "Morgen").locator("h3 > span").first).to_have_attribute("lang", "de-DE")
    assert await page.evaluate(STOPS) == 1
    await task_list.title_of(page, "task 0").focus()
    for _ in range(25):
        await page.keyboard.press("ArrowDown")
    await expect(task_list.title_of(page, "task 25")).to_be_focused()
    await expect(task_list.title_of(page, "task 25")).to_be_in_viewport()
    assert await page.evaluate(STOPS) == 1
    await task_list.see(page, "All")
    second = task_list.row(page, "task 1").first
    await expect(second).to_have_attribute("aria-posinset", "2")
    await expect(second).to_have_attribute("aria-setsize", "30")
    await expect(second.locator(".due")).to_have_attribute("lang", "de-DE")


async def test_touch_targets_and_forced_colors(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today", labels=["home"])
    page = await open_list(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True, forced_colors="active"
    )
    assert await page.evaluate(SMALL) == []
    outline = "getComputedStyle(document.querySelector('%s')).outlineStyle"
    await task_list.adding(page).focus()
    assert await page.evaluate(outline % ".adding") == "solid"
    await task_list.adding(page).blur()  # above a keyboard there is no room for the bar at the bottom
    await screen.show_assistant(page)
    await screen.message_box(page).focus()
    assert await page.evaluate(outline % ".composer") == "solid"
    await screen.show_tasks(page)
    assert await screen.button(page, "Add a task for Today").is_visible()
    await expect(screen.button(page, "Change the date: milk")).to_be_hidden()
    await screen.button(page, "More actions: milk").tap()
    assert await page.evaluate(SMALL) == []
    await page.get_by_role("dialog").get_by_role("button", name="Tomorrow").tap()
    await expect(task_list.notice(page)).to_contain_text("Moved to Tomorrow")
    await screen.show_assistant(page)
    for name in ("Back to the tasks", "Conversations", "New conversation"):
        assert await smaller_side(page, name) >= 43.9, name
    await screen.open_side_bar(page)
    assert await page.evaluate(outline % "[data-view=today]") == "solid"
    await screen.button(page, "Menu").tap()
    for name in ("Menu", "Basic mode · Add AI", "Calendar"):
        assert await smaller_side(page, name) >= 43.9, name


async def smaller_side(page: Page, name: str) -> float:
    place = await screen.button(page, name).bounding_box()
    assert place
    return min(place["width"], place["height"])
