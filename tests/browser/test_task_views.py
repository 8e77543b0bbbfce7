"""What each view of the list shows, and how it is searched and filtered."""

import pytest
from playwright.async_api import expect

from tests.browser import task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def test_views_and_a_deleted_task_that_is_restored(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("passport", due=str(today(-3)))
    await tasks.add("dentist", due=f"{today(1)} 15:00")
    await tasks.add("later", due=str(today(40)))
    await tasks.add("some day")
    await tasks.change(await tasks.add("done"), status="completed")
    await tasks.delete(await tasks.add("gone", labels=["shopping"]))
    page = await open_list()
    titles = task_list.titles(page)
    await expect(titles).to_have_text(["passport", "milk"])
    await expect(task_list.section(page, "Overdue")).to_contain_text("passport")
    await expect(task_list.section(page, "Today")).to_contain_text("milk")
    await task_list.see(page, "Upcoming")
    await expect(titles).to_have_text(["dentist", "later"])
    await expect(task_list.section(page, "Tomorrow")).to_contain_text("dentist")
    await task_list.see(page, "All")
    await expect(titles).to_have_text(["passport", "milk", "dentist", "later", "some day"])
    await expect(task_list.section(page, "No date")).to_contain_text("some day")
    await task_list.see(page, "Done")
    await expect(titles).to_have_text(["done"])
    await task_list.see(page, "Deleted")
    await task_list.row(page, "gone").get_by_role("button", name="Restore").click()
    await expect(titles).to_have_count(0)
    await tasks.until("all", ["passport", "milk", "dentist", "later", "some day", "gone"])
    assert (await tasks.task("gone"))["labels"] == ["shopping"]


async def test_search_while_typing_and_filters(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("buy milk", due="today", labels=["shopping"])
    await tasks.add("buy bread", due="today", labels=["shopping"], priority="high")
    await tasks.add("call mum", due="today", priority="high")
    page = await open_list()
    search = page.get_by_role("searchbox", name="Search tasks")
    await search.press_sequentially("buy")
    await expect(task_list.titles(page)).to_have_text(["buy milk", "buy bread"])
    await search.press_sequentially(" br")
    await expect(task_list.titles(page)).to_have_text(["buy bread"])
    await expect(search).to_be_focused()
    await search.fill("nothing of this")
    await expect(task_list.rows(page)).to_contain_text("No matches")
    await expect(page.locator("todo-tasks > [aria-live=polite]")).to_have_text("No tasks match.")
    await search.fill("")
    await expect(task_list.titles(page)).to_have_count(3)

    await page.get_by_role("button", name="Filter").click()
    await page.get_by_role("combobox", name="Label").select_option("shopping")
    await expect(task_list.titles(page)).to_have_text(["buy milk", "buy bread"])
    await page.get_by_role("combobox", name="Priority").select_option("High")
    await expect(task_list.titles(page)).to_have_text(["buy bread"])
    await page.get_by_role("button", name="Clear filters").click()
    await expect(task_list.titles(page)).to_have_count(3)
    await task_list.row(page, "buy milk").get_by_role("button", name="shopping").click()
    await expect(task_list.titles(page)).to_have_text(["buy milk", "buy bread"])
