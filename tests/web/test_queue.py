"""Messages that are written while an answer runs: they wait, are sent now, taken back, or left unsent."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.scripted_model import ScriptedModel
from tests.web import ended, screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

SLOW = {"text": "word " * 60, "token_delay": 0.05}


def queue(page: Page) -> Locator:
    return screen.log(page).get_by_role("list", name="Not read yet")


async def count_and_queue(page: Page, *texts: str) -> None:
    """Ask for a slow answer, and write while it runs."""
    await screen.send(page, "count")
    await expect(screen.answers(page).last).to_contain_text("word word")
    for text in texts:
        await screen.message_box(page).fill(text)
        await expect(screen.button(page, "Stop")).to_be_visible()
        await screen.button(page, "Queue").click()
        await expect(screen.message_box(page)).to_have_value("")
        await expect(screen.message_box(page)).to_be_focused()
    await expect(queue(page).get_by_text("Waits until this answer is done.")).to_have_count(len(texts))


async def test_what_is_written_meanwhile_is_answered_when_the_answer_is_done(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await model.script(SLOW, {"text": "Second."}, {"text": "Third."})
    await count_and_queue(page, "the second", "the third")
    assert await screen.answers(page).count() == 1
    await expect(screen.answers(page).last).to_contain_text("Third.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "the second", "the third"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)
    seen = await screen.log(page).inner_text()
    await page.reload()
    await expect(screen.questions(page)).to_have_count(3)
    assert await screen.log(page).inner_text() == seen


async def test_after_a_reload_it_still_waits(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({**SLOW, "text": "word " * 120}, {"text": "Second."})
    await count_and_queue(page, "the second")
    await page.reload()
    await expect(queue(page).get_by_text("Waits until this answer is done.")).to_have_count(1)
    await expect(screen.answers(page).last).to_contain_text("Second.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "the second"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)


async def test_one_is_sent_now_and_one_is_taken_back(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({**SLOW, "tool_calls": [{"name": "list_tasks"}]}, {"text": "Quick."}, {"text": "Later."})
    await count_and_queue(page, "never", "quick", "later")
    never, quick, _ = [
        queue(page).get_by_role("listitem").filter(has_text=text) for text in ("never", "quick", "later")
    ]
    await screen.button(never, "Remove").click()
    await expect(never).to_have_count(0)
    await screen.button(quick, "Send now").click()
    await expect(quick).to_contain_text("Is read next.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "quick", "later"], use_inner_text=True)
    said = [str(request["body"]["messages"][-1]["content"]) for request in await model.finished_requests()]
    assert said[-2:] == ["quick", "later"]


async def test_a_stop_gives_back_what_waited(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(SLOW)
    await count_and_queue(page, "and then")
    await screen.button(page, "Stop").click()
    await expect(screen.message_box(page)).to_have_value("and then")
    await expect(queue(page)).to_have_count(0)
    await page.reload()
    await expect(screen.log(page).get_by_text("This answer was stopped before its end.")).to_be_visible()
    await expect(queue(page)).to_have_count(0)
    await expect(screen.message_box(page)).to_have_value("and then")


async def test_what_a_failed_answer_did_not_read_is_shown_as_unsent_and_can_be_sent_again(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await model.script({**SLOW, "cut_after": 30}, {"text": "Here you are."})
    await count_and_queue(page, "and then", "never mind")
    await expect(queue(page).get_by_text("Not sent.")).to_have_count(2)
    await page.reload()
    await expect(queue(page).get_by_text("Not sent.")).to_have_count(2)
    never = queue(page).get_by_role("listitem").filter(has_text="never mind")
    await screen.button(never, "Remove").click()
    await expect(never).to_have_count(0)
    await screen.button(queue(page), "Send again").click()
    await expect(screen.answers(page).last).to_contain_text("Here you are.")
    await expect(queue(page)).to_have_count(0)
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["count", "and then"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)


async def test_one_that_comes_after_the_end_is_answered_at_once(
    open_page: OpenPage, model: ScriptedModel, database_url: str
) -> None:
    page = await open_page()
    await model.script({**SLOW, "text": "word " * 20}, {"text": "Second."})

    async def late(route: Any) -> None:
        if "while_running" in route.request.post_data:
            await expect(screen.answers(page).last).to_contain_text("word " * 19)
            await ended.all_turns(database_url)
        await route.continue_()

    await screen.on(page, "threads.add_user_message", late)
    await screen.send(page, "count")
    await expect(screen.answers(page).last).to_contain_text("word word")
    await screen.send(page, "the second")
    await expect(screen.answers(page).last).to_contain_text("Second.")
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["count", "the second"], use_inner_text=True)
    await expect(queue(page)).to_have_count(0)


async def test_one_that_is_refused_is_given_back(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(SLOW)

    async def refuse(route: Any) -> None:
        if "while_running" in route.request.post_data:
            await route.fulfill(status=429, json={"error": "Too many."})
        else:
            await route.continue_()

    await screen.on(page, "threads.add_user_message", refuse)
    await screen.send(page, "count")
    await expect(screen.answers(page).last).to_contain_text("word word")
    await screen.send(page, "and then")
    await expect(page.get_by_role("alert")).to_contain_text("Too many.")
    await expect(screen.message_box(page)).to_have_value("and then")
    await screen.button(page, "Stop").click()


async def test_the_queue_is_for_everybody(open_page: OpenPage, violations: Violations, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 320, "height": 640})
    await model.script({**SLOW, "text": "word " * 600}, {"text": "Second."})
    await screen.send(page, "count")
    await expect(screen.answers(page).last).to_contain_text("word word")
    await screen.send(page, "a message that is longer than the width of a small screen by far")
    await expect(screen.button(page, "Send now")).to_be_visible()
    await screen.message_box(page).fill("more")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await screen.message_box(page).fill("")
    await screen.button(page, "Remove").focus()
    await page.keyboard.press("Enter")
    await expect(queue(page)).to_have_count(0)
    await expect(page.locator(":focus")).to_have_count(1)
    await screen.button(page, "Stop").click()
