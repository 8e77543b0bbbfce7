"""Addresses of views, filters, tasks and conversations: links, Back, Forward and reload."""

from urllib.parse import urlsplit

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

LEAVE_TO_BROWSER = """() => addEventListener("click", (event) => {
    window.leftToBrowser = !event.defaultPrevented;
    event.preventDefault(); // Playwright may wait without end for what another tab shows
}, { once: true })"""


async def address(page: Page) -> str:
    """The path and the parameters in the address bar."""
    url = urlsplit(await page.evaluate("location.href"))
    return url.path + (f"?{url.query}" if url.query else "")


async def at(page: Page, expected: str) -> None:
    async def is_there() -> bool:
        return await address(page) == expected

    await until(is_there)


async def entries(page: Page) -> int:
    return await page.evaluate("history.length")


def title_field(page: Page) -> Locator:
    return task_list.rows(page).locator("form textarea[name=title]")


async def test_views_and_filters_have_addresses(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", labels=["home"], due="today")
    await tasks.add("report", labels=["work"], due="tomorrow")
    page = await open_list()
    assert await address(page) == "/"
    await expect(page).to_have_title("Today · To-do assistant")
    await task_list.see(page, "Upcoming")
    await at(page, "/upcoming")
    await expect(page).to_have_title("Upcoming · To-do assistant")
    await task_list.see(page, "All")
    await task_list.row(page, "milk").get_by_role("button", name="home", exact=True).click()
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await at(page, "/all?label=home")
    await page.go_back()
    await expect(task_list.titles(page)).to_have_text(["milk", "report"])
    await at(page, "/all")
    await page.go_back()
    await expect(task_list.titles(page)).to_have_text(["report"])
    await page.go_forward()
    await page.go_forward()
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await page.reload()
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await at(page, "/all?label=home")
    other = await page.context.new_page()
    await other.goto("/all?label=work&q=rep&priority=nonsense")
    await expect(task_list.titles(other)).to_have_text(["report"])
    await expect(other.get_by_role("searchbox", name="Search tasks")).to_have_value("rep")
    await other.go_back()
    assert await other.evaluate("location.href") == "about:blank", "opening it leaves no entry of its own"


async def test_search_is_in_the_address_and_makes_one_entry(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk & bread", due="today")
    await tasks.add("tea", due="today")
    page = await open_list()
    before = await entries(page)
    search = page.get_by_role("searchbox", name="Search tasks")
    for text in ("m", "mi", "milk &"):
        await search.fill(text)
        await at(page, f"/today?q={text.replace(' ', '+').replace('&', '%26')}")
    await expect(task_list.titles(page)).to_have_text(["milk & bread"])
    assert await entries(page) == before + 1
    await page.reload()
    await expect(search).to_have_value("milk &")
    await expect(task_list.titles(page)).to_have_text(["milk & bread"])
    await search.focus()
    await page.go_back()
    await at(page, "/")
    await expect(task_list.titles(page)).to_have_count(2)
    await expect(search).to_have_value("")
    await page.go_forward()
    await expect(task_list.titles(page)).to_have_text(["milk & bread"])
    await expect(search).to_have_value("milk &")
    await task_list.title_of(page, "milk & bread").click()
    await at(page, "/t/1")
    await page.keyboard.press("Escape")
    await at(page, "/today?q=milk+%26")
    await search.fill("")
    await expect(task_list.titles(page)).to_have_count(2)
    await at(page, "/")
    await search.fill("t")
    await at(page, "/today?q=t")
    await search.fill("")
    await at(page, "/")
    assert await entries(page) == before + 1, "an emptied search goes back to the list"


async def test_open_task_has_an_address_in_its_view(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    later = await tasks.add("report", due="tomorrow")
    page = await open_list()
    before = await entries(page)
    await task_list.title_of(page, "milk").click()
    await at(page, "/t/1")
    await expect(page).to_have_title("milk · To-do assistant")
    await page.keyboard.press("Escape")
    await at(page, "/")
    await task_list.title_of(page, "milk").click()
    await at(page, "/t/1")
    await task_list.title_of(page, "bread").click()
    await at(page, "/t/2")
    await page.reload()
    await expect(title_field(page)).to_have_value("bread")
    await at(page, "/t/2")
    await screen.button(task_list.rows(page), "Cancel").click()
    await at(page, "/")
    assert await entries(page) <= before + 1, "closing it adds no entry"
    await page.go_forward()
    await expect(title_field(page)).to_have_value("bread")
    await page.go_back()
    await expect(title_field(page)).to_have_count(0)
    await at(page, "/")

    other = await page.context.new_page()
    await other.goto(f"/t/{later}")
    await expect(title_field(other)).to_have_value("report")
    await expect(other).to_have_title("report · To-do assistant")
    await at(other, f"/t/{later}")
    await title_field(other).fill("long report")
    await other.keyboard.press("Enter")
    await at(other, "/upcoming")
    await expect(other).to_have_title("Upcoming · To-do assistant")
    await tasks.until("upcoming", ["long report"])


async def test_back_saves_what_was_written_in_a_task(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title_field(page).fill("oat milk")
    await page.go_back()
    await expect(title_field(page)).to_have_count(0)
    await tasks.until("today", ["oat milk"])
    await task_list.title_of(page, "oat milk").click()
    await title_field(page).fill("")
    await page.go_back()
    await expect(task_list.rows(page).get_by_role("alert")).to_have_text("A task needs a title.")
    await at(page, "/t/1")
    assert await tasks.titles() == ["oat milk"]


async def test_missing_and_deleted_tasks(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.delete(await tasks.add("old"))
    page = await open_list(path="/t/99")
    missing = page.get_by_text("There is no task 99.")
    await expect(missing).to_be_visible()
    await at(page, "/t/99")
    await page.get_by_role("link", name="Go to Today").click()
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await at(page, "/today")
    await page.go_back()
    await expect(missing).to_be_visible()
    await page.goto("/t/2")
    await expect(task_list.titles(page)).to_have_text(["old"])
    await at(page, "/t/2")
    await task_list.see(page, "Today")
    await at(page, "/today")


async def test_nothing_at_an_address(open_page: OpenPage) -> None:
    page = await open_page("/nothing")
    await expect(page.get_by_text("There is nothing at this address.")).to_be_visible()
    link = page.get_by_role("link", name="Go to your tasks")
    middle = "(one) => one.getBoundingClientRect().x + one.getBoundingClientRect().width / 2"
    assert abs(await link.evaluate(middle) - await page.locator("#tasks").evaluate(middle)) <= 1
    await link.click()
    await task_list.loaded(page)
    await expect(page).to_have_title("Today · To-do assistant")


async def test_list_and_conversation_are_one_place(open_list: OpenPage, tasks: TaskApi, model: ScriptedModel) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await model.script(says("Fine."))
    await screen.say(page, "hello")
    conversation = await address(page)
    assert conversation.startswith("/c/thr_")
    await task_list.see(page, "All")
    await at(page, "/all")
    await expect(screen.questions(page)).to_have_text(["hello"], use_inner_text=True)
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["hello"], use_inner_text=True)
    await at(page, "/all")
    await page.go_back()
    await at(page, conversation)
    await expect(page.locator("#side [aria-current=page]").first).to_contain_text("Today")
    await expect(screen.questions(page)).to_have_text(["hello"], use_inner_text=True)
    await page.go_back()
    await expect(screen.questions(page)).to_have_count(0)
    await page.go_forward()
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["hello"], use_inner_text=True)
    await at(page, conversation)


async def test_links_and_cards_load_no_page(open_list: OpenPage, tasks: TaskApi, model: ScriptedModel) -> None:
    page = await open_list()
    await model.script(calls(call("add_task", title="report", due="2030-01-01")), says("Fine."))
    await screen.say(page, "add it")
    loaded = await page.evaluate("performance.timeOrigin")
    await screen.log(page).get_by_title("Show in the list").click()
    await expect(title_field(page)).to_have_value("report")
    await at(page, "/t/1")
    link = page.locator("#side [data-view=all]")
    await page.evaluate(LEAVE_TO_BROWSER)
    await link.click(modifiers=["ControlOrMeta"])
    assert await page.evaluate("window.leftToBrowser") is True
    await at(page, "/t/1")
    await link.click()
    await at(page, "/all")
    assert await page.evaluate("performance.timeOrigin") == loaded


async def test_back_leads_from_the_assistant_of_a_phone_to_the_list(
    open_page: OpenPage, tasks: TaskApi, model: ScriptedModel
) -> None:
    await tasks.add("milk", due="today")
    page = await open_page("/all", pane="tasks", viewport={"width": 390, "height": 800})
    await task_list.loaded(page)
    before = await entries(page)
    for _ in range(2):
        await screen.show_assistant(page)
        await at(page, "/all")
        await page.go_back()
        await expect(task_list.title_of(page, "milk")).to_be_visible()
        await expect(screen.message_box(page)).to_be_hidden()
    await screen.show_assistant(page)
    await page.reload()
    await expect(screen.message_box(page)).to_be_visible()
    await page.go_back()
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    await page.go_forward()
    await expect(screen.message_box(page)).to_be_visible()
    await model.script(says("Fine."))
    await screen.say(page, "hello")
    conversation = await address(page)
    assert conversation.startswith("/c/thr_")
    await page.go_back()
    await at(page, "/all")
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    await screen.show_assistant(page)
    await expect(screen.questions(page)).to_have_text(["hello"], use_inner_text=True)
    await screen.button(page, "New conversation").click()
    await expect(screen.questions(page)).to_have_count(0)
    await screen.show_tasks(page)
    await at(page, "/all")
    assert await entries(page) <= before + 2, "the button goes back, too"

    await screen.open_side_bar(page)
    await screen.side_bar(page).get_by_role("link", name="hello").click()
    await expect(screen.questions(page)).to_be_visible()
    await at(page, conversation)
    await page.reload()
    await expect(screen.questions(page)).to_be_visible()
    await page.go_back()
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    await at(page, "/all")

    other = await page.context.new_page()
    await other.goto(conversation)
    await expect(screen.questions(other)).to_be_visible()
    await screen.show_tasks(other)
    await screen.show_assistant(other)
    await other.go_back()
    await expect(task_list.region(other)).to_be_visible()
    await expect(screen.message_box(other)).to_be_hidden()
    await other.go_back()
    assert await other.evaluate("location.href") == "about:blank"
