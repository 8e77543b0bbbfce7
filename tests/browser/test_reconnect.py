"""The server does not answer, refuses, or loses a message or an answer; nothing that was written is lost or doubled."""

import asyncio
import json

import pytest
from playwright.async_api import Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, without_server
from tests.browser.screen import LOST
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, endless_answer, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=8), pytest.mark.asyncio(loop_scope="session")]

BACK = "Connected again."
UNSENT = "Not sent yet"
SLOW = "This is taking longer than usual…"
FULL = """
const set = Storage.prototype.setItem;
Storage.prototype.setItem = function (key, value) {
  if (value.length > 3) throw new DOMException('full', 'QuotaExceededError');
  set.call(this, key, value);
};
"""
NEVER_LATER = """{
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (work, pause, ...more) => setTimeout(work, pause >= 1500 ? 1e8 : pause, ...more);
}"""
BLOCKED = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"


async def refuse(route: Route) -> None:
    await route.fulfill(status=429, json={"error": "Not now, please."})


async def test_message_that_never_arrived_is_sent_once_connected(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    for url in ("**/chatkit", "**/health"):
        await page.route(url, lambda route: route.abort())
    for text in ("add bread", "add butter"):
        await screen.send(page, text)
    await expect(page.get_by_text(LOST)).to_be_visible()
    await expect(screen.log(page).get_by_text(UNSENT)).to_have_count(2)
    await expect(screen.message_box(page)).to_have_value("")
    await page.unroute_all()
    await expect(screen.answers(page)).to_have_count(3)
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["add milk", "add bread", "add butter"], use_inner_text=True)
    assert await tasks.titles() == ["milk", "bread", "butter"]

    # it is given back if the server rejects it, with what was to follow
    lost = asyncio.Event()

    async def lose(route: Route) -> None:
        if lost.is_set():
            return await refuse(route)
        return await route.abort()

    await screen.on(page, "threads.add_user_message", lose)
    await page.route("**/health", lambda route: route.fallback() if lost.is_set() else route.abort())
    for text in ("add eggs", "add salt"):
        await screen.send(page, text)
    await expect(screen.log(page).get_by_text(UNSENT)).to_have_count(2)
    lost.set()
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    await expect(screen.message_box(page)).to_have_value("add eggs\n\nadd salt")
    await expect(screen.button(page, "Send")).to_be_enabled()
    await expect(screen.questions(page)).to_have_count(3)
    await page.unroute_all()

    # and sent while another conversation is open
    left = asyncio.Event()

    async def lose_later(route: Route) -> None:
        await left.wait()
        await route.abort()

    await screen.message_box(page).fill("add eggs")
    await page.route("**/chatkit", lose_later, times=1)
    await screen.message_box(page).press("Enter")
    await expect(screen.questions(page)).to_have_count(4)
    await screen.button(page, "New conversation").click()
    await expect(screen.message_box(page)).to_have_value("")
    left.set()
    await expect(page.get_by_text(BACK)).to_be_visible()
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(screen.answers(page)).to_have_count(4)
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_count(4)
    assert await tasks.titles() == ["milk", "bread", "butter", "eggs"]


