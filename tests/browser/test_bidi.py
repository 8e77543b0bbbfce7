"""Titles and labels with characters that reorder others: they change no text around them."""

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import says

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

RLO = "\u202e"
"""Shows what follows from right to left, as an isolate (U+2067) does."""
PLAIN_TEXTS = """() => [
    document.title,
    ...[...document.querySelectorAll("[title], [aria-label]")].flatMap((one) => [one.title, one.ariaLabel]),
    ...[...document.querySelectorAll(".notice-bar, [aria-live=polite], dialog h2")].map((one) => one.textContent),
].filter((text) => /\\p{Bidi_Control}/u.test(text ?? ""))"""
"""Texts that cannot isolate a part of them."""


async def reordered(page: Page) -> list[str]:
    return await page.evaluate(PLAIN_TEXTS)


async def test_title_with_an_override_reorders_no_text_around_it(
    open_list: OpenPage, tasks: TaskApi, model: ScriptedModel
) -> None:
    await tasks.add(f"pay {RLO}knab", labels=[f"ho{RLO}me\u2067"], due="today")
    page = await open_list()
    title = task_list.titles(page).first
    await title.click()
    await expect(page).to_have_title("pay knab · To-do assistant")
    await page.keyboard.press("Escape")
    await page.keyboard.press("l")
    await expect(page.get_by_role("heading", name="Labels of “pay knab”")).to_be_visible()
    assert await reordered(page) == []
    await page.keyboard.press("Escape")
    await task_list.rows(page).locator("button.label").click()
    await expect(page).to_have_title("Today #home · To-do assistant")
    assert await reordered(page) == []
    await model.script(says("Fine."))
    await screen.say(page, f"tell me {RLO}more")
    await expect(page.locator("#recent a").first).to_be_visible()
    assert await reordered(page) == []
    await task_list.tick(page, "pay knab").click()
    await expect(task_list.notice(page)).to_contain_text("Completed: “pay knab”")
    assert await reordered(page) == []
