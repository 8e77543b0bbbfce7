"""Sign-in with a token, and sign-out, which leaves nothing behind."""

import asyncio

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser import conftest, screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.script import pausing_answer
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def sign_in(page: Page, token: str) -> None:
    await page.get_by_label("Token").fill(token)
    await screen.button(page, "Sign in").click()


async def discard_and_sign_out(page: Page) -> None:
    await screen.from_menu(page, "Sign out")
    await screen.button(page.get_by_role("dialog", name="Sign out?"), "Discard").click()


async def test_sign_in_and_again_after_the_session_has_ended(open_page: OpenPage, user: User) -> None:
    page = await open_page(signed_in=False)
    await expect(page.get_by_text("Sign in to see your tasks.")).to_be_visible()
    await expect(page.get_by_text("Paste your access token")).to_be_visible()
    await expect(page.get_by_text("No sign-in")).to_have_count(0)
    await expect(screen.message_box(page)).to_have_count(0)
    await sign_in(page, "no token at all")
    await expect(page.get_by_role("alert")).to_be_visible()
    await sign_in(page, user.token)
    await screen.say(page, "add milk")
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    await screen.message_box(page).fill("add bread")
    await page.context.clear_cookies()
    await page.keyboard.press("Enter")  # the list may ask first
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(screen.log(page)).to_have_count(0)
    await sign_in(page, user.token)
    await expect(screen.questions(page).first).to_be_visible()
    await screen.message_box(page).press("Enter")  # if it was not sent before
    send = screen.questions(page).get_by_role("button", name="Send", exact=True)
    await expect(send.or_(screen.button(page, "Answer again").nth(1))).to_be_visible()
    if await send.count():  # it was, and waits for the user who has signed in since
        await send.click()
    await expect(screen.questions(page)).to_have_text(["add milk", "add bread"], use_inner_text=True)
    await screen.answered(page)


async def test_session_that_ends_elsewhere_while_an_answer_is_read(
    open_page: OpenPage, user: User, model: ScriptedModel
) -> None:
    """The answer goes on, and whoever signs in again finds all of it, and what was typed."""
    await model.script(pausing_answer("Hello ", "there."))
    page = await open_page(signed_in=False)
    await sign_in(page, user.token)
    await screen.message_box(page).fill("hello")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Hello", exact=True)).to_be_visible()
    await screen.message_box(page).fill("and bread")
    left = await page.context.request.delete(f"{user.url}/session", headers={"Origin": user.url})
    assert left.status == 204
    await expect(page.get_by_label("Token")).to_be_visible()
    await model.release()
    await sign_in(page, user.token)
    await expect(page.get_by_text("Hello there.", exact=True)).to_be_visible()
    await expect(screen.questions(page)).to_have_text(["hello"], use_inner_text=True)
    await expect(screen.message_box(page)).to_have_value("and bread")


