"""The rows of the list: how many fit, what they show, and what can be done in them."""

import pytest
from playwright.async_api import Page, expect

from tests import waiting
from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

LONG = "a title of two hundred characters which nobody reads to its end in a list " * 3
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WHOLE_ROWS = """() => [...document.querySelectorAll(".rows [data-row]")].filter((row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom <= innerHeight && top >= row.closest(".rows").getBoundingClientRect().top;
}).length"""


@pytest.mark.parametrize(("width", "height", "fitting"), [(1440, 900, 16), (1280, 720, 13)])
async def test_desktop_shows_many_rows_below_headings(
    open_list: OpenPage, tasks: TaskApi, width: int, height: int, fitting: int
) -> None:
    await tasks.add_many([f"late {number}" for number in range(5)], due=str(today(-1)), labels=["home"])
    await tasks.add_many([f"task {number}" for number in range(25)], due="today", priority="high", description="Why.")
    page = await open_list(viewport={"width": width, "height": height})
    await expect(task_list.row(page, "task 3")).to_be_visible()
    assert await page.evaluate(WHOLE_ROWS) >= fitting
    place = await task_list.row(page, "task 3").bounding_box()
    assert place
    assert place["height"] <= 39


async def test_long_title_takes_two_lines_and_is_shown_whole_on_hover(open_list: OpenPage, tasks: TaskApi) -> None:
    title = LONG[:199].strip()
    await tasks.add(title, due="today", labels=["home"], repeat="FREQ=DAILY", priority="low", description="Why.")
    await tasks.add("milk", due="today", labels=["home"])
    lines = "(title) => Math.round(title.firstElementChild.getBoundingClientRect().height / 20)"
    for options in ({"viewport": {"width": 1280, "height": 720}}, PHONE):
        page = await open_list(**options)
        await expect(task_list.title_of(page, title)).to_have_attribute("title", title)
        assert await task_list.title_of(page, title).evaluate(lines) == 2
        label = await task_list.row(page, "milk").get_by_role("button", name="home").bounding_box()
        row = await task_list.row(page, "milk").bounding_box()
        assert label
        assert row
        if options is PHONE:
            assert label["height"] >= 24
            assert 50 <= row["height"] <= 60
        assert await page.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]


async def test_labels_and_repeat_are_shown_whole(open_list: OpenPage, tasks: TaskApi) -> None:
    labels = ["finance", "meeting", "quarterly-plan", "work"]
    title = "Prepare the long agenda of the meeting with all who want to come"
    await tasks.add(title, labels=labels, due="monday", repeat="FREQ=WEEKLY;BYDAY=MO,TH", priority="high")
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    for options in ({"viewport": {"width": 1440, "height": 900}}, PHONE):
        page = await open_list(path="/all", **options)
        shown = task_list.row(page, title).locator(".label, .words")
        await expect(shown).to_have_count(5)
        assert await shown.evaluate_all(cut) == []


