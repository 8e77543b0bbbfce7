"""Tasks go to other days: by words, by a picker, by dragging and by keyboard; alone or several at once."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.web import screen
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def days(stored: Stored) -> dict[str, str | None]:
    return {task["title"]: task["due"] for task in await stored.view()}


async def ask(page: Page, title: str) -> None:
    await listed.row(page, title).hover()
    await page.get_by_role("button", name=f"Change the date: {title}").click()


async def test_a_date_is_given_in_words(open_list: OpenList, stored: Stored) -> None:
    await stored.add("dentist", due="today")
    page = await open_list(locale="en-GB")
    await ask(page, "dentist")
    dialog = page.get_by_role("dialog", name="When is “dentist” due?")
    await expect(dialog.get_by_role("textbox", name="Date in words")).to_be_focused()
    await page.keyboard.type("no date at all")
    await expect(dialog).to_contain_text("This is no date that the list knows")
    await page.keyboard.press("Enter")
    await dialog.get_by_role("textbox", name="Date in words").fill("in 2 days at 15:00")
    await expect(dialog.get_by_role("button", name="15:00")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    await expect(listed.titles(page)).to_have_count(0)
    await expect(listed.notice(page)).to_contain_text("Moved to")
    task = await stored.task("dentist")
    assert (task["due"], task["time"]) == (str(today(2)), "15:00")
    await listed.notice(page).get_by_role("button", name="Undo").click()
    await expect(listed.titles(page)).to_have_text(["dentist"])


async def test_a_date_is_picked_or_taken_away(open_list: OpenList, stored: Stored) -> None:
    await stored.add("dentist", due="today 15:00")
    page = await open_list()
    await ask(page, "dentist")
    await page.get_by_label("Pick a day").fill(str(today(9)))
    await screen.button(page, "Move").click()
    await expect(listed.titles(page)).to_have_count(0)
    await expect(listed.notice(page)).to_contain_text("Moved to")
    task = await stored.task("dentist")
    assert (task["due"], task["time"]) == (str(today(9)), "15:00"), "the clock time stays"
    await listed.see(page, "Upcoming")
    await ask(page, "dentist")
    await screen.button(page, "No date").click()
    await expect(listed.titles(page)).to_have_count(0)
    await expect(listed.notice(page)).to_contain_text("Date taken away")
    assert await days(stored) == {"dentist": None}


async def test_a_task_is_dragged_to_another_day(open_list: OpenList, stored: Stored) -> None:
    await stored.add("dentist", due="tomorrow")
    page = await open_list()
    await listed.see(page, "Upcoming")
    await listed.row(page, "dentist").drag_to(listed.rows(page).locator("section[data-day]").nth(2))
    target = listed.rows(page).locator(f"section[data-day='{today(3)}']")
    await expect(target).to_contain_text("dentist")
    await expect(listed.notice(page)).to_contain_text("Moved to")
    assert await days(stored) == {"dentist": str(today(3))}
    await listed.row(page, "dentist").drag_to(page.get_by_role("button", name="Today", exact=True))
    await expect(listed.titles(page)).to_have_count(0)
    await stored.until("today", ["dentist"])


async def test_a_task_goes_from_day_to_day_by_keyboard(open_list: OpenList, stored: Stored) -> None:
    await stored.add("dentist", due="tomorrow")
    page = await open_list()
    await listed.see(page, "Upcoming")
    await listed.title_of(page, "dentist").focus()
    await page.keyboard.press("Alt+ArrowDown")
    await expect(listed.rows(page).locator(f"section[data-day='{today(2)}']")).to_contain_text("dentist")
    await expect(listed.title_of(page, "dentist")).to_be_focused()
    await page.keyboard.press("Alt+ArrowDown")
    await expect(listed.rows(page).locator(f"section[data-day='{today(3)}']")).to_contain_text("dentist")
    await page.keyboard.press("Alt+ArrowUp")
    await expect(listed.rows(page).locator(f"section[data-day='{today(2)}']")).to_contain_text("dentist")
    await stored.until("upcoming", ["dentist"])
    await expect(listed.notice(page)).to_contain_text("Moved to")
    await page.keyboard.press("ControlOrMeta+z")
    await expect(listed.rows(page).locator(f"section[data-day='{today(3)}']")).to_contain_text("dentist")


async def test_what_is_taken_back_by_keyboard_is_what_was_done_last(open_list: OpenList, stored: Stored) -> None:
    async def late(route: Route) -> None:
        await asyncio.sleep(0.5)
        await route.continue_()

    await stored.add("dentist", due="tomorrow")
    page = await open_list()
    await listed.see(page, "Upcoming")
    await listed.title_of(page, "dentist").focus()
    await page.keyboard.press("Alt+ArrowDown")
    await expect(listed.notice(page)).to_contain_text("Moved to")
    await page.route(re.compile(r"/tasks/\d+$"), late)
    await page.keyboard.press("Alt+ArrowDown")
    await page.keyboard.press("ControlOrMeta+z")
    await expect(listed.notice(page)).to_contain_text("Taken back")
    await expect(listed.rows(page).locator(f"section[data-day='{today(2)}']")).to_contain_text("dentist")


async def test_several_are_selected_by_boxes_and_moved(open_list: OpenList, stored: Stored) -> None:
    for title in ("one", "two", "three", "four"):
        await stored.add(title, due="today")
    page = await open_list()
    await page.get_by_role("button", name="Select tasks").click()
    await listed.box(page, "one").check()
    await listed.box(page, "three").click(modifiers=["Shift"])
    bar = page.get_by_role("toolbar", name="3 selected")
    await bar.get_by_role("button", name="Move to…").click()
    await page.get_by_role("dialog", name="Move 3 tasks to").get_by_role("button", name="Tomorrow").click()
    await expect(listed.titles(page)).to_have_text(["four"])
    await expect(listed.notice(page)).to_contain_text("Moved to Tomorrow: 3 tasks")
    await stored.until("upcoming", ["one", "two", "three"])
    await listed.notice(page).get_by_role("button", name="Undo").click()
    await expect(listed.titles(page)).to_have_count(4)


async def test_several_are_selected_by_keyboard_and_completed_or_deleted(open_list: OpenList, stored: Stored) -> None:
    for title in ("one", "two", "three", "four"):
        await stored.add(title, due="today")
    page = await open_list()
    await listed.title_of(page, "one").focus()
    await page.keyboard.press("Shift+ArrowDown")
    await expect(page.get_by_role("toolbar", name="2 selected")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("x")
    bar = page.get_by_role("toolbar", name="3 selected")
    await bar.get_by_role("button", name="Complete").click()
    await expect(listed.titles(page)).to_have_text(["three"])
    await expect(listed.notice(page)).to_contain_text("Completed: 3 tasks")
    await stored.until("today", ["three"])
    await listed.notice(page).get_by_role("button", name="Undo").click()
    await expect(listed.titles(page)).to_have_count(4)
    await listed.title_of(page, "one").click(modifiers=["ControlOrMeta"])
    await listed.title_of(page, "two").click(modifiers=["Shift"])
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    await expect(listed.titles(page)).to_have_text(["three", "four"])
    await stored.until("today", ["three", "four"])


async def test_more_than_a_hundred_are_changed_at_once_and_taken_back(open_list: OpenList, stored: Stored) -> None:
    for number in range(103):
        await stored.add(f"task {number}", due="today")
    page = await open_list(viewport={"width": 1280, "height": 900})
    await page.get_by_role("button", name="Select tasks").click()
    await listed.box(page, "task 0").check()
    await page.keyboard.press("End")  # the rest is read
    await listed.box(page, "task 102").click(modifiers=["Shift"])
    await page.get_by_role("toolbar", name="103 selected").get_by_role("button", name="Delete").click()
    await expect(listed.rows(page)).to_contain_text("Nothing is due today")
    await expect(listed.notice(page)).to_contain_text("Deleted: 103 tasks")
    assert await stored.titles() == []
    await listed.notice(page).get_by_role("button", name="Undo").click()
    await expect(listed.titles(page).first).to_be_visible()
    await expect(listed.region(page).locator(".total")).to_have_text("103")
