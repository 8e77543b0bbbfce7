"""The list for everybody: by keyboard, in both themes, on small and large screens."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.web import screen
from tests.web.conftest import Violations
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored, today

pytestmark = [pytest.mark.long(seconds=12), pytest.mark.asyncio(loop_scope="session")]

LONG = "a task with a title that is much longer than others and has averyveryverylongwordthatdoesnotendatall in it"
STOPS = """[...document.querySelectorAll('.rows [data-row]')]
    .filter(row => row.querySelector('[tabindex="0"]')).length"""
SMALL = """[...document.querySelectorAll('.tasks button, .tasks select, .tasks input')].filter((one) => {
    const target = (one.closest('.tick') && one.closest('.task')) ?? one;
    const { width, height } = target.getBoundingClientRect();
    return width && height < 44 && !one.matches('.title, .label');
}).map(one => one.outerHTML)"""


async def fill(stored: Stored) -> None:
    await stored.add(LONG, due=str(today(-1)), priority="high", labels=["home", "a-label-that-is-rather-long"])
    await stored.add("plants", due="today 23:59", repeat="FREQ=WEEKLY;BYDAY=MO", priority="medium")
    await stored.add("dentist", due="tomorrow", description="Bring the papers. " * 20)
    await stored.change(await stored.add("done"), status="completed")
    await stored.delete(await stored.add("gone"))


async def states(page: Page) -> AsyncIterator[str]:
    """One after the other, all that the list can look like."""
    await listed.see(page, "Today")
    yield "today"
    await listed.adding(page).fill("call mum every friday at 3pm #home !high")
    yield "what is understood"
    await listed.adding(page).fill("")
    await listed.title_of(page, "plants").click()
    await page.get_by_role("textbox", name="Repeat").fill("never")
    await page.get_by_role("textbox", name="Repeat").press("Enter")
    yield "open for changes"
    await page.get_by_role("textbox", name="Repeat").press("Escape")
    await page.keyboard.press("d")
    await page.keyboard.type("friday")
    yield "asked for a date"
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Filter").click()
    await page.get_by_role("button", name="Select tasks").click()
    await listed.box(page, "plants").check()
    yield "selected"
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    await expect(listed.notice(page)).to_be_visible()
    yield "deleted, with a way back"
    for view in ("Upcoming", "All", "Done", "Deleted"):
        await listed.see(page, view)
        yield view
    await page.get_by_role("searchbox").fill("nothing of this")
    await expect(listed.rows(page)).to_contain_text("No task fits")
    yield "nothing found"


@pytest.mark.parametrize("width", [320, 1280])
async def test_no_state_violates_wcag_or_is_cut_off(
    open_list: OpenList, stored: Stored, violations: Violations, width: int
) -> None:
    await fill(stored)
    page = await open_list(viewport={"width": width, "height": 800}, reduced_motion="reduce")
    async for state in states(page):
        assert await violations(page) == [], state
        wide = "[document.documentElement, ...document.querySelectorAll('.tasks, .rows, .below, .move')]"
        cut = f"{wide}.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className)"
        assert await page.evaluate(cut) == [], state


@pytest.mark.parametrize("name", ["lost", "refused", "empty"])
async def test_no_trouble_violates_wcag(open_list: OpenList, violations: Violations, name: str) -> None:
    page = await open_list()
    if name == "lost":
        await page.route("**/tasks/changes*", lambda route: route.abort())
        await expect(listed.region(page).get_by_text("The server cannot be reached")).to_be_visible()
    elif name == "refused":
        await page.route(listed.DOOR, lambda route: route.fulfill(status=429, json={"error": "Too much at once."}))
        await page.reload()
        await expect(page.get_by_role("alert")).to_contain_text("Too much at once.")
    assert await violations(page) == []


async def test_everything_is_done_by_keyboard(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()
    await listed.adding(page).focus()
    for title in ("milk", "bread", "dentist in 2 days"):
        await page.keyboard.type(title)
        await page.keyboard.press("Enter")
    await expect(listed.titles(page)).to_have_text(["milk", "bread"])
    await page.keyboard.press("ArrowDown")
    await expect(listed.title_of(page, "milk")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(listed.title_of(page, "bread")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.type(" and butter")
    await page.keyboard.press("Enter")
    await expect(listed.title_of(page, "bread and butter")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await expect(listed.tick(page, "bread and butter")).to_be_focused()
    await page.keyboard.press("Space")
    await expect(listed.titles(page)).to_have_text(["milk"])
    await expect(listed.tick(page, "milk")).to_be_focused()
    await page.keyboard.press("Delete")
    await expect(listed.titles(page)).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.keyboard.press("ControlOrMeta+z")
    await page.get_by_role("button", name="Upcoming", exact=True).focus()
    await page.keyboard.press("Enter")
    await listed.title_of(page, "dentist").focus()
    await page.keyboard.press("d")
    await page.keyboard.type("tomorrow 9am")
    await page.keyboard.press("Enter")
    await expect(listed.section(page, "Tomorrow")).to_contain_text("dentist")
    await expect(listed.title_of(page, "dentist")).to_be_focused()
    await stored.until("done", ["bread and butter"])
    await stored.until("deleted", ["milk"])


async def test_one_row_is_reached_by_tab_and_the_others_by_arrows(open_list: OpenList, stored: Stored) -> None:
    for number in range(30):
        await stored.add(f"task {number}", due="today")
    page = await open_list()
    assert await page.evaluate(STOPS) == 1
    await listed.title_of(page, "task 0").focus()
    for _ in range(25):
        await page.keyboard.press("ArrowDown")
    await expect(listed.title_of(page, "task 25")).to_be_focused()
    await expect(listed.title_of(page, "task 25")).to_be_in_viewport()
    assert await page.evaluate(STOPS) == 1


async def test_what_is_done_is_read_out(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today")
    page = await open_list()
    heard = page.locator("todo-tasks > [aria-live=polite]")
    await listed.tick(page, "milk").click()
    await expect(heard).to_have_text("Completed: “milk”")
    await page.get_by_role("searchbox").fill("bread")
    await expect(heard).to_have_text("No task fits.")


async def test_what_is_touched_is_large_enough_and_seen(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today", labels=["home"])
    page = await open_list(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    assert await page.evaluate(SMALL) == []
    assert await screen.button(page, "Add a task for Today").is_visible()
    await expect(screen.button(page, "Delete: milk")).to_be_hidden()
    await screen.button(page, "Change the date: milk").tap()
    await page.get_by_role("dialog").get_by_role("button", name="Tomorrow").tap()
    await expect(listed.notice(page)).to_contain_text("Moved to Tomorrow")
