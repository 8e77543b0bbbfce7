"""Messages that the server has not confirmed: they survive a reload, a crash and a sign-out, and are sent once."""

import asyncio
import contextlib
import json
import re
import signal
from typing import Any

import pytest
from playwright.async_api import Error, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import PAGE, OpenPage, sign_in, without_server
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.script import add_task, endless_answer, pausing_answer, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=6), pytest.mark.asyncio(loop_scope="session")]

UNSENT = "Not sent yet"
CREATE, ADD = "threads.create", "threads.add_user_message"
MAKE_OLD = """async (days) => {
    const database = await new Promise((done) => {
        const request = indexedDB.open("todo");
        request.onsuccess = () => done(request.result);
    });
    const transaction = database.transaction("unsaved", "readwrite");
    const store = transaction.objectStore("unsaved");
    const all = store.getAll();
    all.onsuccess = () => {
        for (const row of all.result) store.put({ ...row, at: row.at - days * 86_400_000 });
    };
    await new Promise((done) => (transaction.oncomplete = done));
    database.close();
}"""

RECORD_ANNOUNCEMENTS = """() => {
    globalThis.announced = [];
    const region = document.querySelector("todo-chat > [aria-live=polite]");
    new MutationObserver(() => announced.push(region.textContent)).observe(region, { childList: true });
}"""
DELAY_TAKING_OVER = """{
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (work, pause, ...more) => setTimeout(work, pause === 250 ? 4000 : pause, ...more);
}"""


def unsent(page: Page) -> Any:
    return screen.log(page).get_by_text(UNSENT, exact=True)


async def cut_off(page: Page) -> None:
    """Lets no request of the chat through."""
    for path in ("**/chatkit", "**/messages", "**/health"):
        await page.route(path, lambda route: route.abort())


async def lose_response(route: Route) -> None:
    """Lets the server carry out a request whose response never arrives."""
    with contextlib.suppress(Error):
        await route.fetch()
        await route.abort()


async def crash(page: Page) -> None:
    session = await page.context.new_cdp_session(page)
    with contextlib.suppress(Error, TimeoutError):
        await asyncio.wait_for(session.send("Page.crash"), 1)


async def test_messages_sent_while_offline_are_sent_in_order_after_a_reload(
    open_page: OpenPage, tasks: TaskApi
) -> None:
    page = await open_page()
    await cut_off(page)
    for text in ("add milk", "add bread", "add tea"):
        await screen.send(page, text)
    await expect(unsent(page)).to_have_count(3)
    await screen.message_box(page).fill("half a draft")
    await page.reload()
    await expect(screen.questions(page)).to_have_count(3)
    await expect(unsent(page)).to_have_count(3)
    await expect(screen.message_box(page)).to_have_value("half a draft")
    await page.unroute_all()
    await expect(screen.answers(page)).to_have_count(3)
    await expect(unsent(page)).to_have_count(0)
    await screen.answered(page)
    assert await tasks.titles() == ["milk", "bread", "tea"]
    address = await page.evaluate("location.pathname")
    assert address.startswith("/c/")
    texts = [" ".join(text.split()[:2]) for text in await screen.questions(page).all_inner_texts()]
    assert texts == ["add milk", "add bread", "add tea"]
    await page.reload()
    await expect(screen.questions(page)).to_have_count(3)
    await expect(screen.message_box(page)).to_have_value("half a draft")


@pytest.mark.parametrize("kind", [CREATE, ADD])
@pytest.mark.parametrize("arrives", [False, True])
async def test_reload_right_after_sending_shows_the_message_once(
    open_page: OpenPage, tasks: TaskApi, kind: str, arrives: bool
) -> None:
    page = await open_page()
    if kind == ADD:
        await screen.say(page, "add salt")
    arrived = asyncio.Event()

    async def hold(route: Route) -> None:
        with contextlib.suppress(Error):
            if arrives:
                await route.fetch()
            arrived.set()
            await asyncio.Event().wait()

    holding: list[asyncio.Task[None]] = []

    async def begin(route: Route) -> None:
        if arrived.is_set():
            await route.continue_()
        else:
            holding.append(asyncio.create_task(hold(route)))

    await screen.on(page, kind, begin)
    await screen.send(page, "add milk")
    await arrived.wait()
    await page.reload()
    await expect(screen.questions(page).filter(has_text="add milk")).to_have_count(1)
    await expect(screen.answers(page).last).to_contain_text("milk")
    await screen.answered(page)
    await expect(screen.questions(page).filter(has_text="add milk")).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("")
    assert (await page.evaluate("location.pathname")).startswith("/c/")
    assert await tasks.titles() == (["salt", "milk"] if kind == ADD else ["milk"])
    for one in holding:
        one.cancel()


