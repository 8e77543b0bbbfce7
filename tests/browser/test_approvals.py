"""A card that asks before something is done, and what the user decides."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

TITLES = [f"task number {number}" for number in range(1, 13)]


def card(page: Page, text: str = "Delete 12 tasks") -> Locator:
    return screen.log(page).locator(".card").filter(has_text=text)


async def asked(page: Page, model: ScriptedModel, *then: dict[str, Any]) -> None:
    """Twelve tasks, and a card that asks whether they are to be deleted."""
    adding = {"name": "add_task", "arguments": {"title": TITLES[0], "also": TITLES[1:]}}
    deleting = {"name": "delete_task", "arguments": {"task_id": 1, "also": list(range(2, 13))}}
    await model.script({"tool_calls": [adding]}, {"text": "Added."}, {"tool_calls": [deleting]}, *then)
    await screen.say(page, "add them")
    await screen.say(page, "delete all")
    await expect(card(page)).to_be_visible()


async def test_approve(open_page: OpenPage, model: ScriptedModel, violations: Violations, tasks: TaskApi) -> None:
    page = await open_page()
    await asked(page, model, {"text": "They are gone."})
    await expect(page.get_by_role("group", name="Delete 12 tasks?")).to_be_visible()
    await expect(card(page)).to_contain_text("“task number 12”")
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(await tasks.titles()) == 12
    await screen.button(card(page), "Delete 12 tasks").dblclick()
    await expect(screen.answers(page).last).to_have_text("They are gone.")
    await expect(card(page)).to_contain_text("Approved")
    await expect(card(page).get_by_role("button")).to_have_count(0)
    await expect(page.get_by_role("alert")).to_have_count(0)
    await screen.answered(page)
    assert await violations(page) == []
    assert await tasks.titles() == []
    await page.reload()
    await expect(card(page)).to_contain_text("Approved")


async def test_reject_with_a_reason_by_keyboard(open_page: OpenPage, model: ScriptedModel, tasks: TaskApi) -> None:
    page = await open_page()
    await asked(page, model, {"text": "I leave them."})
    await screen.button(card(page), "Delete 12 tasks").focus()
    await page.keyboard.press("Shift+Tab")
    await expect(card(page).get_by_label("Reason (optional)")).to_be_focused()
    await page.keyboard.type("not these")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(screen.button(card(page), "Keep them: Delete 12 tasks?")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(screen.answers(page).last).to_have_text("I leave them.")
    await expect(card(page)).to_contain_text("Rejected")
    await expect(card(page)).to_contain_text("Reason: not these")
    await expect(screen.message_box(page)).to_be_focused()
    assert len(await tasks.titles()) == 12
    assert "not these" in (await model.finished_requests())[-1]["body"]["messages"][-1]["content"]


async def test_approval_survives_a_reload_and_is_decided_once(
    open_page: OpenPage, model: ScriptedModel, tasks: TaskApi
) -> None:
    page = await open_page()
    await asked(page, model, {"text": "They are gone."})
    other = await page.context.new_page()
    await other.goto(page.url)
    await page.reload()
    await expect(card(other)).to_be_visible()
    await other.evaluate("() => { Object.defineProperty(document, 'hidden', { value: true }) }")  # hears of nothing
    await screen.button(card(page), "Delete 12 tasks").click()
    await expect(screen.answers(page).last).to_have_text("They are gone.")
    await screen.button(card(other), "Keep them: Delete 12 tasks?").click()
    await expect(other.get_by_role("alert")).to_be_visible()
    await expect(card(other)).to_contain_text("Approved")
    assert await tasks.titles() == []