async def test_list_is_loaded_again_once_another_request_succeeds(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page(
        viewport={"width": 1440, "height": 900}, prepare=lambda page: page.add_init_script(NEVER_LATER)
    )
    await task_list.loaded(page)
    await expect(screen.message_box(page)).to_be_editable()
    lost = task_list.region(page).get_by_text("Cannot reach the server")
    await page.route(task_list.API, lambda route: route.abort())
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # asks at once
    await expect(lost).to_be_visible()
    await tasks.add("milk", due="today")
    await page.unroute_all()
    await screen.open_history(page)
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await expect(lost).to_have_count(0)


async def test_broken_answer_is_kept_and_can_be_tried_again(
    open_page: OpenPage, stack: Stack, model: ScriptedModel, tasks: TaskApi, stored: Stored, user: User
) -> None:
    page = await open_page()
    await model.script(add_task("milk"), endless_answer("slowly"))
    await screen.send(page, "add milk")
    await expect(screen.answers(page)).to_contain_text("slowly")
    async with without_server(stack):
        await expect(page.get_by_text(LOST)).to_be_visible()
        await model.reset()
        await model.script(says("Milk is on your list."))
    await expect(page.get_by_text(LOST)).to_have_count(0)
    await expect(screen.questions(page)).to_have_count(1)
    await stored.run_with_status(user.name, "interrupted")
    await screen.button(page, "Try again").or_(screen.button(page, "Answer again")).first.click()
    await expect(screen.answers(page).last).to_contain_text("Milk is on your list.")
    assert await tasks.titles() == ["milk"]


async def test_message_whose_answer_was_lost_is_not_sent_twice(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page()

    async def lose_the_response(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/chatkit", lose_the_response, times=1)
    await screen.send(page, "add milk")
    await expect(page.get_by_text(BACK)).to_be_visible()
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("")
    assert await tasks.titles() == ["milk"]


async def test_ticks_and_lost_answers_are_told_apart(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.say(page, "show my list")
    ticked = asyncio.Event()

    async def end_early(route: Route) -> None:
        if ticked.is_set():
            return await route.fallback()
        await ticked.wait()
        frame = {"type": "stream_options", "stream_options": {"allow_cancel": True}}
        await route.fulfill(content_type="text/event-stream", body=f"data: {json.dumps(frame)}\n\n")
        return None

    await screen.on(page, "threads.add_user_message", end_early)
    await screen.on(page, "threads.custom_action", refuse)
    await screen.send(page, "hello")
    await screen.task_list(page).get_by_role("checkbox", name="milk").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    ticked.set()
    await expect(page.get_by_text(BACK)).to_be_visible()
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["add milk", "show my list", "hello"], use_inner_text=True)

    await page.unroute_all()
    box, checked = screen.task_list(page).get_by_role("checkbox", name="milk"), asyncio.Event()

    async def reply_late(route: Route) -> None:
        response = await route.fetch()
        await checked.wait()
        await route.fulfill(response=response)

    await screen.on(page, "items.list", reply_late)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # loads what may have changed
    await box.check()
    await expect(screen.task_list(page)).to_contain_text("1 done")
    async with page.expect_response(lambda response: "items.list" in (response.request.post_data or "")):
        checked.set()
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    await expect(box).to_be_checked()  # an older list undoes no newer tick

    await page.unroute_all(behavior="wait")  # a list that is asked for meanwhile is late, too
    for url in ("**/chatkit", "**/health"):
        await page.route(url, lambda route: route.abort())
    await box.click()
    await expect(page.get_by_text(LOST)).to_be_visible()
    await expect(box).to_be_checked()  # the click is taken back
    await page.unroute_all()
    await expect(page.get_by_text(BACK)).to_be_visible()
    await box.uncheck()
    await expect(screen.task_list(page)).not_to_contain_text("done")


async def test_slow_server_is_mentioned(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    slow = page.locator(".progress, .connection").get_by_text(SLOW)
    for kind in ("threads.add_user_message", "items.list"):
        thawed = asyncio.Event()

        async def frozen(route: Route, thawed: asyncio.Event = thawed) -> None:
            await thawed.wait()
            await route.fallback()

        await screen.on(page, kind, frozen)
        if kind == "items.list":
            await page.reload()
        else:
            await screen.send(page, "add bread")
        await expect(slow).to_be_visible()
        await expect(page.locator("todo-chat > [aria-live=polite]")).to_have_text(SLOW)
        thawed.set()
        await expect(slow).to_have_count(0)
        await screen.answered(page)
        await page.unroute_all()


async def test_refused_changes_change_nothing(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(says("The first answer."))
    await screen.say(page, "hello")
    await screen.message_box(page).fill("a draft")
    for kind in ("threads.retry_after_item", "threads.update", "threads.delete"):
        await screen.on(page, kind, refuse)
    alert = page.get_by_role("alert")
    await screen.button(page, "Answer again").click()
    await expect(alert).to_contain_text("Not now")
    await expect(screen.answers(page)).to_contain_text("The first answer.")
    await screen.button(page, "Dismiss").click()
    await screen.open_history(page)
    await screen.button(screen.history(page), "Rename hello").click()
    await screen.history(page).get_by_role("textbox", name="Title").fill("Dairy")
    await page.keyboard.press("Enter")
    await expect(alert).to_contain_text("Not now")
    await screen.button(screen.history(page), "Close").click()  # it may cover the conversation
    await expect(page.get_by_role("heading", name="hello")).to_be_visible()
    await screen.button(page, "Dismiss").click()
    await screen.open_history(page)
    await screen.button(screen.history(page), "Delete hello").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(alert).to_contain_text("Not now")
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("a draft")


async def test_chat_works_though_nothing_can_be_stored(open_page: OpenPage) -> None:
    for script in (FULL, BLOCKED):
        page = await open_page(prepare=lambda page, script=script: page.add_init_script(script))
        await screen.message_box(page).press_sequentially("add milk")
        await expect(screen.message_box(page)).to_have_value("add milk")
        await screen.message_box(page).press("Enter")
        await screen.answered(page)
        await expect(screen.message_box(page)).to_have_value("")
