"""The page without a connection: what the browser stores of it, opens at once, and forgets."""

import asyncio
import contextlib
import re
from typing import Any

import pytest
from playwright.async_api import Error, Locator, Page, async_playwright, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, ServiceWorkers
from tests.browser.draw_icons import chromium
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.script import says
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

STORED = """async () => {
    const names = await caches.keys();
    const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return requests.flat().map(({ url }) => new URL(url)).map(({ pathname, search }) => pathname + search);
}"""
LISTS = """() => new Promise((resolve) => {
    const opening = indexedDB.open("todo");
    opening.onsuccess = () => {
        const reading = opening.result.transaction("lists").objectStore("lists").getAll();
        reading.onsuccess = () => { opening.result.close(); resolve(JSON.stringify(reading.result)); };
    };
})"""
DELETE_SLOWLY = """() => {
    const { delete: deleteNow } = CacheStorage.prototype;
    CacheStorage.prototype.delete = async function (name) {
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return deleteNow.call(this, name);
    };
}"""
HTML = "async () => (await caches.match(document.baseURI)).text()"
REGISTERED = "navigator.serviceWorker.getRegistrations().then((all) => all.length)"


@pytest.fixture
def service_workers() -> ServiceWorkers:
    return "allow"


def row(page: Page, title: str) -> Locator:
    return task_list.titles(page).get_by_text(title, exact=True)


async def open_with_worker(open_page: OpenPage, **options: Any) -> Page:
    """Opens the page, and waits until the next visit needs no server."""
    page = await open_page(pane="tasks", **options)
    await page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    await screen.until(page, "navigator.serviceWorker.controller")
    return page


