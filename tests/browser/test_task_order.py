"""The order of the list, the counts of its sections, and a scroll bar that is true for tasks that are not loaded."""

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi, today
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

PAGE_OF_LIST = re.compile(r"/tasks\?")
HEIGHT = "document.querySelector('.rows').scrollHeight"
SCROLL = "(part) => { const rows = document.querySelector('.rows'); rows.scrollTop = part * rows.scrollHeight; }"


def count_of(page: Page, section: str) -> Locator:
    return task_list.section(page, section).locator(".count")


async def sort(page: Page, order: str) -> None:
    await task_list.region(page).get_by_role("combobox", name="Sort by").select_option(order)


async def test_tasks_are_sorted_by_priority_and_as_chosen_for_each_view(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("Bread", due="today", priority="low")
    await tasks.add("ápple", due="today 23:00")
    await tasks.add("milk", due=str(today(-1)))
    await tasks.add("Water", due="today", priority="high")
    page = await open_list()
    titles = task_list.titles(page)
    await expect(titles).to_have_text(["milk", "Water", "Bread", "ápple"])
    await sort(page, "Title")
    await expect(titles).to_have_text(["ápple", "Bread", "milk", "Water"])
    await expect(task_list.rows(page).get_by_role("heading")).to_have_count(0)
    await expect(task_list.row(page, "Bread").locator(".due")).to_have_text("Today")
    await sort(page, "Date added")
    await expect(titles).to_have_text(["Water", "milk", "ápple", "Bread"])
    await task_list.see(page, "All")
    await expect(titles).to_have_text(["milk", "Water", "Bread", "ápple"])
    await sort(page, "Priority")
    await expect(titles).to_have_text(["Water", "Bread", "milk", "ápple"])
    await page.reload()
    await task_list.see(page, "Today")
    await expect(titles).to_have_text(["Water", "milk", "ápple", "Bread"])
    await task_list.see(page, "All")
    await expect(titles).to_have_text(["Water", "Bread", "milk", "ápple"])


async def test_change_is_shown_in_its_place_before_it_is_saved(open_list: OpenPage, tasks: TaskApi) -> None:
    for title in ("one", "two", "three"):
        await tasks.add(title, due="today")
    await tasks.add("four", due="tomorrow")
    page = await open_list()
    await task_list.see(page, "All")
    saved = asyncio.Event()

    async def later(route: Route) -> None:
        await saved.wait()
        await route.continue_()

    await page.route(re.compile(r"/tasks/\d+$"), later)
    menu = await task_list.open_menu(page, "three")
    await menu.get_by_role("button", name="High").click()
    await expect(task_list.titles(page)).to_have_text(["three", "one", "two", "four"])
    menu = await task_list.open_menu(page, "one")
    await menu.get_by_role("button", name="Tomorrow").click()
    await expect(task_list.titles(page)).to_have_text(["three", "two", "one", "four"])
    await expect(count_of(page, "Today")).to_have_text("2")
    await expect(count_of(page, "Upcoming")).to_have_text("2")
    saved.set()
    await expect(task_list.notice(page)).to_contain_text("Moved to Tomorrow")
    await page.reload()
    await task_list.see(page, "All")
    await expect(task_list.titles(page)).to_have_text(["three", "two", "one", "four"])


async def test_all_overdue_tasks_are_counted_and_moved_to_today(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"late {number}" for number in range(127)], due=str(today(-2)))
    await tasks.add("milk", due="today")
    page = await open_list()
    await expect(count_of(page, "Overdue")).to_have_text("127")
    await screen.button(page, "Move all to today").click()
    await expect(task_list.section(page, "Overdue")).to_have_count(0)
    await expect(count_of(page, "Today")).to_have_text("128")
    await expect(task_list.notice(page)).to_contain_text("Moved to Today: 127 tasks")
    await task_list.notice(page).get_by_role("button", name="Undo").click()
    await expect(count_of(page, "Overdue")).to_have_text("127")
    await page.evaluate(SCROLL, 1)
    await expect(count_of(page, "Today")).to_have_text("1")


async def test_overdue_tasks_that_a_filter_hides_are_not_moved(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("rent", due=str(today(-2)), labels=["home"])
    await tasks.add("report", due=str(today(-1)))
    page = await open_list()
    await page.get_by_role("searchbox", name="Search tasks").fill("rent")
    await expect(task_list.titles(page)).to_have_text(["rent"])
    await screen.button(page, "Move all to today").click()
    await expect(task_list.section(page, "Overdue")).to_have_count(0)
    await expect(task_list.notice(page)).to_contain_text("Moved to Today: “rent”")
    assert (await tasks.task("rent"))["due"] == str(today())
    assert (await tasks.task("report"))["due"] == str(today(-1))


async def test_scroll_bar_is_true_from_the_first_page_on(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number}" for number in range(700)], due="tomorrow")
    page = await open_list()
    pages: list[str] = []
    page.on("request", lambda request: pages.append(request.url) if PAGE_OF_LIST.search(request.url) else None)
    await task_list.see(page, "Upcoming")
    await expect(task_list.title_of(page, "task 0")).to_be_visible()
    height = await page.evaluate(HEIGHT)
    assert height > 700 * 38
    assert len(pages) == 1
    await page.evaluate(SCROLL, 0.5)
    await expect(task_list.rows(page).locator(".missing").first).to_be_attached()
    await expect(task_list.title_of(page, "task 350")).to_be_visible()
    await expect(task_list.rows(page).locator(".missing")).to_have_count(0)
    assert len(pages) <= 3
    assert abs(await page.evaluate(HEIGHT) - height) < 100
    assert await page.locator(".rows [data-row]").count() < 100, "only what is seen is drawn"
    await page.evaluate(SCROLL, 1)
    await expect(task_list.title_of(page, "task 699")).to_be_visible()

    await page.evaluate(SCROLL, 0)
    await task_list.title_of(page, "task 0").focus()
    await page.keyboard.press("End")
    await expect(task_list.title_of(page, "task 699")).to_be_focused()
    await expect(task_list.title_of(page, "task 699")).to_be_in_viewport()
    await tasks.change(350, title="changed")
    await tasks.delete(2)
    await expect(count_of(page, "Tomorrow")).to_have_text("699")
    await expect(task_list.title_of(page, "task 699")).to_be_in_viewport()
    await page.evaluate(SCROLL, 0.5)
    await expect(task_list.title_of(page, "changed")).to_be_visible()


async def test_long_descriptions_are_loaded_in_several_pages(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number}" for number in range(40)], due="today", description="x" * 3900)
    page = await open_list(viewport={"width": 1280, "height": 2400})
    await expect(task_list.titles(page)).to_have_text([f"task {number}" for number in range(40)])


async def test_sections_are_loaded_again_when_the_time_of_a_task_has_passed(
    open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add("dentist", due="today 23:59")
    page = await open_list(prepare=lambda page: page.clock.install())
    pages: list[str] = []
    page.on("request", lambda request: pages.append(request.url) if PAGE_OF_LIST.search(request.url) else None)
    await page.clock.run_for(5_000)
    assert pages == []
    await page.clock.fast_forward(24 * 60 * 60 * 1000)
    await until(lambda: len(pages) > 0)
