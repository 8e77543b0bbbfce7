"""A card that asks before something is done, and what the person answers."""

from typing import Any

import psycopg
import pytest
from playwright.async_api import Locator, Page, expect

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

TITLES = [f"task number {number}" for number in range(1, 13)]
SLOW = {"text": "one two three four five six seven eight nine ten", "chunk_chars": 4, "token_delay": 0.2}


@pytest.fixture
def stored(database_url: str) -> Any:
    """Counts rows of the database."""

    def count(which: str) -> int:
        with psycopg.connect(as_admin(database_url)) as connection:
            [[found]] = connection.execute(f"SELECT count(*) FROM {which}".encode()).fetchall()
            return found

    return count


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


async def test_an_approval_lets_the_answer_go_on(
    open_page: OpenPage, model: ScriptedModel, violations: Violations, stored: Any
) -> None:
    page = await open_page()
    await asked(page, model, {"text": "They are gone."})
    await expect(page.get_by_role("group", name="Delete 12 tasks?")).to_be_visible()
    await expect(card(page)).to_contain_text("“task number 12” (12)")
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert stored("tasks") == 12
    await screen.button(card(page), "Approve: Delete 12 tasks?").click()
    await expect(screen.answers(page).last).to_have_text("They are gone.")
    await expect(card(page)).to_contain_text("Approved")
    await expect(card(page).get_by_role("button")).to_have_count(0)
    await screen.answered(page)
    assert await violations(page) == []
    assert stored("tasks") == 0
    await page.reload()
    await expect(card(page)).to_contain_text("Approved")


async def test_a_refusal_with_a_reason_by_keyboard(open_page: OpenPage, model: ScriptedModel, stored: Any) -> None:
    page = await open_page()
    await asked(page, model, {"text": "I leave them."})
    await screen.button(card(page), "Approve: Delete 12 tasks?").focus()
    await page.keyboard.press("Shift+Tab")
    await expect(card(page).get_by_label("Reason (optional)")).to_be_focused()
    await page.keyboard.type("not these")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(screen.button(card(page), "Refuse: Delete 12 tasks?")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(screen.answers(page).last).to_have_text("I leave them.")
    await expect(card(page)).to_contain_text("Refused")
    await expect(card(page)).to_contain_text("Reason: not these")
    await expect(screen.message_box(page)).to_be_focused()
    assert stored("tasks") == 12
    assert "not these" in (await model.finished_requests())[-1]["body"]["messages"][-1]["content"]


async def test_the_answer_after_an_approval_can_be_stopped(
    open_page: OpenPage, model: ScriptedModel, stored: Any
) -> None:
    page = await open_page()
    await asked(page, model, SLOW)
    await screen.button(card(page), "Approve: Delete 12 tasks?").dblclick()
    await expect(screen.answers(page).last).to_contain_text("one two")
    await expect(screen.button(page, "Send")).to_have_count(0)
    await screen.button(page, "Stop").click()
    await expect(screen.button(page, "Send")).to_be_visible()
    await expect(screen.log(page)).to_contain_text("This answer was stopped before its end.")
    await expect(page.get_by_role("alert")).to_have_count(0)
    assert stored("task_calls WHERE operation = 'delete'") == 1


async def test_what_is_asked_is_there_after_a_reload_and_is_answered_once(
    open_page: OpenPage, model: ScriptedModel, stored: Any
) -> None:
    page = await open_page()
    await asked(page, model, {"text": "They are gone."})
    other = await page.context.new_page()
    await other.goto(page.url)
    await page.reload()
    await expect(card(other)).to_be_visible()
    await other.evaluate("() => { Object.defineProperty(document, 'hidden', { value: true }) }")  # hears of nothing
    await screen.button(card(page), "Approve: Delete 12 tasks?").click()
    await expect(screen.answers(page).last).to_have_text("They are gone.")
    await screen.button(card(other), "Refuse: Delete 12 tasks?").click()
    await expect(other.get_by_role("alert")).to_contain_text("This was decided already.")
    await expect(card(other)).to_contain_text("Approved")
    assert stored("tasks") == 0


async def test_another_message_refuses_what_is_asked(open_page: OpenPage, model: ScriptedModel, stored: Any) -> None:
    page = await open_page()
    await asked(page, model, {"text": "As you like."})
    await screen.say(page, "never mind")
    await expect(card(page)).to_contain_text("Refused")
    await expect(card(page)).to_contain_text("The person wrote something else instead.")
    assert stored("tasks") == 12