async def test_row_does_not_repeat_its_heading(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("dentist", due="today 23:30")
    await tasks.add("passport", due=str(today(-1)), description="At the town hall.")
    page = await open_list(locale="en-GB")
    await task_list.see(page, "All")
    await expect(task_list.row(page, "milk").locator(".details")).to_have_count(0)
    await expect(task_list.row(page, "dentist").locator(".details")).to_have_text("23:30")
    await expect(task_list.row(page, "passport").locator(".due")).to_have_text("Yesterday")
    await expect(task_list.row(page, "passport").get_by_role("img", name="Has a description")).to_be_visible()


async def test_menu_of_a_row_sets_priority_and_day_and_deletes(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    menu = await task_list.open_menu(page, "milk")
    await expect(menu.get_by_role("button", name="Today")).to_have_attribute("aria-pressed", "true")
    await menu.get_by_role("button", name="High").click()
    await expect(menu).to_be_hidden()
    await expect(task_list.row(page, "milk").locator(".priority")).to_have_text("High")
    await expect(task_list.notice(page)).to_contain_text("Changed: “milk”")
    assert (await tasks.task("milk"))["priority"] == "high"
    menu = await task_list.open_menu(page, "milk")
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(screen.button(page, "More actions: milk")).to_be_focused()
    menu = await task_list.open_menu(page, "milk")
    await menu.get_by_role("button", name="Tomorrow").click()
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await tasks.until("upcoming", ["milk"])
    menu = await task_list.open_menu(page, "bread")
    await menu.get_by_role("button", name="Another day…").click()
    await page.get_by_role("dialog", name="When is “bread” due?").get_by_role("button", name="No date").click()
    await expect(task_list.titles(page)).to_have_count(0)


async def test_task_opens_in_a_sheet_on_a_phone(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list(**PHONE)
    sheet = page.get_by_role("dialog", name="Edit the task")
    await task_list.title_of(page, "milk").tap()
    await expect(sheet).to_be_focused()  # a field would open the keyboard
    place = await sheet.bounding_box()
    assert place
    assert (place["x"], place["width"], place["y"] + place["height"]) == (0, 390, 844)
    for name in ("Delete", "Cancel", "Save"):
        assert await screen.button(sheet, name).is_visible()
    await sheet.get_by_role("textbox", name="Description").fill("two litres\n" * 30)
    await page.set_viewport_size({"width": 390, "height": 400})  # as with a keyboard
    await expect(screen.button(sheet, "Save")).to_be_in_viewport(ratio=1)
    await sheet.get_by_role("textbox", name="Title").fill("oat milk")
    await screen.button(sheet, "Save").tap()
    await expect(sheet).to_be_hidden()
    await tasks.until("today", ["oat milk"])
    await task_list.title_of(page, "oat milk").tap()
    await sheet.get_by_role("textbox", name="Title").fill("milk")
    await page.keyboard.press("Escape")
    await expect(sheet).to_be_hidden()
    await expect(task_list.notice(page)).to_contain_text("Changes to “oat milk” discarded.")


async def swipe(page: Page, title: str, x: int, y: int = 0) -> None:
    """A finger that moves over the row of a task."""
    place = await task_list.title_of(page, title).bounding_box()
    assert place
    start = (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    session = await page.context.new_cdp_session(page)

    async def touch(kind: str, *points: tuple[float, float]) -> None:
        await session.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]}
        )

    await touch("touchStart", start)
    for step in range(1, 11):
        await touch("touchMove", (start[0] + x * step / 10, start[1] + y * step / 10))
    await touch("touchEnd")


async def stays_at_the_top(page: Page) -> bool:
    """Whether the rows, which may still move after the finger has left, stay where they are put."""
    await page.evaluate("document.querySelector('.rows').scrollTop = 0")
    await page.wait_for_timeout(200)
    return await page.evaluate("document.querySelector('.rows').scrollTop === 0")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
async def test_swipe_completes_or_moves_to_tomorrow(open_list: OpenPage, tasks: TaskApi, motion: str) -> None:
    await tasks.add_many([*"abcd", *(f"task {number}" for number in range(30))], due="today")
    page = await open_list(**PHONE, reduced_motion=motion)
    await swipe(page, "a", 60)
    await swipe(page, "a", -60)
    await swipe(page, "d", 20, -150)
    await expect(task_list.notice(page)).to_have_count(0)
    await screen.until(page, "document.querySelector('.rows').scrollTop > 50")
    await waiting.until(lambda: stays_at_the_top(page))
    await expect(page.get_by_role("dialog")).to_be_hidden()

    await swipe(page, "a", 150)
    await expect(task_list.notice(page)).to_contain_text("Completed: “a”")
    assert await tasks.titles("done") == ["a"]
    await task_list.notice(page).get_by_role("button", name="Undo").click()
    await expect(task_list.notice(page)).to_contain_text("Undone")
    await page.reload()  # the rows come back one after the other
    await task_list.loaded(page)
    await swipe(page, "b", -150)
    await expect(task_list.notice(page)).to_contain_text("Moved to Tomorrow: “b”")
    assert await tasks.titles("upcoming") == ["b"]
    await task_list.notice(page).get_by_role("button", name="Undo").click()
    await expect(task_list.notice(page)).to_contain_text("Undone")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await page.reload()
    await task_list.loaded(page)
    await task_list.title_of(page, "b").tap()
    await expect(page.get_by_role("dialog")).to_be_visible()
