"""The list shows what is changed elsewhere, and saves changes once the server is back."""

import asyncio
import signal
import time

import pytest
from fastmcp import Client
from playwright.async_api import Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi, today
from tests.scripted_model import ScriptedModel
from tests.support.script import pausing_answer
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=9), pytest.mark.asyncio(loop_scope="session")]

TRANSLATE = """() => {
    const texts = document.createNodeIterator(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let text; (text = texts.nextNode()); ) found.push(text);
    for (const text of found) {
        if (!text.data.trim() || text.parentElement.closest("[translate=no], script, textarea")) continue;
        const font = document.createElement("font");
        font.textContent = `[${text.data}]`;
        text.replaceWith(font);
    }
}"""
"""What the translators of browsers do: their own elements take the place of the page's texts."""


async def count_looks(page: Page) -> list[float]:
    looks: list[float] = []
    page.on("request", lambda request: looks.append(time.monotonic()) if "/tasks/changes" in request.url else None)
    return looks


async def test_changes_of_another_browser_an_mcp_client_and_the_chat_are_shown(open_list: OpenPage, user: User) -> None:
    first, second = await open_list(), await open_list()
    await task_list.adding(first).fill("milk")
    await task_list.adding(first).press("Enter")
    await expect(task_list.titles(first)).to_have_text(["milk"])
    await expect(task_list.titles(second)).to_have_text(["milk"])
    await task_list.tick(second, "milk").click()
    await expect(task_list.titles(second)).to_have_count(0)
    await expect(task_list.titles(first)).to_have_count(0)
    async with Client(f"{user.stack.services.mcp.url}/mcp", auth=user.mcp_token) as client:
        await client.call_tool("add_task", {"title": "bread", "due": "today"})
        await expect(task_list.titles(first)).to_have_text(["bread"])
        await client.call_tool("update_task", {"task_id": 2, "title": "brown bread"})
        await expect(task_list.titles(second)).to_have_text(["brown bread"])
    await screen.say(first, "add call mum today")
    for page in (first, second):
        await expect(task_list.titles(page)).to_have_text(["brown bread", "call mum"])


async def test_changes_from_elsewhere_disturb_nothing(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number}" for number in range(60)], due="today")
    page = await open_list()
    await page.evaluate("document.querySelector('todo-tasks').setPlace({ task: 41 })")
    await page.get_by_role("textbox", name="Title").fill("half written")
    await page.get_by_role("button", name="Select tasks").click()
    await task_list.box(page, "task 41").check()
    await page.get_by_role("textbox", name="Title").focus()
    await page.evaluate("document.querySelector('[name=title]').setSelectionRange(2, 4)")
    place = await page.get_by_role("textbox", name="Title").bounding_box()
    await task_list.row(page, "task 42").evaluate("row => { row.isTheSame = true; }")
    await tasks.change(43, title="task 42, changed")
    await tasks.add("overdue", due=str(today(-1)))
    await tasks.delete(1)
    await expect(task_list.row(page, "task 42, changed")).to_be_visible()
    assert await task_list.row(page, "task 42, changed").evaluate("row => row.isTheSame"), "the row was not drawn anew"
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    await expect(page.get_by_role("textbox", name="Title")).to_have_value("half written")
    assert await page.evaluate("document.activeElement.selectionStart") == 2
    await expect(task_list.box(page, "task 41")).to_be_checked()
    now = await page.get_by_role("textbox", name="Title").bounding_box()
    assert place is not None
    assert now is not None
    assert abs(now["y"] - place["y"]) < 1


async def test_hidden_list_and_background_page_do_not_poll(open_list: OpenPage, tasks: TaskApi) -> None:
    page = await open_list(viewport={"width": 390, "height": 800}, prepare=lambda page: page.clock.install())
    looks = await count_looks(page)
    await screen.show_assistant(page)
    before = len(looks)
    await page.clock.run_for(10_000)
    assert len(looks) <= before + 1
    await tasks.add("milk", due="today")
    await screen.show_tasks(page)
    await expect(task_list.titles(page)).to_have_text(["milk"])

    await page.evaluate(
        "Object.defineProperty(document, 'visibilityState', {get: () => window.state ?? 'visible', configurable: true})"
    )
    await page.evaluate("window.state = 'hidden'; document.dispatchEvent(new Event('visibilitychange'))")
    before = len(looks)
    await page.clock.run_for(10_000)
    assert len(looks) <= before + 1
    await tasks.add("bread", due="today")
    await page.evaluate("window.state = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])


async def test_changes_without_server_are_saved_later(open_list: OpenPage, tasks: TaskApi, stack: Stack) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    stack.backends[0].end(signal.SIGKILL)
    try:
        away = task_list.region(page).get_by_text("Cannot reach the server. Reconnecting…")
        await expect(away).to_be_visible()
        await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
        await task_list.tick(page, "milk").click()
        await task_list.title_of(page, "bread").click()
        await page.get_by_role("textbox", name="Title").fill("brown bread")
        await page.keyboard.press("Enter")
        await expect(task_list.title_of(page, "brown bread")).to_be_visible()
        await expect(task_list.region(page).get_by_text("2 changes will be saved")).to_be_visible()
    finally:
        await asyncio.to_thread(stack.ensure_running)
    await expect(away).to_be_hidden()
    await expect(task_list.titles(page)).to_have_text(["brown bread"])
    await tasks.until("all", ["brown bread"])  # the page shows it before it is saved
    await tasks.until("done", ["milk"])


async def test_list_is_loaded_as_soon_as_the_server_answers(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await page.route(task_list.API, lambda route: route.abort())
    await page.reload()
    await expect(task_list.region(page).get_by_text("Cannot reach the server. Reconnecting…")).to_be_visible()
    await page.unroute_all()
    await expect(task_list.titles(page)).to_have_text(["milk"])


async def test_any_task_of_a_long_list_is_shown(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number}" for number in range(250)])
    done = await tasks.add("milk")
    await tasks.change(done, status="completed")
    page = await open_list()
    show = "task => document.querySelector('todo-tasks').setPlace({ task })"
    title = page.get_by_role("textbox", name="Title")
    await page.evaluate(show, 230)
    await expect(title).to_have_value("task 229")
    await expect(title).to_be_focused()
    await expect(title).to_be_in_viewport()
    assert await page.locator(".rows [data-row]").count() < 100, "only what is seen is drawn"
    await page.evaluate(show, done)
    await expect(title).to_have_value("milk")
    await expect(title).to_be_focused()


async def test_translated_page_shows_changes(open_list: OpenPage, tasks: TaskApi, model: ScriptedModel) -> None:
    milk = await tasks.add("milk", due="today")
    page = await open_list(viewport={"width": 1280, "height": 800})
    await model.script(pausing_answer("word ", "end"))
    await screen.send(page, "tell me")
    await expect(screen.answers(page)).to_contain_text("word")
    await task_list.tick(page, "milk").click()
    await expect(task_list.notice(page)).to_contain_text("Completed: “milk”")
    await page.evaluate(TRANSLATE)
    await expect(screen.side_bar(page).get_by_text("[Upcoming]")).to_be_visible()
    await task_list.notice(page).get_by_role("button", name="Undo").click()
    await expect(task_list.notice(page)).to_contain_text("Undone")
    await tasks.change(milk, title="oat milk")
    await expect(task_list.titles(page)).to_have_text(["oat milk"])
    await model.release()
    await expect(screen.answers(page)).to_contain_text("end")
