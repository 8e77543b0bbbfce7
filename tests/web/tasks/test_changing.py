"""Ticking, editing and deleting tasks in the list, each with a way back."""

import pytest
from playwright.async_api import Page, Route, expect

from tests.web import screen
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def undo(page: Page) -> None:
    await listed.notice(page).get_by_role("button", name="Undo").click()


async def test_a_task_is_ticked_and_that_is_taken_back(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today")
    await stored.add("bread", due="today")
    page = await open_list()
    await listed.tick(page, "milk").click()
    await expect(listed.tick(page, "milk")).to_be_checked()
    await expect(listed.titles(page)).to_have_text(["bread"])
    await stored.until("done", ["milk"])
    await expect(listed.notice(page)).to_contain_text("Completed: “milk”")
    await undo(page)
    await expect(listed.titles(page)).to_have_text(["milk", "bread"])
    await stored.until("done", [])


async def test_a_task_is_opened_again(open_list: OpenList, stored: Stored) -> None:
    await stored.change(await stored.add("milk"), status="completed")
    page = await open_list()
    await listed.see(page, "Done")
    await listed.tick(page, "milk").click()
    await expect(listed.titles(page)).to_have_count(0)
    await stored.until("all", ["milk"])


async def test_of_a_task_that_repeats_the_next_one_is_told(open_list: OpenList, stored: Stored) -> None:
    await stored.add("plants", due="today", repeat="FREQ=DAILY")
    page = await open_list()
    await listed.tick(page, "plants").click()
    await expect(listed.notice(page)).to_contain_text("Completed: “plants” · next Tomorrow")


async def test_several_are_ticked_one_after_the_other_without_moving(open_list: OpenList, stored: Stored) -> None:
    for title in ("one", "two", "three"):
        await stored.add(title, due="today")
    page = await open_list()
    place = await listed.title_of(page, "three").bounding_box()
    await listed.tick(page, "one").click()
    await listed.tick(page, "two").click()
    assert await listed.title_of(page, "three").bounding_box() == place
    await expect(listed.titles(page)).to_have_text(["three"])


async def test_a_tick_that_is_refused_goes_back_with_a_sentence(open_list: OpenList, stored: Stored) -> None:
    task_id = await stored.add("milk", due="today")
    page = await open_list()
    await page.route("**/tasks/changes*", lambda route: route.abort())
    await stored.delete(task_id)
    await listed.tick(page, "milk").click()
    await expect(page.get_by_role("alert")).to_contain_text("There is no task")
    await expect(listed.titles(page)).to_have_count(0)


async def test_a_change_whose_answer_was_lost_is_made_once(open_list: OpenList, stored: Stored) -> None:
    await stored.add("plants", due="today", repeat="FREQ=DAILY")
    page = await open_list()
    keys: list[str | None] = []

    async def lose_the_response(route: Route) -> None:
        keys.append(await route.request.header_value("Idempotency-Key"))
        await route.fetch()
        await (route.abort() if len(keys) == 1 else route.continue_())

    await page.route("**/tasks/1", lose_the_response)
    await listed.tick(page, "plants").click()
    await expect(listed.titles(page)).to_have_count(0)
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert [task["due"] for task in await stored.view()] == [str(today(1))]


async def test_a_title_is_written_in_its_place(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today")
    page = await open_list()
    await listed.title_of(page, "milk").click()
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.type("oat milk")
    await page.keyboard.press("Enter")
    await expect(listed.title_of(page, "oat milk")).to_be_focused()
    await stored.until("today", ["oat milk"])
    await undo(page)
    await expect(listed.titles(page)).to_have_text(["milk"])


async def test_all_of_a_task_is_edited(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today", labels=["home"], priority="low")
    page = await open_list()
    await listed.title_of(page, "milk").click()
    form = listed.row(page, "").locator("form")
    await form.get_by_role("textbox", name="Description").fill("two litres")
    await form.get_by_label("Date").fill(str(today(2)))
    await form.get_by_label("Time").fill("15:30")
    await form.get_by_role("textbox", name="Repeat").fill("every 2 weeks")
    await form.get_by_role("combobox", name="Priority").select_option("High")
    await form.get_by_role("textbox", name="Labels").fill("shopping, work")
    await screen.button(form, "Save").click()
    await expect(listed.titles(page)).to_have_count(0)
    await stored.until("upcoming", ["milk"])
    task = await stored.task("milk")
    assert (task["due"], task["time"], task["priority"]) == (str(today(2)), "15:30", "high")
    assert (task["description"], task["labels"]) == ("two litres", ["shopping", "work"])
    assert task["repeat"].startswith("FREQ=WEEKLY;INTERVAL=2;BYDAY=")
    await listed.see(page, "Upcoming")
    await listed.title_of(page, "milk").click()
    for name, value in (("Time", ""), ("Labels", ""), ("Repeat", ""), ("Description", "")):
        await form.get_by_label(name).fill(value)
    await form.get_by_role("combobox", name="Priority").select_option("None")
    await screen.button(form, "Save").click()
    await expect(listed.row(page, "milk").locator(".details")).to_have_count(0)
    await expect(listed.notice(page)).to_contain_text("Changed")
    task = await stored.task("milk")
    assert (task["due"], task["time"], task["repeat"], task["priority"]) == (str(today(2)), None, None, None)
    assert (task["description"], task["labels"]) == ("", [])


async def test_what_cannot_be_is_said_before_it_is_sent(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today")
    page = await open_list()
    await listed.title_of(page, "milk").click()
    form = listed.row(page, "").locator("form")
    await form.get_by_role("textbox", name="Repeat").fill("now and then")
    await page.keyboard.press("Enter")
    await expect(form.get_by_role("alert")).to_contain_text("not understood")
    await page.keyboard.press("Escape")
    await expect(listed.title_of(page, "milk")).to_be_focused()
    assert (await stored.task("milk"))["repeat"] is None


async def test_an_edit_that_is_refused_is_open_again_as_it_was_written(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today")
    page = await open_list()
    await page.route("**/tasks/1", lambda route: route.fulfill(status=400, json={"error": "Not like this."}))
    await listed.title_of(page, "milk").click()
    await page.get_by_role("textbox", name="Title").fill("oat milk")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("Not like this.")
    await expect(page.get_by_role("textbox", name="Title")).to_have_value("oat milk")


async def test_a_task_is_deleted_and_comes_back(open_list: OpenList, stored: Stored) -> None:
    await stored.add("milk", due="today", description="two litres")
    await stored.add("bread", due="today")
    page = await open_list()
    await listed.row(page, "milk").hover()
    await page.get_by_role("button", name="Delete: milk").click()
    await expect(listed.titles(page)).to_have_text(["bread"])
    await stored.until("deleted", ["milk"])
    await undo(page)
    await expect(listed.titles(page)).to_have_text(["milk", "bread"])
    assert (await stored.task("milk"))["description"] == "two litres"


async def test_what_was_changed_since_is_not_taken_back(open_list: OpenList, stored: Stored) -> None:
    task_id = await stored.add("milk", due="today")
    page = await open_list()
    await listed.title_of(page, "milk").click()
    await page.get_by_role("textbox", name="Title").fill("bread")
    await page.keyboard.press("Enter")
    await stored.until("today", ["bread"])
    await stored.change(task_id, title="butter")
    await undo(page)
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(listed.titles(page)).to_have_text(["butter"])
