"""A message of one's own is edited in its place, and its versions are paged through."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


def field(page: Page) -> Any:
    return screen.log(page).get_by_role("textbox", name="Your message")


def versions(page: Page) -> Any:
    return screen.log(page).get_by_role("group", name="Versions")


async def two_versions(page: Page, model: ScriptedModel) -> None:
    await model.script({"text": "One is said."}, {"text": "More is said."}, {"text": "Two is said."})
    await screen.say(page, "one")
    await screen.say(page, "more")
    await screen.button(page, "Edit").first.click()
    await field(page).fill("two")
    await screen.button(page, "Save").click()
    await expect(screen.answers(page)).to_have_text(["Two is said."], use_inner_text=True)
    await screen.answered(page)
    await expect(versions(page)).to_have_text("2 of 2")


async def test_an_edit_is_answered_and_both_versions_are_there_after_a_reload(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await two_versions(page, model)
    await expect(screen.questions(page)).to_have_text(["two"], use_inner_text=True)
    await screen.button(page, "Previous version").click()
    await expect(screen.questions(page)).to_have_text(["one", "more"], use_inner_text=True)
    await expect(screen.answers(page)).to_have_text(["One is said.", "More is said."], use_inner_text=True)
    await expect(versions(page)).to_have_text("1 of 2")
    await expect(screen.button(page, "Previous version")).to_be_disabled()
    await page.reload()
    await expect(screen.questions(page)).to_have_text(["one", "more"], use_inner_text=True)
    await expect(versions(page)).to_have_text("1 of 2")


async def test_an_answer_that_was_given_again_has_versions_too(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "First."}, {"text": "Second."})
    await screen.say(page, "hello")
    await expect(versions(page)).to_have_count(0)
    await screen.button(page, "Answer again").click()
    await expect(screen.answers(page)).to_have_text(["Second."], use_inner_text=True)
    await expect(versions(page)).to_have_text("2 of 2")
    await screen.button(page, "Previous version").click()
    await expect(screen.answers(page)).to_have_text(["First."], use_inner_text=True)


async def test_all_of_it_can_be_done_with_the_keyboard(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await two_versions(page, model)
    edit = screen.button(page, "Edit")
    await edit.focus()
    await page.keyboard.press("Enter")
    await expect(field(page)).to_be_focused()
    await expect(field(page)).to_have_value("two")
    await field(page).fill("not this")
    await page.keyboard.press("Escape")
    await expect(edit).to_be_focused()
    await expect(screen.questions(page)).to_have_text(["two"], use_inner_text=True)
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
    await expect(versions(page)).to_have_text("3 of 3")
    await expect(screen.questions(page)).to_have_text(["three\nlines"], use_inner_text=True)


@pytest.mark.parametrize("width", [320, 1200])
async def test_versions_and_the_edit_are_accessible(
    open_page: OpenPage, model: ScriptedModel, violations: Violations, width: int
) -> None:
    page = await open_page(viewport={"width": width, "height": 700})
    await two_versions(page, model)
    assert await violations(page) == []
    await screen.button(page, "Edit").click()
    await expect(field(page)).to_be_visible()
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_an_edit_that_is_refused_changes_nothing(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "One is said."}, {"text": "More is said."})
    await screen.say(page, "one")
    await screen.say(page, "more")

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
