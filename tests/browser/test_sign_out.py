"""The question before a sign-out, about what is not saved, and what other tabs and the next user see after it."""

import asyncio

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, Violations, sign_in
from tests.browser.task_list import TaskApi
from tests.browser.test_addresses import at
from tests.browser.test_offline import LISTS
from tests.support.fixtures import NewUser
from tests.support.users import User
from tests.waiting import WAIT_SECONDS

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

COUNT = """() => new Promise((resolve) => {
    indexedDB.open("todo").onsuccess = ({ target: { result: database } }) => {
        database.transaction("unsaved").objectStore("unsaved").count().onsuccess = ({ target }) => {
            database.close();
            resolve(target.result);
        };
    };
})"""


async def add(page: Page, text: str) -> None:
    await task_list.adding(page).fill(text)
    await task_list.adding(page).press("Enter")


async def ask(page: Page) -> Locator:
    await screen.from_menu(page, "Sign out")
    dialog = page.get_by_role("dialog", name="Sign out?")
    await expect(dialog).to_be_visible()
    return dialog


async def test_unsaved_changes_are_sent_before_the_sign_out(
    open_list: OpenPage, tasks: TaskApi, violations: Violations
) -> None:
    await tasks.add("bread", due="today")
    page = await open_list()
    await page.route(task_list.API, lambda route: route.abort())
    await add(page, "milk")
    await task_list.tick(page, "milk").click()
    await task_list.title_of(page, "bread").click()
    await page.get_by_role("textbox", name="Title").fill("brown bread")
    dialog = await ask(page)
    await expect(dialog).to_contain_text("2 changes and an edited task are not saved yet.")
    assert await violations(page) == []
    await screen.button(dialog, "Cancel").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("textbox", name="Title")).to_have_value("brown bread")
    dialog = await ask(page)
    await screen.button(dialog, "Send").click()
    await expect(dialog).to_contain_text("3 changes are not saved yet.")
    await expect(dialog.get_by_role("alert")).to_contain_text("Not everything could be sent")
    await expect(task_list.titles(page)).to_have_text(["brown bread", "milk"])
    await page.unroute_all()
    await screen.button(dialog, "Send").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert await tasks.titles("all") == ["brown bread"]
    assert await tasks.titles("done") == ["milk"]
    assert await page.evaluate(COUNT) == 0


async def test_rejected_change_stops_the_sign_out(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("bread", due="today")
    page = await open_list()
    await task_list.title_of(page, "bread").click()
    await page.get_by_role("textbox", name="Title").fill("")
    dialog = await ask(page)
    await expect(dialog).to_contain_text("An edited task is not saved yet.")
    await screen.button(dialog, "Send").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Something was rejected.")
    await page.keyboard.press("Escape")
    await expect(task_list.rows(page).get_by_role("alert")).to_have_text("A task needs a title.")


async def test_draft_is_kept_for_its_user_or_discarded(open_list: OpenPage, user: User) -> None:
    page = await open_list()
    await task_list.adding(page).fill("half a task")
    dialog = await ask(page)
    await expect(dialog).to_contain_text("A draft is not saved yet.")
    await expect(dialog).to_contain_text("What cannot be sent stays in this browser")
    await screen.button(dialog, "Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert "half a task" not in await page.locator("body").inner_text()
    await sign_in(page.context, user)
    await page.reload()
    await expect(task_list.adding(page)).to_have_value("half a task")
    dialog = await ask(page)
    await screen.button(dialog, "Discard").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert await page.evaluate(COUNT) == 0
    await sign_in(page.context, user)
    await page.reload()
    await task_list.loaded(page)
    await expect(task_list.adding(page)).to_have_value("")
    await screen.from_menu(page, "Sign out")
    await expect(page.get_by_label("Token")).to_be_visible()  # nothing is asked


async def sign_out_and_in(page: Page, next_user: User) -> None:
    """The next user signs in in the same tab."""
    await screen.from_menu(page, "Sign out")
    await page.get_by_label("Token").fill(next_user.token)
    await page.get_by_label("Token").press("Enter")
    await task_list.loaded(page)


async def test_back_shows_no_search_of_the_last_user(open_list: OpenPage, new_user: NewUser) -> None:
    page = await open_list()
    search = page.get_by_role("searchbox", name="Search tasks")
    await search.fill("secret")
    await at(page, "/today?q=secret")
    await task_list.see(page, "Upcoming")
    await task_list.see(page, "All")
    await screen.from_menu(page, "Sign out")
    await page.get_by_label("Token").wait_for()
    await page.go_back()
    await at(page, "/today")
    await page.get_by_label("Token").fill(new_user().token)
    await page.get_by_label("Token").press("Enter")
    await task_list.loaded(page)
    await page.go_back()
    await at(page, "/today")
    await expect(search).to_have_value("")


async def test_reload_of_another_tab_shows_no_search_of_the_last_user(open_list: OpenPage, new_user: NewUser) -> None:
    page = await open_list()
    other = await page.context.new_page()
    await other.goto("/all?q=secret")
    await task_list.loaded(other)
    await page.bring_to_front()
    await sign_out_and_in(page, new_user())
    await expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    await other.reload()
    await task_list.loaded(other)
    await at(other, "/today")
    await expect(other.get_by_role("searchbox", name="Search tasks")).to_have_value("")


async def test_another_tab_stores_no_list_after_the_sign_out(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("secret milk", due="today")
    page = await open_list()
    other = await page.context.new_page()
    asked, released = asyncio.Event(), asyncio.Event()

    async def answer_late(route: Route) -> None:
        response = await route.fetch()
        asked.set()
        await released.wait()
        await route.fulfill(response=response)

    await other.route(task_list.API, answer_late)
    await other.goto("/today")
    await asyncio.wait_for(asked.wait(), WAIT_SECONDS)
    await page.bring_to_front()
    await screen.from_menu(page, "Sign out")
    await page.get_by_label("Token").wait_for()
    assert "secret" not in await page.evaluate(LISTS)
    released.set()
    await other.get_by_label("Token").wait_for()
    assert "secret" not in await page.evaluate(LISTS)


async def test_another_tab_does_not_forget_the_next_user(open_list: OpenPage, new_user: NewUser) -> None:
    page = await open_list()
    other = await page.context.new_page()
    await other.goto("/all")
    await task_list.loaded(other)
    await page.bring_to_front()
    next_user = new_user()
    await sign_out_and_in(page, next_user)
    await expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await page.evaluate("localStorage['todo.person']") == next_user.name
