"""What each view shows, and what is looked for in it."""

import re

import pytest
from playwright.async_api import expect

from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def test_today_begins_with_what_is_overdue(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today")
    await stored.add("passport", due=str(today(-3)))
    await stored.add("dentist", due="tomorrow")
    await stored.add("some day")
    page = await open_list()
    await expect(listed.titles(page)).to_have_text(["passport", "milk"])
    await expect(listed.section(page, "Overdue")).to_contain_text("passport")
    await expect(listed.section(page, "Today")).to_contain_text("milk")


async def test_upcoming_has_a_part_for_each_day(open_list: OpenList, stored: Stored) -> None:
    await stored.add("later", due=str(today(40)))
    await stored.add("dentist", due=f"{today(1)} 15:00")
    await stored.add("train", due=str(today(1)))
    await stored.add("milk", due="today")
    page = await open_list()
    await listed.see(page, "Upcoming")
    await expect(listed.titles(page)).to_have_text(["dentist", "train", "later"])
    await expect(listed.section(page, "Tomorrow").get_by_role("listitem")).to_have_count(2)
    await expect(listed.rows(page).get_by_text("Nothing planned")).to_have_count(6)


async def test_all_has_the_undated_last(open_list: OpenList, stored: Stored) -> None:
    for title, due in (("some day", None), ("dentist", "tomorrow"), ("passport", str(today(-1))), ("milk", "today")):
        await stored.add(title, due=due)
    page = await open_list()
    await listed.see(page, "All")
    await expect(listed.titles(page)).to_have_text(["passport", "milk", "dentist", "some day"])
    headings = ["Overdue 1", re.compile(r"\s*Today\s[\s\S]+\s1\s*"), "Upcoming 1", "No date 1"]
    await expect(listed.rows(page).get_by_role("heading")).to_have_text(headings)


async def test_done_begins_with_a_bar_for_each_day_of_four_weeks(open_list: OpenList, stored: Stored) -> None:
    for title in ("first", "second"):
        await stored.change(await stored.add(title), status="completed")
    page = await open_list()
    await listed.see(page, "Done")
    await expect(listed.titles(page)).to_have_text(["second", "first"])
    chart = listed.rows(page).get_by_role("img")
    await expect(chart).to_have_accessible_name(
        re.compile(r"Done in the last four weeks: 2\. Most on .+: 2\. Today: 2\.")
    )
    await expect(chart.locator("rect")).to_have_count(28)
    await expect(chart.locator("rect.some")).to_have_count(1)
    await expect(listed.rows(page).locator("figcaption")).to_have_text("2 done in the last four weeks")


async def test_what_was_deleted_can_be_brought_back(open_list: OpenList, stored: Stored) -> None:
    await stored.delete(await stored.add("milk", labels=["shopping"]))
    page = await open_list()
    await listed.see(page, "Deleted")
    await listed.row(page, "milk").get_by_role("button", name="Restore").click()
    await expect(listed.titles(page)).to_have_count(0)
    await stored.until("all", ["milk"])
    assert (await stored.task("milk"))["labels"] == ["shopping"]


async def test_a_search_goes_on_while_one_types(open_list: OpenList, stored: Stored) -> None:
    for title in ("buy milk", "buy bread", "call mum"):
        await stored.add(title, due="today")
    page = await open_list()
    search = page.get_by_role("searchbox", name="Search tasks")
    await search.press_sequentially("buy")
    await expect(listed.titles(page)).to_have_text(["buy milk", "buy bread"])
    await search.press_sequentially(" br")
    await expect(listed.titles(page)).to_have_text(["buy bread"])
    await expect(search).to_be_focused()
    await search.fill("nothing of this")
    await expect(listed.rows(page)).to_contain_text("No task fits")
    await search.fill("")
    await expect(listed.titles(page)).to_have_count(3)


async def test_label_and_priority_narrow_a_view(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today", labels=["shopping"])
    await stored.add("bread", due="today", labels=["shopping"], priority="high")
    await stored.add("mum", due="today", priority="high")
    page = await open_list()
    await page.get_by_role("button", name="Filter").click()
    await page.get_by_role("combobox", name="Label").select_option("shopping")
    await expect(listed.titles(page)).to_have_text(["milk", "bread"])
    await page.get_by_role("combobox", name="Priority").select_option("High")
    await expect(listed.titles(page)).to_have_text(["bread"])
    await page.get_by_role("button", name="Clear").click()
    await expect(listed.titles(page)).to_have_count(3)
    await listed.row(page, "milk").get_by_role("button", name="shopping").click()
    await expect(listed.titles(page)).to_have_text(["milk", "bread"])


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ("Today", "Nothing is due today"),
        ("Upcoming", "Nothing planned"),
        ("All", "No open tasks"),
        ("Done", "Nothing is done yet"),
        ("Deleted", "Nothing was deleted"),
    ],
)
async def test_an_empty_view_says_what_it_is_for(open_list: OpenList, stored: Stored, view: str, said: str) -> None:
    page = await open_list()
    await listed.see(page, view)
    await expect(listed.rows(page).get_by_text(said).first).to_be_visible()
