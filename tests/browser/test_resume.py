"""A running answer is followed: after a reload, in another conversation, tab or browser."""

import asyncio
import contextlib

import pytest
from playwright.async_api import Error, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import PAGE, OpenPage
from tests.scripted_model import ScriptedModel
from tests.support.script import endless_answer, pausing_answer
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=6), pytest.mark.asyncio(loop_scope="session")]

WIDE = {"viewport": {"width": 1280, "height": 800}}
ELSEWHERE = "The assistant is answering in another tab…"


async def new_tab(page: Page) -> Page:
    tab = await page.context.new_page()
    await tab.goto(PAGE)
    return tab


async def open_conversation(page: Page, title: str) -> None:
    await screen.open_history(page)
    await screen.button(screen.history(page), title).click()


async def test_answer_goes_on_after_a_reload_in_another_browser_and_behind_another_conversation(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await model.script(pausing_answer("slow slow ", "slow end"))
    await screen.send(page, "slowly")
    await expect(screen.answers(page)).to_contain_text("slow slow")
    await page.reload()
    await expect(screen.answers(page)).to_contain_text("slow slow")
    await expect(screen.button(page, "Stop")).to_be_visible()
    other = await open_page()
    await open_conversation(other, "slowly")
    await expect(screen.button(other, "Stop")).to_be_visible()
    await model.release()
    for shown in (page, other):
        await screen.answered(shown)
        await expect(screen.answers(shown)).to_have_text(["slow slow slow end"], use_inner_text=True)
        await expect(screen.questions(shown)).to_have_count(1)
    await screen.say(page, "add milk")

    await model.script(pausing_answer("slow ", "end"))
    await screen.button(page, "New conversation").click()
    await screen.send(page, "slowly please")
    await expect(screen.answers(page)).to_contain_text("slow")
    await open_conversation(page, "slowly")
    await expect(screen.questions(page)).to_have_text(["slowly", "add milk"], use_inner_text=True)
    await open_conversation(page, "slowly please")
    await expect(screen.button(page, "Stop")).to_be_visible()
    await model.release()
    await screen.answered(page)
    await expect(screen.answers(page)).to_contain_text("end")


async def test_only_the_open_conversation_is_followed(open_page: OpenPage, model: ScriptedModel) -> None:
    device = await open_page()
    await screen.say(device, "add milk")
    await model.script(endless_answer("word"))
    await screen.button(device, "New conversation").click()
    await screen.send(device, "go on")
    await expect(screen.answers(device)).to_contain_text("word")
    page = await open_page(**WIDE)
    conversations = screen.side_bar(page)
    held_routes: list[Route] = []
    followed: list[str] = []

    async def hold(route: Route) -> None:
        held_routes.append(route)

    async def follow(route: Route) -> None:
        followed.append(str(route.request.post_data))
        await route.continue_()

    await screen.on(page, "items.list", hold)
    await screen.on(page, "threads.custom_action", follow)
    for opened in range(1, 4):
        await conversations.get_by_role("link", name="go on").click()
        await until(lambda opened=opened: len(held_routes) == 2 * opened - 1)
        await conversations.get_by_role("link", name="add milk").click()
        await until(lambda opened=opened: len(held_routes) == 2 * opened)
    for route in held_routes:
        await route.continue_()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    await page.unroute_all()
    await screen.on(page, "threads.custom_action", follow)
    await conversations.get_by_role("link", name="go on").click()
    await expect(screen.answers(page)).to_contain_text("word")
    assert len(followed) == 1
    await screen.button(page, "Stop").click()
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()
    for shown in (page, device):
        await expect(screen.button(shown, "Send")).to_be_visible()


async def test_running_conversations_are_marked(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(**WIDE)
    await model.script(endless_answer("word"))
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    await screen.button(page, "New conversation").click()
    for shown in (page, await new_tab(page), other := await open_page()):
        await screen.open_history(shown)
        mark = screen.history(shown).get_by_role("img", name="The assistant is answering")
        await expect(mark).to_have_count(1)
    await open_conversation(page, "go on")
    await screen.button(page, "Stop").click()
    for shown in (page, other):
        mark = screen.history(shown).get_by_role("img", name="The assistant is answering")
        await expect(mark).to_have_count(0)


async def test_second_tab_shows_the_same_and_waits_for_the_answer_in_the_first(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await new_tab(first)
    await expect(screen.questions(second)).to_have_count(1)
    await screen.say(first, "show my list")
    await expect(screen.task_list(second)).to_be_visible()
    await screen.task_list(second).get_by_role("checkbox", name="milk").check()
    await expect(screen.task_list(first).get_by_role("checkbox", name="milk")).to_be_checked()
    await model.script(pausing_answer("slow ", "end"))
    await screen.send(first, "slowly")
    await expect(screen.answers(first).last).to_contain_text("slow")
    third = await new_tab(first)
    for tab in (second, third):
        await expect(tab.get_by_text(ELSEWHERE)).to_be_visible()
    await screen.send(second, "me too")
    await expect(screen.button(second, "Send")).to_be_disabled()
    await expect(screen.message_box(second)).to_have_value("me too")
    await model.release()
    await screen.answered(first)
    await expect(screen.answers(second).last).to_contain_text("end")
    await expect(screen.button(second, "Send")).to_be_enabled()
    await model.reset()
    await model.script(endless_answer("again"))
    await screen.message_box(second).press("Enter")
    await expect(screen.questions(first).last).to_contain_text("me too")
    await expect(first.get_by_text(ELSEWHERE)).to_be_visible()
    await expect(screen.answers(second).last).to_contain_text("again")
    await screen.button(second, "Stop").click()
    await expect(screen.answers(first).last).to_contain_text("again")
    await expect(screen.button(first, "Answer again")).to_be_visible()


async def test_answer_of_a_crashed_tab_goes_on_in_another(open_page: OpenPage, model: ScriptedModel) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await new_tab(first)
    await model.script(pausing_answer("slow ", "end"))
    await screen.send(first, "slowly")
    await expect(second.get_by_text(ELSEWHERE)).to_be_visible()
    await screen.message_box(second).fill("me too")
    session = await first.context.new_cdp_session(first)
    with contextlib.suppress(Error, TimeoutError):  # it does not answer any more
        await asyncio.wait_for(session.send("Page.crash"), 1)
    await expect(screen.button(second, "Stop")).to_be_visible()
    await model.release()
    await expect(screen.answers(second).last).to_contain_text("end")
    await expect(screen.button(second, "Send")).to_be_enabled()


async def test_another_browser_gets_its_message_back_until_the_answer_has_ended(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await open_page()
    await open_conversation(second, "add milk")
    await expect(screen.questions(second)).to_have_count(1)
    await model.script(pausing_answer("slow ", "end"))
    await screen.send(first, "slowly")
    await expect(screen.answers(first).last).to_contain_text("slow")
    await screen.send(second, "me too")
    await expect(second.get_by_role("alert")).to_be_visible()
    await expect(screen.message_box(second)).to_have_value("me too")
    await model.release()
    await screen.answered(first)
    await expect(screen.answers(second).last).to_contain_text("end")
    await expect(second.get_by_role("alert")).to_have_count(0)
    await screen.message_box(second).press("Enter")
    await expect(screen.questions(second).last).to_contain_text("me too")
    await screen.answered(second)
    await first.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # its user comes back to it
    await expect(screen.questions(first).last).to_contain_text("me too")
