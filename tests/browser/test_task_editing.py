"""Views and filters of the list; ticking, editing and deleting tasks, each with a way back."""

import asyncio

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi, today
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


# In the page, since the two tasks stay for 1.2 s only.
TICK_AND_MEASURE = """async () => {
    const box = (title) => document.querySelector(`.rows [aria-label="Done: ${title}"]`);
    const before = box("butter").getBoundingClientRect().y;
    for (const title of ["milk", "bread"]) box(title).click();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return [before, box("butter").getBoundingClientRect().y];
}"""


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


async def test_ticks_keep_the_others_in_place_and_are_undone_or_rejected(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    heard = page.locator("todo-tasks > [aria-live=polite]")
    seen = asyncio.Event()

    async def read_later(route: Route) -> None:
        await seen.wait()
        await route.continue_()

    await page.route("**/tasks?view=today*", read_later)
    await task_list.tick(page, "milk").click()
    await expect(task_list.tick(page, "milk")).to_be_checked()
    await expect(heard).to_have_text("Completed: “milk”")
    seen.set()
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await tasks.until("done", ["milk"])
    await expect(task_list.notice(page)).to_contain_text("Completed: “milk”")
    await undo(page)
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    await tasks.until("done", [])
    await tasks.add("plants", due="today", repeat="FREQ=DAILY")
    await task_list.tick(page, "plants").click()
    await expect(task_list.notice(page)).to_contain_text("Completed: “plants” · next: Tomorrow")

    butter = await tasks.add("butter", due="today")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread", "butter"])
    before, after = await page.evaluate(TICK_AND_MEASURE)
    assert after == before
    await expect(task_list.titles(page)).to_have_text(["butter"])

    async def delete_first(route: Route) -> None:
        await tasks.delete(butter)
        await route.continue_()

    await page.route(f"**/tasks/{butter}", delete_first)
    await task_list.tick(page, "butter").click()
    await expect(page.get_by_role("alert")).to_contain_text("There is no task")
    await expect(task_list.titles(page)).to_have_count(0)


async def test_edit_a_reminder(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("dentist", due=f"{today()} 23:59", remind=10)
    page = await open_list()
    await expect(task_list.row(page, "dentist")).to_contain_text("reminder 10 min before")
    await task_list.title_of(page, "dentist").click()
    form = task_list.row(page, "").locator("form")
    reminder = form.get_by_role("combobox", name="Reminder")
    await expect(reminder).to_have_value("+10")
    await expect(form.get_by_role("textbox", name="Minutes before")).to_have_count(0)
    await reminder.select_option("Other")
    for wrong in ("", "40321", "soon", "1.5", "1e3", "0x10"):
        await form.get_by_role("textbox", name="Minutes before").fill(wrong)
        await screen.button(form, "Save").click()
        await expect(form.get_by_role("alert")).to_contain_text("Write the minutes as a whole number")
    await reminder.select_option("1 day before")
    await form.get_by_label("Time").fill("")
    await screen.button(form, "Save").click()
    await expect(form.get_by_role("alert")).to_contain_text("Add a time for this reminder.")
    await form.get_by_label("Time").fill("23:58")
    await screen.button(form, "Save").click()
    await expect(task_list.row(page, "dentist")).to_contain_text("reminder 1 day before")
    assert (await tasks.task("dentist"))["remind"] == 1440
    await task_list.title_of(page, "dentist").click()
    await reminder.select_option("Default")
    await screen.button(form, "Save").click()
    await expect(form).to_have_count(0)  # it was saved; until then there is no row with this text
    await expect(task_list.row(page, "dentist")).not_to_contain_text("reminder")
    assert (await tasks.task("dentist"))["remind"] is None
    await undo(page)
    await expect(task_list.row(page, "dentist")).to_contain_text("reminder 1 day before")


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
    await until(lambda: len(keys) == 2)  # the list may be read before
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
    await task_list.title_of(page, "milk").click()
    await form.get_by_role("textbox", name="Description").fill("two litres")
    await form.get_by_label("Date").fill(str(today(2)))
    await form.get_by_label("Time").fill("15:30")
    await form.get_by_role("textbox", name="Repeat").fill("every 2 weeks")
    await form.get_by_role("combobox", name="Reminder").select_option("Other")
    await form.get_by_role("textbox", name="Minutes before").fill("45")
    await form.get_by_role("combobox", name="Priority").select_option("High")
    await form.get_by_role("textbox", name="Labels").fill("shopping, work")
    await screen.button(form, "Save").click()
    await expect(task_list.titles(page)).to_have_count(0)
    await tasks.until("upcoming", ["milk"])
    task = await tasks.task("milk")
    assert (task["due"], task["time"], task["priority"]) == (str(today(2)), "15:30", "high")
    assert task["remind"] == 45
    assert (task["description"], task["labels"]) == ("two litres", ["shopping", "work"])
    assert task["repeat"].startswith("FREQ=WEEKLY;INTERVAL=2;BYDAY=")


async def test_text_that_is_too_long_or_empty_is_said_before_it_is_sent(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today", labels=[f"l{n}" for n in range(9)])
    await tasks.add("bread", due="today")
    page = await open_list()
    added = task_list.adding(page)
    await added.fill("\u200b")
    await expect(screen.button(page, "Add")).to_have_count(0)
    await added.press("Enter")
    await added.fill("\u200b #home")
    await expect(task_list.understood(page)).to_contain_text("A task needs a title.")
    await added.press("Enter")
    await expect(added).to_have_value("\u200b #home")
    await added.fill("")

    search = page.get_by_role("searchbox", name="Search tasks")
    await search.fill("word " * 21)
    await expect(task_list.rows(page)).to_contain_text("A search can have up to 20 words and 200 characters.")
    await search.fill("x" * 201)
    await expect(task_list.rows(page)).to_contain_text("A search can have up to 20 words and 200 characters.")
    await search.fill("")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])

    await task_list.title_of(page, "bread").focus()
    await page.keyboard.press("l")
    dialog = page.get_by_role("dialog")
    labels = dialog.get_by_role("textbox", name="Labels")
    await labels.fill("x" * 41)
    await labels.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("A label can have up to 40 characters.")
    await labels.fill("food")
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await labels.press("Enter")
    await expect(task_list.row(page, "bread")).to_contain_text("food")

    await page.keyboard.press("Control+a")
    await page.keyboard.press("l")
    await labels.fill("one, two")
    await labels.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("A task can have up to 10 labels.")


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
    await description.press("Escape")
    await expect(task_list.notice(page)).to_contain_text("Changes to “milk” discarded.")
    await page.keyboard.press("ControlOrMeta+z")  # not the last change, which is older
    await expect(description).to_have_value("two litres")
    assert await tasks.titles("all") == ["milk"]
    await description.press("Escape")
    await expect(task_list.notice(page)).to_contain_text("Changes to “milk” discarded.")
    await screen.until(page, "!location.pathname.startsWith('/t/')")
    await page.reload()
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    await task_list.title_of(page, "milk").click()
    await expect(description).to_have_value("")
    await page.keyboard.press("Escape")
    await expect(task_list.notice(page)).to_have_count(0)


async def test_restored_edit_that_is_closed_while_the_list_loads_stays_closed(
    open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    description = page.get_by_role("textbox", name="Description")
    await task_list.title_of(page, "milk").click()
    await description.fill("two litres")
    closed = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await closed.wait()
        await route.continue_()

    await page.route("**/tasks?*", answer_late)
    await page.reload()
    await description.press("Escape")
    await expect(description).to_have_count(0)
    closed.set()
    await task_list.loaded(page)
    await screen.until(page, "!location.pathname.startsWith('/t/')")
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    await expect(description).to_have_count(0)


async def test_delete_and_undo_but_not_what_has_changed_since(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today", description="two litres")
    await tasks.add("bread", due="today")
    page = await open_list()
    menu = await task_list.open_menu(page, "milk")
    await menu.get_by_role("button", name="Delete").click()
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await tasks.until("deleted", ["milk"])
    await undo(page)
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    await expect(task_list.notice(page)).to_contain_text("Undone")
    await task_list.title_of(page, "bread").click()
    await page.get_by_role("textbox", name="Title").fill("rye bread")
    await page.keyboard.press("Enter")
    await expect(task_list.notice(page)).to_contain_text("Changed: “bread”")
    await tasks.change(2, title="butter")
    await undo(page)
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(task_list.titles(page)).to_have_text(["milk", "butter"])


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


async def test_search_while_typing_and_filters(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("buy milk", due="today", labels=["shopping"])
    await tasks.add("buy bread", due="today", labels=["shopping"], priority="high")
    await tasks.add("call mum", due="today", priority="high")
    page = await open_list()
    search = page.get_by_role("searchbox", name="Search tasks")
    await search.press_sequentially("buy")
    await expect(task_list.titles(page)).to_have_text(["buy bread", "buy milk"])
    await search.press_sequentially(" br")
    await expect(task_list.titles(page)).to_have_text(["buy bread"])
    await expect(search).to_be_focused()
    await search.fill("bread #shopping")
    await expect(task_list.titles(page)).to_have_text(["buy bread"])
    await search.fill("#shop")
    await expect(task_list.rows(page)).to_contain_text("No matches")
    await search.fill("#shopping")
    await expect(task_list.titles(page)).to_have_text(["buy bread", "buy milk"])
    await search.fill("nothing of this")
    await expect(task_list.rows(page)).to_contain_text("No matches")
    await expect(page.locator("todo-tasks > [aria-live=polite]")).to_have_text("No tasks match.")
    await search.fill("")
    await expect(task_list.titles(page)).to_have_count(3)

    await page.get_by_role("button", name="Filter").click()
    await page.get_by_role("combobox", name="Label").select_option("shopping")
    await expect(task_list.titles(page)).to_have_text(["buy bread", "buy milk"])
    await page.get_by_role("combobox", name="Priority").select_option("High")
    await expect(task_list.titles(page)).to_have_text(["buy bread"])
    await page.get_by_role("button", name="Remove the filter #shopping").click()
    await expect(task_list.titles(page)).to_have_text(["buy bread", "call mum"])
    await page.get_by_role("combobox", name="Label").select_option("shopping")
    await page.get_by_role("button", name="Clear filters").click()
    await expect(task_list.titles(page)).to_have_count(3)
    await task_list.row(page, "buy milk").get_by_role("button", name="shopping").click()
    await expect(task_list.titles(page)).to_have_text(["buy bread", "buy milk"])
