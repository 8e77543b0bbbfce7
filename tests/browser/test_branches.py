"""A message is edited in its place, an answer is given again, and the branches are paged through."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


def field(page: Page) -> Any:
    return screen.log(page).get_by_role("textbox", name="Your message")


def branches(page: Page) -> Any:
    return screen.log(page).get_by_role("group", name="Versions")


async def test_edit_and_answer_again_make_branches_that_stay(
    open_page: OpenPage, model: ScriptedModel, violations: Violations
) -> None:
    page = await open_page(viewport={"width": 320, "height": 700})
    await model.script({"text": "One is said."}, {"text": "More is said."}, {"text": "Two is said."})
    await screen.say(page, "one")
    await screen.say(page, "more")

    # an edit that is refused changes nothing
    async def refuse(route: Any) -> None:
        body = 'data: {"type": "error", "code": "custom", "message": "Wait a moment.", "allow_retry": true}\n\n'
        await route.fulfill(status=200, content_type="text/event-stream", body=body)

    await screen.on(page, "threads.custom_action", refuse)
    await screen.button(page, "Edit").first.click()
    await field(page).fill("two")
    await screen.button(page, "Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("Wait a moment.")
    await expect(screen.questions(page)).to_have_text(["one", "more"], use_inner_text=True)
    await expect(screen.message_box(page)).to_have_value("two")
    await expect(page.get_by_role("alert").get_by_role("button", name="Try again")).to_have_count(0)
    await page.unroute_all()
    await screen.message_box(page).fill("")

    await screen.button(page, "Edit").first.click()
    await field(page).fill("two")
    await screen.button(page, "Save").click()
    await expect(screen.answers(page)).to_have_text(["Two is said."], use_inner_text=True)
    await screen.answered(page)
    await expect(screen.questions(page)).to_have_text(["two"], use_inner_text=True)
    await expect(branches(page)).to_have_text("2 of 2")

    # by keyboard
    assert await violations(page) == []
    edit = screen.button(page, "Edit")
    await edit.focus()
    await page.keyboard.press("Enter")
    await expect(field(page)).to_be_focused()
    await expect(field(page)).to_have_value("two")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await field(page).fill("not this")
    await page.keyboard.press("Escape")
    await expect(edit).to_be_focused()
    await expect(screen.questions(page)).to_have_text(["two"], use_inner_text=True)
    await page.keyboard.press("Enter")
    await expect(field(page)).to_have_value("not this")
    await screen.button(page, "Cancel").press("Enter")
    await expect(edit).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(field(page)).to_have_value("two")
    await page.keyboard.press("Escape")
    await screen.button(page, "Previous version").focus()
    await page.keyboard.press("Enter")
    await expect(screen.answers(page)).to_have_count(2)
    await expect(screen.button(page, "Next version")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(screen.answers(page)).to_have_count(1)
    await expect(screen.button(page, "Previous version")).to_be_focused()
    await model.script({"text": "Three is said."})
    await edit.focus()
    await page.keyboard.press("Enter")
    await field(page).fill("three\nlines")
    await page.keyboard.press("Enter")
    await expect(screen.answers(page)).to_have_text(["Three is said."], use_inner_text=True)
    await expect(branches(page)).to_have_text("3 of 3")
    await expect(screen.questions(page)).to_have_text(["three\nlines"], use_inner_text=True)
    await screen.answered(page)

    # by mouse
    await screen.button(page, "Previous version").click()
    await expect(branches(page)).to_have_text("2 of 3")
    await screen.button(page, "Previous version").click()
    await expect(screen.questions(page)).to_have_text(["one", "more"], use_inner_text=True)
    await expect(screen.answers(page)).to_have_text(["One is said.", "More is said."], use_inner_text=True)
    await expect(branches(page)).to_have_text("1 of 3")
    await expect(screen.button(page, "Previous version")).to_be_disabled()
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["one", "more"], use_inner_text=True)
    await expect(branches(page)).to_have_text("1 of 3")
    await model.script({"text": "Even more is said."})
    await screen.button(page, "Answer again").last.click()
    await expect(screen.answers(page)).to_have_text(["One is said.", "Even more is said."], use_inner_text=True)
    await screen.answered(page)
    await expect(branches(page)).to_have_text(["1 of 3", "2 of 2"])
    await screen.button(page, "Previous version").last.click()
    await expect(screen.answers(page)).to_have_text(["One is said.", "More is said."], use_inner_text=True)
