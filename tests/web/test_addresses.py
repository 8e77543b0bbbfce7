"""Each conversation has an address of its own: followed, left by Back, opened again, and of nothing else."""

import pytest
from playwright.async_api import Page, expect

from tests.web import screen
from tests.web.conftest import OpenPage
from tests.web.stand_ins import READY, WIDGET, serving, with_list

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

UNKNOWN = "thr_0123456789abcdef0123456789abcdef"
PATH = "location.pathname"


async def path(page: Page) -> str:
    return await page.evaluate(PATH)


async def test_back_and_forward_go_through_the_conversations(open_page: OpenPage) -> None:
    page = await open_page()
    assert await path(page) == "/"
    await screen.say(page, "add milk")
    first = await path(page)
    assert first.startswith("/c/thr_")
    await expect(page).to_have_title("add milk · To-do assistant")
    await screen.button(page, "New conversation").click()
    assert await path(page) == "/"
    await expect(page).to_have_title("To-do assistant")
    await screen.say(page, "add bread")
    second = await path(page)
    assert second not in ("/", first)
    await page.go_back()
    await expect(screen.questions(page)).to_have_count(0)
    await page.go_back()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    assert await path(page) == first
    await page.go_forward()
    await page.go_forward()
    await expect(screen.questions(page)).to_have_text(["add bread"], use_inner_text=True)
    assert await path(page) == second
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["add bread"], use_inner_text=True)
    assert await page.evaluate("location.search") == "?ui=built-in", "which chat was asked for stays"


async def test_an_address_opens_its_conversation_in_another_tab(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    there = await path(page)
    await screen.button(page, "New conversation").click()
    await screen.say(page, "add bread")
    other = await page.context.new_page()
    await other.goto(f"{there}?ui=built-in")
    await expect(screen.questions(other)).to_have_text(["add milk"], use_inner_text=True)
    assert await path(other) == there
    await other.go_back()
    assert await other.evaluate("location.href") == "about:blank", "opening it leaves no entry of its own"


async def test_the_last_conversation_is_opened_where_none_is_named(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    there = await path(page)
    await page.goto("/?ui=built-in")
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    assert await path(page) == there


async def test_one_that_is_not_there_is_told_of_and_a_new_one_is_open(open_page: OpenPage) -> None:
    page = await open_page(f"/c/{UNKNOWN}?ui=built-in")
    await expect(page.get_by_text("That conversation is not there any more. This is a new one.")).to_be_visible()
    assert await path(page) == "/"
    await screen.say(page, "add milk")
    assert (await path(page)).startswith("/c/thr_")
    await page.go_back()
    await expect(screen.questions(page)).to_have_count(0)
    assert await path(page) == "/", "nothing leads back to what is not there"


async def test_going_back_to_one_that_was_deleted_meanwhile_is_told(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.button(page, "New conversation").click()
    await screen.open_history(page)
    await screen.button(screen.history(page), "Delete add milk").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(screen.button(screen.history(page), "Delete add milk")).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_text("That conversation is not there any more. This is a new one.")).to_be_visible()
    assert await path(page) == "/"


@pytest.mark.parametrize("rest", ["?c={}", "?thread={}", "#/c/{}", "?ui=built-in&next=/c/{}"])
async def test_nothing_but_the_path_names_a_conversation(open_page: OpenPage, rest: str) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    there = (await path(page)).removeprefix("/c/")
    await screen.button(page, "New conversation").click()
    await page.goto("about:blank")
    await page.goto("/" + rest.format(there))
    await expect(screen.message_box(page)).to_be_visible()
    await expect(screen.questions(page)).to_have_count(0)
    assert await path(page) == "/"


async def test_openai_s_widget_opens_what_the_address_names(open_page: OpenPage) -> None:
    page = await open_page(prepare=serving(WIDGET % READY))
    await screen.say(page, "add milk")
    there = await path(page)
    await page.goto(there)
    await expect(page.get_by_text("The real widget", exact=True)).to_be_visible()
    assert await page.evaluate("window.given.initialThread") == there.removeprefix("/c/")
    for address in (there, f"/c/{UNKNOWN}"):
        await page.evaluate(
            "threadId => document.querySelector('openai-chatkit')"
            ".dispatchEvent(new CustomEvent('chatkit.thread.change', {detail: {threadId}}))",
            address.removeprefix("/c/"),
        )
        assert await path(page) == address
    await page.go_back()
    await screen.until(page, f"window.asked === '{there.removeprefix('/c/')}'")


async def test_who_follows_a_link_on_a_phone_sees_the_conversation(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport={"width": 390, "height": 800})
    await page.get_by_role("tab", name="Chat").click()
    await screen.say(page, "add milk")
    there = await path(page)
    await page.get_by_role("tab", name="Tasks").click()
    await page.reload()
    await expect(page.get_by_role("tab", name="Tasks", selected=True)).to_be_visible()
    other = await page.context.new_page()
    await with_list(other)
    await other.goto(f"{there}?ui=built-in")
    await expect(screen.questions(other)).to_have_text(["add milk"], use_inner_text=True)
    await expect(screen.questions(other)).to_be_visible()