async def test_answer_that_breaks_off_before_its_message_is_sent_once(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page()

    async def cut(route: Route) -> None:
        """Passes on the conversation's id alone."""
        frames = (await (await route.fetch()).text()).split("\n\n")
        end = next(number for number, frame in enumerate(frames) if "thread.created" in frame) + 1
        await route.fulfill(content_type="text/event-stream", body="\n\n".join([*frames[:end], ""]))

    await page.route("**/chatkit", cut, times=1)
    await screen.send(page, "add milk")
    await expect(screen.answers(page)).to_have_count(1)
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("")
    await expect(page.get_by_role("alert")).to_have_count(0)
    assert await tasks.titles() == ["milk"]


async def test_server_killed_before_its_response(
    open_page: OpenPage, stack: Stack, model: ScriptedModel, tasks: TaskApi, stored: Stored, user: User
) -> None:
    page = await open_page()
    await model.script(add_task("milk"), endless_answer("slowly"))
    sending: list[asyncio.Task[None]] = []

    async def lose(route: Route) -> None:
        if sending:
            return await route.fallback()
        return sending.append(asyncio.create_task(lose_response(route)))

    await screen.on(page, CREATE, lose)
    await screen.send(page, "add milk")
    await tasks.until("all", ["milk"])
    stack.backends[0].end(signal.SIGKILL)
    await asyncio.to_thread(stack.ensure_running)
    await asyncio.gather(*sending)
    await expect(unsent(page)).to_have_count(0)
    await stored.run_with_status(user.name, "interrupted")
    await expect(screen.questions(page)).to_have_count(1)
    await page.reload()
    await expect(screen.questions(page)).to_have_count(1)
    assert await tasks.titles() == ["milk"]
    assert len(stored.conversations(user.name)) == 1


@pytest.mark.parametrize("ended", [False, True], ids=["the server queues it, too", "its answer has ended"])
async def test_queued_messages_of_a_killed_server_are_sent_in_order(
    ended: bool, open_page: OpenPage, stack: Stack, model: ScriptedModel, stored: Stored, user: User
) -> None:
    """Those that the server had queued, one that was written without it, and one that is written later."""
    page = await open_page()
    await expect(screen.message_box(page)).to_be_editable()
    await page.evaluate(RECORD_ANNOUNCEMENTS)
    texts = ["first", "second", "third", "fourth", "fifth"]
    await model.script(endless_answer("slowly"))
    await screen.send(page, "first")
    await expect(screen.answers(page)).to_contain_text("slowly")
    for text in ("second", "third"):
        await screen.send(page, text)
    await expect(screen.log(page).get_by_text("Will be sent after this answer.")).to_have_count(2)
    async with without_server(stack):
        await page.context.set_offline(ended)
        await expect(page.get_by_text(screen.LOST)).to_be_visible()
        await screen.send(page, "fourth")
        await expect(unsent(page)).to_have_count(1)
        await model.reset()
        await model.script(*({"when": text, **says(f"Answer to {text}.")} for text in texts[1:]))
    if ended:
        await until(lambda: stored.run_statuses(user.name) == ["interrupted"])
        await page.context.set_offline(False)
    await expect(page.get_by_text(screen.LOST)).to_have_count(0)
    await screen.send(page, "fifth")
    await expect(screen.answers(page).last).to_contain_text("Answer to fifth.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(texts, use_inner_text=True)
    await expect(page.get_by_text("Not sent.")).to_have_count(0)
    assert stored.run_statuses(user.name) == ["interrupted", *["completed"] * 4]
    announced = json.loads(await page.evaluate("JSON.stringify(announced)"))
    assert any("was interrupted" in one for one in announced), announced
    assert "The answer is complete." not in announced
    await page.reload()
    await expect(screen.questions(page)).to_have_text(texts, use_inner_text=True)


async def test_message_of_a_crashed_tab_is_sent_by_the_next(open_page: OpenPage, tasks: TaskApi) -> None:
    first = await open_page()
    await screen.say(first, "add salt")
    second = await first.context.new_page()
    await second.goto(PAGE)
    await expect(screen.questions(second)).to_have_count(1)
    await cut_off(first)
    await screen.send(first, "add milk")
    await expect(unsent(first)).to_have_count(1)
    await screen.message_box(first).fill("from the first tab")
    await screen.message_box(second).fill("from the second tab")
    await first.wait_for_timeout(1500)  # what was typed longer ago is stored
    await crash(first)
    await second.reload()
    await expect(screen.questions(second).filter(has_text="add milk")).to_have_count(1)
    await screen.answered(second)
    await expect(screen.answers(second)).to_have_count(2)
    await expect(screen.message_box(second)).to_have_value("from the second tab")
    assert await tasks.titles() == ["salt", "milk"]


@pytest.mark.parametrize("chat_first", [False, True])
async def test_first_message_of_a_closed_tab_is_sent_and_shown_by_the_next(
    open_page: OpenPage, tasks: TaskApi, chat_first: bool
) -> None:
    """Also if the chat is loaded before the tab knows that the other one is closed."""
    first = await open_page()
    await cut_off(first)
    await screen.send(first, "add milk")
    await expect(unsent(first)).to_have_count(1)
    await first.close()
    second = await first.context.new_page()
    if chat_first:
        await second.add_init_script(DELAY_TAKING_OVER)
    await second.goto(PAGE)
    await expect(screen.questions(second)).to_have_text(["add milk"], use_inner_text=True)
    await screen.answered(second)
    assert await tasks.titles() == ["milk"]


async def test_message_is_sent_and_shown_for_its_user_alone(
    open_page: OpenPage, user: User, new_user: NewUser, tasks: TaskApi
) -> None:
    page = await open_page()
    await screen.say(page, "add salt")
    address = await page.evaluate("location.pathname")
    form = page.get_by_label("Access token")
    async with screen.only_the_chat(page):
        await page.context.clear_cookies()
        await screen.send(page, "add a secret")
        await expect(form).to_be_visible()
    assert "secret" not in await page.locator("body").inner_text()

    other = new_user()
    await form.fill(other.token)
    await screen.button(page, "Sign in").click()
    await screen.button(page, "New conversation").click()
    await screen.say(page, "add tea")
    assert "secret" not in await page.locator("body").inner_text()
    assert await TaskApi(other).titles() == ["tea"]

    await page.context.clear_cookies()
    await sign_in(page.context, user)
    await page.goto(PAGE)  # it shows the form unless it has noticed before that the other one's session was over
    signed_in = screen.side_bar(page).get_by_text(user.name, exact=True)
    await expect(form.or_(signed_in)).to_be_visible()
    if await form.count():
        await form.fill(user.token)
        await screen.button(page, "Sign in").click()
        await expect(signed_in).to_be_visible()
    await page.goto(address)
    message = page.get_by_role("article").filter(has_text="add a secret")
    await message.get_by_role("button", name="Send").click()
    await tasks.until("all", ["salt", "a secret"])


async def test_old_message_is_sent_again_only_by_its_user(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page()
    await cut_off(page)
    for text in ("add milk", "add bread"):
        await screen.send(page, text)
    await expect(unsent(page)).to_have_count(2)
    await page.reload()
    await expect(unsent(page)).to_have_count(2)
    await page.goto("/openapi.json")  # the page would store them again when it tries to send them
    await page.evaluate(MAKE_OLD, 8.1)
    await page.unroute_all()
    await page.goto("/")
    old = screen.questions(page).filter(has_text="Not sent for more than eight days")
    await expect(old).to_have_count(2)
    await screen.say(page, "add tea")
    assert await tasks.titles() == ["tea"]
    await screen.button(old.first, "Send again").click()
    await expect(old).to_have_count(1)
    await expect(screen.answers(page)).to_have_count(2)
    await screen.button(old, "Discard").click()
    await expect(old).to_have_count(0)
    await screen.answered(page)
    await page.reload()
    await expect(screen.questions(page)).to_have_count(2)
    assert sorted(await tasks.titles()) == ["milk", "tea"]


async def test_message_waits_for_the_answer_that_was_lost(
    open_page: OpenPage, model: ScriptedModel, stored: Stored, user: User
) -> None:
    """It is not rejected because an answer runs, but sent after that."""
    page = await open_page()
    await model.script(pausing_answer("slow ", "end"), says("Second."))
    await screen.send(page, "first")
    await expect(screen.answers(page)).to_contain_text("slow")
    await cut_off(page)
    await screen.message_box(page).fill("second")
    await screen.button(page, "Send next").click()
    await expect(unsent(page)).to_have_count(1)
    await page.reload()
    await expect(unsent(page)).to_have_count(1)
    await page.unroute_all()
    await expect(unsent(page)).to_have_count(0)
    await model.release()
    await expect(screen.answers(page).last).to_contain_text("Second.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["first", "second"], use_inner_text=True)
    assert len(stored.runs(user.name)) == 2


async def test_queued_message_whose_response_was_lost_is_queued_once(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(pausing_answer("slow ", "end"), says("Second."))
    await screen.send(page, "first")
    await expect(screen.answers(page)).to_contain_text("slow")
    await page.route("**/messages", lose_response, times=1)
    await screen.message_box(page).fill("second")
    await screen.button(page, "Send next").click()
    await expect(page.get_by_text("Will be sent after this answer.")).to_have_count(1)
    await expect(unsent(page)).to_have_count(0)
    await model.release()
    await expect(screen.answers(page).last).to_contain_text("Second.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["first", "second"], use_inner_text=True)


async def test_first_message_is_shown_before_the_views_of_messages_are_loaded(open_page: OpenPage) -> None:
    loaded = asyncio.Event()

    async def hold(route: Route) -> None:
        await loaded.wait()
        await route.continue_()

    page = await open_page(prepare=lambda page: page.route("**/chat/log.js", hold))
    await screen.send(page, "add milk")
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    await expect(page).to_have_url(re.compile("/c/"))
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    loaded.set()
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_count(1)


async def test_first_message_that_was_written_without_a_connection_gets_a_shown_answer(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await expect(screen.message_box(page)).to_be_editable()
    await page.context.set_offline(True)
    await screen.send(page, "hello")
    await expect(page.get_by_text(screen.LOST)).to_be_visible()
    await model.script(says("Fine."))
    await page.context.set_offline(False)
    await expect(screen.answers(page)).to_have_count(1)
    await expect(screen.answers(page)).to_contain_text("Fine.")


async def test_changes_of_the_list_of_conversations_are_events(open_page: OpenPage) -> None:
    page = await open_page()
    await expect(screen.message_box(page)).to_be_visible()
    await page.evaluate("""() => {
        globalThis.histories = [];
        document.querySelector("todo-chat").addEventListener("todo.history", ({ detail }) =>
            globalThis.histories.push(detail.threads.map(({ title }) => title)));
    }""")
    await screen.say(page, "add milk")
    assert json.loads(await page.evaluate("JSON.stringify(histories.at(-1))")) == ["add milk"]


async def test_unsent_conversation_is_found_again_behind_another_one(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page()
    await screen.say(page, "add salt")
    await cut_off(page)
    await screen.button(page, "New conversation").click()
    await screen.send(page, "add milk")
    await expect(unsent(page)).to_have_count(1)
    await screen.button(page, "New conversation").click()
    await expect(screen.questions(page)).to_have_count(0)
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(unsent(page)).to_have_count(1)
    await page.unroute_all()
    await expect(screen.answers(page)).to_have_count(1)
    await screen.answered(page)
    assert await tasks.titles() == ["salt", "milk"]
