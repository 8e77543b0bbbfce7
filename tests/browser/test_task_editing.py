"""Ticking, editing and deleting tasks in the list, each with a way back."""

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def undo(page: Page) -> None:
    await task_list.notice(page).get_by_role("button", name="Undo").click()


def rows_form(page: Page) -> Locator:
    """That of the task which is edited."""
    return task_list.rows(page).locator("form")


async def reject_changes(route: Route) -> None:
    if route.request.method == "GET":  # the list reads the task again meanwhile
        await route.fallback()
    else:
        await route.fulfill(status=400, json={"error": "Not like this."})


async def test_tick_and_undo(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    heard = page.locator("todo-tasks > [aria-live=polite]")
    await task_list.tick(page, "milk").click()
    await expect(task_list.tick(page, "milk")).to_be_checked()
    await expect(heard).to_have_text("Completed: “milk”")
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await tasks.until("done", ["milk"])
    await expect(task_list.notice(page)).to_contain_text("Completed: “milk”")
    await undo(page)
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    await tasks.until("done", [])
    await tasks.add("plants", due="today", repeat="FREQ=DAILY")
    await task_list.tick(page, "plants").click()
    await expect(task_list.notice(page)).to_contain_text("Completed: “plants” · next: Tomorrow")


async def test_ticked_tasks_keep_the_others_in_place(open_list: OpenPage, tasks: TaskApi) -> None:
    for title in ("one", "two", "three"):
        await tasks.add(title, due="today")
    page = await open_list()
    place = await task_list.title_of(page, "three").bounding_box()
    await task_list.tick(page, "one").click()
    await task_list.tick(page, "two").click()
    assert await task_list.title_of(page, "three").bounding_box() == place
    await expect(task_list.titles(page)).to_have_text(["three"])


async def test_rejected_tick_goes_back(open_list: OpenPage, tasks: TaskApi) -> None:
    task_id = await tasks.add("milk", due="today")
    page = await open_list()
    await page.route("**/tasks/changes*", lambda route: route.abort())
    await tasks.delete(task_id)
    await task_list.tick(page, "milk").click()
    await expect(page.get_by_role("alert")).to_contain_text("There is no task")
    await expect(task_list.titles(page)).to_have_count(0)


async def test_change_whose_answer_was_lost_is_made_once(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("plants", due="today", repeat="FREQ=DAILY")
    page = await open_list()
    keys: list[str | None] = []

    async def lose_the_response(route: Route) -> None:
        keys.append(await route.request.header_value("Idempotency-Key"))
        await route.fetch()
        await (route.abort() if len(keys) == 1 else route.continue_())

    await page.route("**/tasks/1", lose_the_response)
    await task_list.tick(page, "plants").click()
    await expect(task_list.titles(page)).to_have_count(0)
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert [task["due"] for task in await tasks.view()] == [str(today(1))]


async def test_edit_every_field(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today", labels=["home"], priority="low")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    form = task_list.row(page, "").locator("form")
    await form.get_by_role("textbox", name="Repeat").fill("now and then")
    await page.keyboard.press("Enter")
    await expect(form.get_by_role("alert")).to_contain_text("don't recognise")
    await page.keyboard.press("Escape")
    await expect(task_list.title_of(page, "milk")).to_be_focused()
    assert (await tasks.task("milk"))["repeat"] is None
    await task_list.title_of(page, "milk").click()
    await form.get_by_role("textbox", name="Description").fill("two litres")
    await form.get_by_label("Date").fill(str(today(2)))
    await form.get_by_label("Time").fill("15:30")
    await form.get_by_role("textbox", name="Repeat").fill("every 2 weeks")
    await form.get_by_role("combobox", name="Priority").select_option("High")
    await form.get_by_role("textbox", name="Labels").fill("shopping, work")
    await screen.button(form, "Save").click()
    await expect(task_list.titles(page)).to_have_count(0)
    await tasks.until("upcoming", ["milk"])
    task = await tasks.task("milk")
    assert (task["due"], task["time"], task["priority"]) == (str(today(2)), "15:30", "high")
    assert (task["description"], task["labels"]) == ("two litres", ["shopping", "work"])
    assert task["repeat"].startswith("FREQ=WEEKLY;INTERVAL=2;BYDAY=")
    await task_list.see(page, "Upcoming")
    await task_list.title_of(page, "milk").click()
    for name, value in (("Time", ""), ("Labels", ""), ("Repeat", ""), ("Description", "")):
        await form.get_by_label(name).fill(value)
    await form.get_by_role("combobox", name="Priority").select_option("None")
    await screen.button(form, "Save").click()
    await expect(task_list.row(page, "milk").locator(".details")).to_have_count(0)
    await expect(task_list.notice(page)).to_contain_text("Changed")
    task = await tasks.task("milk")
    assert (task["due"], task["time"], task["repeat"], task["priority"]) == (str(today(2)), None, None, None)
    assert (task["description"], task["labels"]) == ("", [])


async def test_edit_is_saved_when_another_task_is_opened_and_open_again_if_rejected(
    open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    title = page.get_by_role("textbox", name="Title")
    await task_list.title_of(page, "milk").click()
    await title.fill("oat milk")
    await task_list.title_of(page, "bread").click()
    await expect(title).to_have_value("bread")
    await expect(title).to_be_focused()
    await tasks.until("today", ["oat milk", "bread"])
    await title.fill("")
    await task_list.title_of(page, "oat milk").click()
    await expect(page.get_by_role("alert")).to_have_text("A task needs a title.")
    await expect(title).to_be_focused()
    await title.fill("rye bread")
    await page.route("**/tasks/2", reject_changes)
    await task_list.title_of(page, "oat milk").click()
    await expect(task_list.notice(page)).to_contain_text("Not like this.")
    await expect(title).to_have_value("oat milk")
    await task_list.notice(page).get_by_role("button", name="Edit").click()
    await expect(title).to_have_value("rye bread")
    await title.press("Enter")
    await expect(rows_form(page).get_by_role("alert")).to_contain_text("Not like this.")
    await expect(title).to_have_value("rye bread")


async def test_discarded_edit_can_be_restored(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    description = page.get_by_role("textbox", name="Description")
    await task_list.title_of(page, "milk").click()
    await description.fill("two litres")
    await page.reload()
    await expect(description).to_have_value("two litres")
    await description.press("Escape")
    await expect(task_list.notice(page)).to_contain_text("Changes to “milk” discarded.")
    await undo(page)
    await expect(description).to_have_value("two litres")
    await page.keyboard.press("Escape")
    await page.reload()
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    await task_list.title_of(page, "milk").click()
    await expect(description).to_have_value("")
    await page.keyboard.press("Escape")
    await expect(task_list.notice(page)).to_have_count(0)


async def test_delete_and_undo_but_not_what_has_changed_since(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today", description="two litres")
    await tasks.add("bread", due="today")
    page = await open_list()
    await task_list.row(page, "milk").hover()
    await page.get_by_role("button", name="Delete: milk").click()
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await tasks.until("deleted", ["milk"])
    await undo(page)
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    assert (await tasks.task("milk"))["description"] == "two litres"
    await expect(task_list.notice(page)).to_contain_text("Undone")
    await task_list.title_of(page, "bread").click()
    await page.get_by_role("textbox", name="Title").fill("rye bread")
    await page.keyboard.press("Enter")
    await expect(task_list.notice(page)).to_contain_text("Changed: “bread”")
    await tasks.change(2, title="butter")
    await undo(page)
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(task_list.titles(page)).to_have_text(["milk", "butter"])