async def test_next_user_finds_nothing_of_the_last(open_page: OpenPage, user: User, new_user: NewUser) -> None:
    page = await open_page(signed_in=False)
    await sign_in(page, user.token)
    await screen.say(page, "add secret plans")
    await screen.message_box(page).fill("half a secret")
    await page.route("**/session", lambda route: route.abort())
    await discard_and_sign_out(page)
    await expect(page.get_by_text("Could not sign you out")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("half a secret")
    await page.unroute_all()
    await discard_and_sign_out(page)
    await expect(page.get_by_label("Token")).to_be_visible()
    assert "secret" not in await page.locator("body").inner_text()
    assert "secret" not in await page.title()
    assert await page.evaluate("location.pathname") == "/today"
    assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")
    await sign_in(page, new_user().token)
    await expect(screen.message_box(page)).to_have_value("")
    await screen.say(page, "show my list")
    assert "secret" not in await page.locator("body").inner_text()


async def test_next_user_does_not_begin_at_the_place_of_the_last(open_page: OpenPage, new_user: NewUser) -> None:
    page = await open_page("/all?q=secret")
    search = page.get_by_role("searchbox", name="Search tasks")
    await expect(search).to_have_value("secret")
    await screen.say(page, "add milk")
    async with screen.only_the_chat(page):
        await page.context.clear_cookies()
        await screen.send(page, "add a secret")
        await expect(page.get_by_label("Token")).to_be_visible()
    await sign_in(page, new_user().token)
    await expect(screen.message_box(page)).to_be_visible()
    await expect(search).to_have_value("")
    await screen.say(page, "add bread")
    await expect(page.get_by_text("no longer exists")).to_have_count(0)
    await page.go_back()
    assert await page.evaluate("location.pathname") == "/today"


async def test_user_begins_at_the_link_they_opened(open_page: OpenPage, user: User, tasks: TaskApi) -> None:
    number = await tasks.add("milk", due="tomorrow")
    page = await open_page(f"/t/{number}", signed_in=False, pane="tasks")
    title = page.get_by_role("textbox", name="Title")
    await sign_in(page, user.token)
    await expect(title).to_have_value("milk")
    await page.context.clear_cookies()
    await page.reload()
    await sign_in(page, user.token)
    await expect(title).to_have_value("milk")
    assert await page.evaluate("location.pathname") == f"/t/{number}"


async def test_dialog_closes_with_the_session_and_keeps_its_text_for_its_user(
    open_page: OpenPage, user: User, new_user: NewUser
) -> None:
    page = await open_page(signed_in=False)
    await sign_in(page, user.token)
    await screen.from_menu(page, "Memory")
    memory = page.get_by_role("textbox", name="Memory")
    await memory.fill("my secret habits")
    await page.context.clear_cookies()
    await expect(page.get_by_label("Token")).to_be_focused()  # the list has asked
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await sign_in(page, user.token)
    await screen.from_menu(page, "Memory")
    await expect(memory).to_have_value("my secret habits")
    await screen.button(page, "Save").focus()
    await page.context.clear_cookies()
    await page.keyboard.press("Enter")  # the list may ask first
    await expect(page.get_by_label("Token")).to_be_focused()
    await sign_in(page, new_user().token)
    await screen.from_menu(page, "Memory")
    await expect(memory).to_be_enabled()
    await expect(memory).to_have_value("")

    # a late response to the last session signs nobody out
    signed_in = asyncio.Event()

    async def reject_late(route: Route) -> None:
        await signed_in.wait()
        await route.fulfill(status=401, json={"error": "Sign in."})

    await page.route("**/memory", reject_late, times=1)
    await screen.button(page, "Save").click()
    await page.context.clear_cookies()
    await sign_in(page, user.token)
    await screen.from_menu(page, "Memory")
    await expect(memory).to_be_enabled()
    async with page.expect_response("**/memory"):
        signed_in.set()
    await memory.fill("my habits")
    await expect(memory).to_have_value("my habits")


async def test_memory_of_another_user_stays_as_it_is(open_page: OpenPage, user: User, new_user: NewUser) -> None:
    """Who has signed in in another tab."""
    page = await open_page(pane="tasks")
    await task_list.loaded(page)
    await screen.from_menu(page, "Memory")
    memory = page.get_by_role("textbox", name="Memory")
    await memory.fill("my secret habits")
    await page.route(task_list.API, lambda route: route.abort())  # which would notice first
    other = new_user()
    await conftest.sign_in(page.context, other)
    await screen.button(page, "Save").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert (await other.runs.memory())["text"] == ""
    assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")


async def test_message_on_its_way_is_forgotten_after_sign_out(open_page: OpenPage, user: User) -> None:
    page = await open_page(prepare=lambda page: page.clock.install())
    await screen.say(page, "add milk")
    await page.route("**/chatkit", lambda route: None)
    await screen.message_box(page).fill("a secret")
    await screen.message_box(page).press("Enter")
    await discard_and_sign_out(page)
    await expect(page.get_by_label("Token")).to_be_visible()
    await page.clock.run_for(2_000)  # longer than a stopped message is looked for
    assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")


async def test_dialog_that_opens_after_its_session_is_not_shown(open_page: OpenPage, user: User) -> None:
    """Its module is loaded while the session ends; it ends no later session."""
    page = await open_page(signed_in=False)
    await sign_in(page, user.token)
    await screen.open_menu(page)
    may_load = asyncio.Event()

    async def load_late(route: Route) -> None:
        await may_load.wait()
        await route.continue_()

    await page.context.route("**/calendar.js", load_late)
    await screen.button(page, "Calendar").click()
    await page.context.clear_cookies()
    await expect(page.get_by_label("Token")).to_be_focused()
    may_load.set()
    await sign_in(page, user.token)
    await screen.say(page, "add milk")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await screen.from_menu(page, "Memory")
    await expect(page.get_by_role("textbox", name="Memory")).to_be_focused()
