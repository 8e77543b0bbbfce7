"""Messages that are written while an answer runs: they wait, are sent at once, removed, or given back."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.answers import start_run
from tests.support.script import call, calls, pausing_answer, says
from tests.support.stored import Stored
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

SLOW = pausing_answer("word word ", "and end")
FAILING = {**SLOW, "cut_after": 3}
CHAT = "groceries"
WAITS = "Will be sent after this answer."


def queue(page: Page) -> Locator:
    return screen.log(page).get_by_role("list", name="Waiting messages")


async def count_and_queue(page: Page, *texts: str) -> None:
    """Asks for an answer that is held, and writes while it runs."""
    await screen.send(page, "count")
    await expect(screen.answers(page).last).to_contain_text("word word")
    for text in texts:
        await screen.message_box(page).fill(text)
        await expect(screen.button(page, "Stop")).to_be_visible()
        await screen.button(page, "Send next").click()
        await expect(screen.message_box(page)).to_have_value("")
        await expect(screen.message_box(page)).to_be_focused()
    await expect(queue(page).get_by_text(WAITS)).to_have_count(len(texts))


async def leave_unsent(user: User, model: ScriptedModel, *texts: str) -> str:
    """Queues messages for an answer that fails, without a page; returns the address of the conversation."""
    await model.script(FAILING)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    for text in texts:
        await user.runs.send(CHAT, run, text, mode="follow_up")
    await model.release()
    await user.runs.read(CHAT, run)
    return f"/c/{(await user.runs.get_chat(CHAT, limit=0))['chat_id']}"


async def reject(route: Route) -> None:
    await route.fulfill(status=429, json={"error": "Too many."})


async def test_waiting_messages_are_answered_after_the_answer(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(SLOW, says("Second."), says("Third."))
    await count_and_queue(page, "the second", "the third")
    await page.reload()
    await expect(queue(page).get_by_text(WAITS)).to_have_count(2)
    await expect(screen.answers(page)).to_have_count(1)
    await model.release()
    await expect(screen.answers(page).last).to_contain_text("Third.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "the second", "the third"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)
    seen = await screen.log(page).inner_text()
    await page.reload()
    await expect(screen.questions(page)).to_have_count(3)
    await expect(screen.log(page)).to_have_text(seen, use_inner_text=True)


async def test_waiting_message_names_a_task(open_page: OpenPage, model: ScriptedModel, tasks: TaskApi) -> None:
    await tasks.add("Buy milk")
    page = await open_page()
    await model.script(SLOW, says("Fine."))
    await count_and_queue(page)
    await screen.message_box(page).focus()
    await page.keyboard.type("complete @bu")
    await expect(page.get_by_role("option", name="Buy milk")).to_be_visible()
    await page.keyboard.press("Tab")
    await screen.button(page, "Send next").click()
    await expect(queue(page)).to_contain_text("complete @Buy milk")
    await page.reload()
    await expect(queue(page)).to_contain_text("complete @Buy milk")
    await model.release()
    await expect(screen.answers(page).last).to_contain_text("Fine.")
    await screen.answered(page)
    await expect(screen.questions(page).last).to_contain_text("complete @Buy milk")


async def test_one_is_sent_at_once_and_one_is_removed(
    open_page: OpenPage, model: ScriptedModel, violations: Violations
) -> None:
    page = await open_page(viewport={"width": 320, "height": 640})
    await model.script({**SLOW, **calls(call("list_tasks"), text=SLOW["text"])}, says("Quick."), says("Later."))
    await count_and_queue(page, "never, a message that is longer than the width of a small screen", "quick", "later")
    await screen.message_box(page).fill("more")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await screen.message_box(page).fill("")
    never, quick = [queue(page).get_by_role("listitem").filter(has_text=text) for text in ("never", "quick")]
    await screen.button(never, "Remove").focus()
    await page.keyboard.press("Enter")
    await expect(never).to_have_count(0)
    await expect(page.locator(":focus")).to_have_count(1)
    await screen.button(quick, "Send now").click()
    await expect(quick).to_contain_text("The assistant reads this next.")
    await model.release()
    await expect(screen.answers(page).last).to_contain_text("Later.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "quick", "later"], use_inner_text=True)


async def test_rejected_and_stopped_messages_are_given_back(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(SLOW)
    await count_and_queue(page)
    await page.route("**/messages", reject)
    await screen.send(page, "and then")
    await expect(page.get_by_role("alert")).to_contain_text("Too many.")
    await expect(screen.message_box(page)).to_have_value("and then")
    await page.unroute_all()
    await screen.message_box(page).press("Enter")
    await expect(queue(page).get_by_text(WAITS)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("")
    await screen.button(page, "Stop").click()
    await expect(screen.message_box(page)).to_have_value("and then")
    await expect(queue(page)).to_have_count(0)
    await page.reload()
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()
    await expect(queue(page)).to_have_count(0)
    await expect(screen.message_box(page)).to_have_value("and then")


async def test_waiting_messages_are_sent_after_a_failed_answer(
    open_page: OpenPage, model: ScriptedModel, stored: Stored, user: User
) -> None:
    page = await open_page()
    await model.script(FAILING, says("Second."), says("Third."))
    await count_and_queue(page, "the second", "the third")
    await model.release()
    await expect(screen.answers(page).last).to_contain_text("Third.")
    await screen.answered(page)
    await expect(screen.log(page).get_by_text("was cut off before its end")).to_have_count(1)
    await expect(queue(page)).to_have_count(0)
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["count", "the second", "the third"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)
    assert stored.run_statuses(user.name) == ["failed", "completed", "completed"]


async def test_waiting_messages_that_are_rejected_after_a_failed_answer_are_given_back(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await model.script(FAILING)
    await count_and_queue(page, "the second", "the third")
    await screen.on(page, "threads.add_user_message", reject)
    await model.release()
    await expect(page.get_by_role("alert")).to_contain_text("Too many.")
    await expect(screen.message_box(page)).to_have_value("the second\n\nthe third")
    await page.reload()
    await expect(screen.message_box(page)).to_have_value("the second\n\nthe third")
    await expect(screen.answers(page)).to_have_count(1)
    await expect(queue(page)).to_have_count(0)


async def test_waiting_message_that_nobody_has_sent_is_sent_once_by_two_pages(
    open_page: OpenPage, model: ScriptedModel, stored: Stored, user: User
) -> None:
    address = await leave_unsent(user, model, "the second")
    await model.script(says("Second."))
    pages = await asyncio.gather(open_page(address), open_page(address))
    for page in pages:
        await expect(screen.answers(page).last).to_contain_text("Second.")
        await screen.answered(page)
        await expect(screen.questions(page)).to_have_text(["count", "the second"], use_inner_text=True)
        await expect(queue(page)).to_have_count(0)
    assert stored.run_statuses(user.name) == ["failed", "completed"]


async def test_old_waiting_message_is_sent_only_by_its_user(
    open_page: OpenPage, model: ScriptedModel, stored: Stored, user: User
) -> None:
    address = await leave_unsent(user, model, "the second", "the third")

    async def make_old(route: Route) -> None:
        response = await route.fetch(headers={**route.request.headers, "Sec-Fetch-Site": "same-origin"})
        chat = await response.json()
        for message in chat["unread"]:
            message["created_at"] = "2026-11-01T12:00:00Z"
        await route.fulfill(response=response, json=chat)

    page = await open_page(address, prepare=lambda page: page.route("**/chats/*?limit=0", make_old))
    await expect(queue(page).get_by_text("Not sent.")).to_have_count(2)
    await model.script(says("Third."), says("Fourth."))
    third = queue(page).get_by_role("listitem").filter(has_text="the third")
    await screen.button(third, "Send again").click()
    await expect(screen.answers(page).last).to_contain_text("Third.")
    await screen.say(page, "the fourth")
    await expect(screen.questions(page)).to_have_text(["count", "the third", "the fourth"], use_inner_text=True)
    await screen.button(queue(page), "Remove").click()
    await expect(queue(page)).to_have_count(0)
    await page.reload()
    await expect(screen.questions(page)).to_have_count(3)
    await expect(queue(page)).to_have_count(0)
    assert stored.run_statuses(user.name) == ["failed", "completed", "completed"]


async def test_message_that_arrives_after_the_end_is_answered_at_once(
    open_page: OpenPage, model: ScriptedModel, stored: Stored, user: User
) -> None:
    page = await open_page()
    await model.script(SLOW, says("Second."))

    async def late(route: Any) -> None:
        await model.release()
        await stored.run_with_status(user.name, "completed")
        await route.continue_()

    await page.route("**/messages", late)
    await screen.send(page, "count")
    await expect(screen.answers(page).last).to_contain_text("word word")
    await screen.send(page, "the second")
    await expect(screen.answers(page).last).to_contain_text("Second.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "the second"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)
