"""Conversations: opened, renamed, deleted, searched, loaded page by page, and each with an address of its own."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import PAGE, OpenPage
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=6), pytest.mark.asyncio(loop_scope="session")]

PHONE = {"viewport": {"width": 390, "height": 800}}


async def path(page: Page) -> str:
    return await page.evaluate("location.pathname")


async def begin_many(user: User) -> None:
    for number in range(1, 46):
        await user.runs.begin(f"Talk {number}")


async def delete(page: Page, title: str) -> None:
    await screen.button(screen.history(page), f"Delete {title}").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(screen.button(screen.history(page), title)).to_have_count(0)


async def test_conversations_are_opened_renamed_and_deleted(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.button(page, "New conversation").click()
    await expect(screen.questions(page)).to_have_count(0)
    await screen.say(page, "add bread")
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)

    await screen.open_history(page)
    await screen.button(screen.history(page), "Rename add milk").click()
    title = screen.history(page).get_by_role("textbox", name="Title")
    await title.fill("   ")
    await title.press("Enter")
    await screen.button(screen.history(page), "Rename add milk").click()
    await title.fill("Dairy")
    await screen.history(page).get_by_role("heading", name="Conversations").click()  # keeps what was written
    await expect(title).to_have_count(0)
    await screen.button(screen.history(page), "Rename Dairy").click()
    await title.fill("Something else")
    await title.press("Escape")
    await expect(screen.button(screen.history(page), "Dairy")).to_be_focused()

    await screen.button(screen.history(page), "Delete Dairy").click()
    await expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await delete(page, "Dairy")
    await expect(screen.questions(page)).to_have_count(0)
    await page.reload()
    await screen.open_history(page)
    await expect(screen.history(page).locator(".title")).to_have_text(["add bread"])


async def test_conversations_are_listed_by_day(open_page: OpenPage, user: User) -> None:
    await user.runs.begin("An old one")
    [thread] = (await user.chatkit.list_threads()).data
    created = datetime.fromisoformat(thread["created_at"]).astimezone(UTC)
    page = await open_page("about:blank", timezone_id="UTC", locale="de-DE")
    for days, heading in ((0, "Today"), (1, "Yesterday"), (800, created.strftime("%Y"))):
        await page.clock.set_fixed_time(created + timedelta(days=days))
        await page.goto(PAGE)
        await screen.open_history(page)
        await expect(screen.history(page).get_by_role("heading", level=3)).to_contain_text([heading])


async def test_many_conversations_are_loaded_in_pages_and_searched(open_page: OpenPage, user: User) -> None:
    await begin_many(user)
    page = await open_page()
    await screen.open_history(page)
    history = screen.history(page)
    titles = history.locator(".title")
    await expect(screen.button(history, "Talk 45")).to_be_visible()
    field = page.get_by_role("searchbox", name="Search conversations")
    await field.fill("talk 3")
    await expect(titles).to_have_count(11)  # one that no page has loaded yet among them
    await field.fill("100%")
    await expect(titles).to_have_count(0)
    await field.press("Escape")
    await expect(titles).to_have_count(20)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await page.route("**/chats?*", hold)
    more = screen.button(history, "Show more")
    await more.click()
    await more.click()  # asks once
    await until(lambda: held)
    await held[0].continue_()
    await expect(titles).to_have_count(40)
    assert len(held) == 1
    await page.unroute_all()
    await more.click()
    await expect(screen.button(history, "Talk 1")).to_be_visible()
    await expect(more).to_have_count(0)

    async def hold_first(route: Route) -> None:
        if "titled=Talk+4" in route.request.url:
            held.append(route)
        else:
            await route.fallback()

    held.clear()
    await page.route("**/chats?*", hold_first)
    await field.fill("Talk 4")
    await until(lambda: held)
    await field.fill("Talk 7")
    await expect(titles).to_have_text(["Talk 7"])
    async with page.expect_response("**/chats?*"):
        await held[0].continue_()
    await expect(titles).to_have_text(["Talk 7"])  # what was found late is dropped
    await screen.button(history, "Close").click()
    await screen.open_history(page)
    await expect(titles).to_have_count(20)


async def test_long_conversation_is_loaded_page_by_page(open_page: OpenPage, user: User) -> None:
    thread = (await user.chatkit.say("message 0")).thread_id
    for number in range(1, 16):
        await user.chatkit.say(f"message {number}", thread)
    page = await open_page(f"/c/{thread}")
    await expect(screen.answers(page).last).to_be_visible()  # drawn by modules that are loaded after the questions
    await expect(screen.questions(page).last).to_be_in_viewport()
    assert await screen.questions(page).count() < 16
    while await screen.questions(page).count() < 16:
        first = await screen.questions(page).first.inner_text()
        await screen.questions(page).first.scroll_into_view_if_needed()
        await expect(screen.questions(page).first).not_to_have_text(first, use_inner_text=True)
        await expect(
            screen.questions(page).filter(has_text=re.compile(rf"^\s*{first.strip()}\s*$"))
        ).to_be_in_viewport()  # the place is kept
    await expect(screen.button(page, "Show older messages")).to_have_count(0)
    texts = [text.strip() for text in await screen.questions(page).all_inner_texts()]
    assert texts == [f"message {number}" for number in range(16)]


async def test_conversations_with_the_same_title_show_their_times(open_page: OpenPage) -> None:
    page = await open_page(timezone_id="UTC", locale="en-GB")
    for text in ("add milk", "add milk", "add bread"):
        await screen.say(page, text)
        await screen.button(page, "New conversation").click()
    await screen.open_history(page)
    titles = screen.history(page).locator(".title")
    await expect(titles).to_have_text([re.compile(r"^\s*add bread\s*$"), *[re.compile(r"add milk · .*\d:\d\d")] * 2])
    links = screen.side_bar(page).locator("#recent a")
    await expect(links.filter(has_text=re.compile(r"\d:\d\d"))).to_have_count(2)


async def test_back_and_forward_go_through_the_conversations(open_page: OpenPage) -> None:
    page = await open_page()
    assert await path(page) == "/"
    await screen.say(page, "add milk")
    first = await path(page)
    assert first.startswith("/c/thr_")
    await expect(page).to_have_title("add milk · To-do assistant")
    await screen.button(page, "New conversation").click()
    assert await path(page) == "/today"
    await screen.say(page, "add bread")
    second = await path(page)
    assert second not in ("/today", first)
    await page.go_back()
    await expect(screen.questions(page)).to_have_count(0)
    await page.go_back()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    assert await path(page) == first
    await page.go_forward()
    await page.go_forward()
    await expect(screen.questions(page)).to_have_text(["add bread"], use_inner_text=True)
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["add bread"], use_inner_text=True)
    assert await path(page) == second
    await page.goto(PAGE)  # the last one is opened where none is named
    await expect(screen.questions(page)).to_have_text(["add bread"], use_inner_text=True)


async def test_an_address_opens_its_conversation_in_another_tab_of_a_phone(open_page: OpenPage) -> None:
    page = await open_page(pane="tasks", **PHONE)
    await screen.show_assistant(page)
    await screen.say(page, "add milk")
    address = await path(page)
    await screen.button(page, "New conversation").click()
    await screen.say(page, "add bread")
    await screen.show_tasks(page)
    other = await page.context.new_page()
    await other.goto(f"{address}")
    await expect(screen.questions(other)).to_have_text(["add milk"], use_inner_text=True)
    await expect(screen.questions(other)).to_be_visible()
    assert await path(other) == address
    await other.go_back()
    assert await other.evaluate("location.href") == "about:blank", "opening it leaves no entry of its own"


async def test_missing_conversation_is_reported_and_a_new_one_is_open(open_page: OpenPage, user: User) -> None:
    page = await open_page("/c/thr_0123456789abcdef0123456789abcdef")
    gone = page.get_by_text("That conversation no longer exists")
    await expect(gone).to_be_visible()
    await screen.say(page, "add milk")
    assert (await path(page)).startswith("/c/thr_")
    await page.go_back()
    await expect(screen.questions(page)).to_have_count(0)
    assert await path(page) == "/today", "nothing leads back to what is not there"
    await page.go_forward()
    await expect(screen.questions(page)).to_have_count(1)
    await screen.button(page, "New conversation").click()
    await screen.open_history(page)
    await delete(page, "add milk")
    await page.go_back()
    await expect(gone).to_be_visible()
    assert await path(page) == "/today"


async def test_what_is_written_is_kept_for_each_conversation_and_tab(open_page: OpenPage) -> None:
    page = await open_page()
    box = screen.message_box(page)
    await screen.send(page, "x" * 8001)
    await expect(page.get_by_text("8,000")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(0)
    await expect(box).to_have_value("x" * 8001)
    await box.fill("add")
    await page.reload()
    await expect(box).to_have_value("add")
    await box.press("Shift+Enter")
    await expect(box).to_have_value("add\n")
    await screen.say(page, "add milk")
    await box.press("ArrowUp")
    await expect(box).to_have_value("add milk")
    await page.keyboard.type(" and bread")
    await box.press("ArrowUp")
    await expect(box).to_have_value("add milk and bread")
    await screen.button(page, "New conversation").click()
    await expect(box).to_have_value("")
    tab = await page.context.new_page()
    await tab.goto(PAGE)
    await screen.message_box(tab).fill("in the other tab")
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(box).to_have_value("add milk and bread")