async def test_page_opens_without_a_connection(open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("Water the plants", due="today")
    page = await open_with_worker(open_page)
    await expect(row(page, "Water the plants")).to_be_visible()
    await page.context.set_offline(True)
    for path in ("/", "/today", "/"):
        await page.goto(path)
        await expect(row(page, "Water the plants")).to_be_visible()
    field = task_list.adding(page)
    await field.fill("Buy milk")
    await field.press("Enter")
    await expect(row(page, "Buy milk")).to_be_visible()
    await page.reload()
    await expect(row(page, "Buy milk")).to_be_visible()
    await page.context.set_offline(False)
    await tasks.until("today", ["Water the plants", "Buy milk"])


async def test_task_that_was_added_without_a_connection_survives_a_crash_of_its_tab(open_page: OpenPage) -> None:
    page = await open_with_worker(open_page)
    await page.context.set_offline(True)
    await page.goto("/")
    debugger = await page.context.new_cdp_session(page)
    field = task_list.adding(page)
    await field.fill("Buy milk")
    await field.press("Enter")
    await expect(row(page, "Buy milk")).to_be_visible()
    with contextlib.suppress(Error, TimeoutError):  # it does not answer any more
        await asyncio.wait_for(debugger.send("Page.crash"), 1)
    page = await page.context.new_page()
    await page.goto("/")
    await expect(row(page, "Buy milk")).to_be_visible()


async def test_browser_stores_files_and_nothing_of_a_user(open_page: OpenPage, user: User, tasks: TaskApi) -> None:
    await tasks.add("A secret of mine", due="today")
    page = await open_with_worker(open_page)
    await expect(row(page, "A secret of mine")).to_be_visible()
    await page.reload()
    await expect(row(page, "A secret of mine")).to_be_visible()
    stored: list[str] = await page.evaluate(STORED)
    assert [path for path in stored if not path.startswith("/assets/")] == ["/"]
    html: str = await page.evaluate(HTML)
    assert "A secret of mine" not in html
    assert user.name not in html


async def test_sign_out_removes_the_worker_and_what_it_and_the_list_stored(open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("A secret of mine", due="today")
    page = await open_with_worker(open_page)
    await expect(row(page, "A secret of mine")).to_be_visible()
    assert "A secret of mine" in await page.evaluate(LISTS)
    await page.evaluate(DELETE_SLOWLY)
    await screen.button(page, "Menu").click()
    await screen.button(page, "Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert await page.evaluate(REGISTERED) == 0
    assert await page.evaluate(STORED) == []
    assert await page.evaluate(LISTS) == "[]"


async def test_another_user_never_sees_the_last_list(open_page: OpenPage, tasks: TaskApi, new_user: NewUser) -> None:
    await tasks.add("A secret of mine", due="today")
    page = await open_with_worker(open_page)
    await expect(row(page, "A secret of mine")).to_be_visible()
    other = new_user()
    await page.context.clear_cookies()
    response = await page.context.request.post("/session", headers={"Authorization": f"Bearer {other.token}"})
    assert response.ok
    await page.evaluate(f"localStorage['todo.person'] = '{other.name}'")
    await page.add_init_script(
        """new MutationObserver(() => {
            if (document.body?.textContent.includes("A secret of mine")) globalThis.leaked = true;
        }).observe(document, { childList: true, subtree: true, characterData: true })"""
    )
    await page.reload()
    await expect(page.get_by_text("Nothing is due today")).to_be_visible()
    assert not await page.evaluate("globalThis.leaked")


async def test_last_counts_labels_and_conversations_are_shown_without_a_connection(
    open_page: OpenPage, tasks: TaskApi, model: ScriptedModel
) -> None:
    await tasks.add("Water the plants", due="tomorrow", labels=["garden"])
    page = await open_with_worker(open_page)
    await model.script(says("Fine."))
    await screen.say(page, "How are the plants?")
    upcoming = page.locator("#side [data-view=upcoming] .count")
    recent = page.locator("#recent a")
    await expect(upcoming).to_have_text("1")
    await expect(recent).to_have_count(1)
    name = await recent.inner_text()
    await expect(page.get_by_text("Nothing is due today")).to_be_visible()
    await page.context.set_offline(True)
    await page.reload()
    await expect(upcoming).to_have_text("1")
    await expect(page.locator("#labels a")).to_have_text(re.compile(r"garden\s*1"))
    await expect(recent).to_have_text(name, use_inner_text=True)
    await expect(page.get_by_text("Nothing is due today")).to_be_visible()
    await expect(page.get_by_text("This conversation is shown once the server can be reached.")).to_be_visible()
    await page.locator("#side [data-view=done]").click()
    await expect(page.get_by_text("This list is shown once the server can be reached.")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.get_by_text("Nothing done yet")).to_be_visible()
    await expect(screen.questions(page)).to_have_text(["How are the plants?"], use_inner_text=True)


async def test_search_without_a_connection_shows_and_says_nothing_else(open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many(["Water the plants", "Pay the rent"], due="today")
    page = await open_with_worker(open_page)
    await expect(task_list.titles(page)).to_have_count(2)
    await page.context.set_offline(True)
    search = page.get_by_role("searchbox").first
    await search.fill("rent")
    await expect(page.get_by_text("This list is shown once the server can be reached.")).to_be_visible()
    await expect(task_list.titles(page)).to_have_count(0)
    await expect(page.get_by_text(re.compile("found|No tasks match"))).to_have_count(0)
    await search.fill("")
    await expect(task_list.titles(page)).to_have_text(["Water the plants", "Pay the rent"])
    await page.context.set_offline(False)
    await search.fill("rent")
    await expect(task_list.titles(page)).to_have_text(["Pay the rent"])


SHARED = "/?title=Bread&text=How%20to%20bake%0Abread&url=https%3A%2F%2Fbread.example%2F"
SHARED_TEXT = "Bread How to bake bread https://bread.example/"


async def test_shared_text_waits_in_the_field_and_is_stored_once_the_user_types(
    open_page: OpenPage, tasks: TaskApi
) -> None:
    page = await open_page(SHARED, pane="tasks")
    field = task_list.adding(page)
    await expect(field).to_have_value(SHARED_TEXT)
    await expect(field).to_be_focused()
    await expect(task_list.rows(page)).to_have_attribute("aria-busy", "false")
    await expect(field).to_have_value(SHARED_TEXT)
    await page.reload()
    await expect(task_list.rows(page)).to_have_attribute("aria-busy", "false")
    await expect(field).to_have_value("")
    await page.goto(SHARED)
    await expect(field).to_be_focused()
    await field.press("End")
    await page.keyboard.type("!")
    await page.reload()
    await expect(field).to_have_value(f"{SHARED_TEXT}!")
    assert await tasks.titles() == []


async def test_shared_text_stays_beside_what_was_typed(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page(pane="tasks")
    field, beside = task_list.adding(page), task_list.region(page).get_by_role("list", name="Not added")
    await field.fill("call mum")
    await page.goto(SHARED)
    await expect(field).to_have_value("call mum")
    await expect(beside).to_contain_text(SHARED_TEXT)
    await page.reload()
    await expect(field).to_have_value("call mum")
    await expect(beside).to_have_count(0)
    await page.goto(SHARED)
    await screen.button(beside, f"Edit: {SHARED_TEXT}").click()
    await expect(field).to_have_value(SHARED_TEXT)
    await expect(beside).to_contain_text("call mum")
    await page.reload()
    await expect(field).to_have_value(SHARED_TEXT)
    await expect(beside).to_contain_text("call mum")
    assert await tasks.titles() == []


async def test_what_cannot_be_loaded_is_said_and_the_page_stays(open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("Water the plants", due="today")
    page = await open_page(pane="tasks", service_workers="block")
    await task_list.loaded(page)
    await page.context.set_offline(True)
    said = page.get_by_text("This cannot be opened: the server cannot be reached, or has a new version.")
    for name in ("Calendar", "Memory", "Devices", "Keys", "Sign out"):
        await screen.from_menu(page, name)
        await expect(said).to_be_visible()
        await said.evaluate("(one) => one.remove()")
    await expect(row(page, "Water the plants")).to_be_visible()
    await page.context.set_offline(False)
    await screen.from_menu(page, "Memory")
    await expect(page.get_by_role("dialog", name="Memory")).to_be_visible()


@pytest.mark.parametrize("stack_name", ["limits"])  # it answers to todo.example
async def test_page_works_without_https_and_says_what_is_missing(stack: Stack) -> None:
    url = re.sub(r"//[^:]+", "//todo.example", stack.url)
    rules = "--host-resolver-rules=MAP todo.example 127.0.0.1"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", rules])
        problems: list[str] = []
        page = await browser.new_page(base_url=url)
        screen.watch(page, problems)
        await page.goto("/")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert not await page.evaluate("isSecureContext")
        await screen.button(page, "Menu").click()
        await expect(page.get_by_text("Without https, this page cannot be used offline")).to_be_visible()
        await browser.close()
    assert [
        problem for problem in problems if "Cross-Origin-Opener-Policy header has been ignored" not in problem
    ] == []
