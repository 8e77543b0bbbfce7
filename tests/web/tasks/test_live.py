"""What is changed elsewhere is seen within two seconds, and disturbs nobody."""

import asyncio
import signal
import time

import pytest
from fastmcp import Client
from playwright.async_api import Page, expect

from tests.processes import ServiceProcess
from tests.web import screen
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored, today

pytestmark = [pytest.mark.long(seconds=9), pytest.mark.asyncio(loop_scope="session")]

SOON = 2_000  # ms


async def count_looks(page: Page) -> list[float]:
    looks: list[float] = []
    page.on("request", lambda request: looks.append(time.monotonic()) if "/tasks/changes" in request.url else None)
    return looks


async def test_another_browser_and_an_mcp_client_are_seen_within_two_seconds(
    open_list: OpenList, tool_server: ServiceProcess
) -> None:
    first, second = await open_list(), await open_list()
    await listed.adding(first).fill("milk")
    await listed.adding(first).press("Enter")
    await expect(listed.titles(first)).to_have_text(["milk"])
    await expect(listed.titles(second)).to_have_text(["milk"], timeout=SOON)
    await listed.tick(second, "milk").click()
    await expect(listed.titles(second)).to_have_count(0)
    await expect(listed.titles(first)).to_have_count(0, timeout=SOON)
    async with Client(f"{tool_server.url}/mcp") as client:
        await client.call_tool("add_task", {"title": "bread", "due": "today"})
        await expect(listed.titles(first)).to_have_text(["bread"], timeout=SOON)
        await client.call_tool("update_task", {"task_id": 2, "title": "brown bread"})
        await expect(listed.titles(second)).to_have_text(["brown bread"], timeout=SOON)


async def test_what_the_chat_has_done_is_seen_at_once(open_list: OpenList) -> None:
    page = await open_list()
    await screen.say(page, "add call mum today")
    await expect(listed.titles(page)).to_have_text(["call mum"], timeout=1_000)


async def test_nothing_is_disturbed_by_what_comes(open_list: OpenList, stored: Stored) -> None:
    for number in range(60):
        await stored.add(f"task {number}", due="today")
    page = await open_list()
    await page.evaluate("document.querySelector('todo-tasks').show(41)")
    await listed.title_of(page, "task 40").click()
    await page.get_by_role("textbox", name="Title").fill("half written")
    await page.get_by_role("button", name="Select tasks").click()
    await listed.box(page, "task 41").check()
    await page.get_by_role("textbox", name="Title").focus()
    await page.evaluate("document.querySelector('[name=title]').setSelectionRange(2, 4)")
    place = await page.get_by_role("textbox", name="Title").bounding_box()
    await listed.row(page, "task 42").evaluate("row => { row.isTheSame = true; }")
    await stored.change(43, title="task 42, changed")
    await stored.add("overdue", due=str(today(-1)))
    await stored.delete(1)
    await expect(listed.row(page, "task 42, changed")).to_be_visible(timeout=SOON + 500)
    assert await listed.row(page, "task 42, changed").evaluate("row => row.isTheSame"), "the row was not drawn anew"
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    await expect(page.get_by_role("textbox", name="Title")).to_have_value("half written")
    assert await page.evaluate("document.activeElement.selectionStart") == 2
    await expect(listed.box(page, "task 41")).to_be_checked()
    now = await page.get_by_role("textbox", name="Title").bounding_box()
    assert place is not None
    assert now is not None
    assert abs(now["y"] - place["y"]) < 1


async def test_nobody_asks_while_nobody_looks(open_list: OpenList, stored: Stored) -> None:
    page = await open_list(viewport={"width": 390, "height": 800})
    looks = await count_looks(page)
    await page.get_by_role("tab", name="Chat").click()
    await asyncio.sleep(2)
    before = len(looks)
    await asyncio.sleep(3)
    assert len(looks) == before
    await stored.add("milk", due="today")
    await page.get_by_role("tab", name="Tasks").click()
    await expect(listed.titles(page)).to_have_text(["milk"], timeout=1_000)


async def test_a_page_in_the_background_asks_for_nothing(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()
    await page.evaluate(
        "Object.defineProperty(document, 'visibilityState', {get: () => window.state ?? 'visible', configurable: true})"
    )
    await page.evaluate("window.state = 'hidden'; document.dispatchEvent(new Event('visibilitychange'))")
    looks = await count_looks(page)
    await asyncio.sleep(4)
    assert len(looks) <= 1
    await stored.add("milk", due="today")
    await page.evaluate("window.state = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
    await expect(listed.titles(page)).to_have_text(["milk"], timeout=1_000)


async def test_while_the_server_is_away_the_list_stays_and_what_is_done_is_saved_later(
    open_list: OpenList, stored: Stored, site: ServiceProcess
) -> None:
    await stored.add("milk", due="today")
    await stored.add("bread", due="today")
    page = await open_list()
    site.end(signal.SIGKILL)
    try:
        away = listed.region(page).get_by_text("The server cannot be reached. Trying again…")
        await expect(away).to_be_visible()
        await expect(listed.titles(page)).to_have_text(["milk", "bread"])
        await listed.tick(page, "milk").click()
        await listed.title_of(page, "bread").click()
        await page.get_by_role("textbox", name="Title").fill("brown bread")
        await page.keyboard.press("Enter")
        await expect(listed.title_of(page, "brown bread")).to_be_visible()
        await expect(listed.region(page).get_by_text("2 changes will be saved then.")).to_be_visible()
    finally:
        site.start()
        await asyncio.to_thread(site.wait_until_ready)
    await expect(away).to_be_hidden(timeout=15_000)
    await expect(listed.titles(page)).to_have_text(["brown bread"])
    await stored.until("all", ["brown bread"])  # the page shows it before it is saved
    await stored.until("done", ["milk"])


async def test_a_page_that_is_opened_without_a_server_behind_it_reads_the_list_when_there_is_one(
    open_list: OpenList, stored: Stored
) -> None:
    await stored.add("milk", due="today")
    page = await open_list()
    await page.route(listed.DOOR, lambda route: route.abort())
    await page.reload()
    await expect(listed.region(page).get_by_text("The server cannot be reached. Trying again…")).to_be_visible()
    await page.unroute_all()
    await expect(listed.titles(page)).to_have_text(["milk"], timeout=10_000)


async def test_a_task_is_shown_wherever_it_is(open_list: OpenList, stored: Stored) -> None:
    for number in range(250):
        await stored.add(f"task {number}")
    done = await stored.add("milk")
    await stored.change(done, status="completed")
    page = await open_list()
    show = "id => document.querySelector('todo-tasks').show(id)"
    await page.evaluate(show, 230)
    await expect(listed.title_of(page, "task 229")).to_be_focused()
    await expect(listed.title_of(page, "task 229")).to_be_in_viewport()
    await page.evaluate(show, done)
    await expect(listed.title_of(page, "milk")).to_be_focused()
