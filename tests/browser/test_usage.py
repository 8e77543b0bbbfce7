"""The model tokens of the user's day, in the page's menu and when they are used up."""

import pytest
from playwright.async_api import expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, says

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

HALF = {"prompt_tokens": 2_499_000, "completion_tokens": 1_000}


async def test_tokens_of_today(open_page: OpenPage, violations: Violations, model: ScriptedModel) -> None:
    page = await open_page()
    menu, button = page.get_by_role("dialog", name="Menu"), screen.button(page, "Menu")
    await button.click()
    await expect(menu).to_contain_text("Tokens today: 0 of 5,000,000")
    await page.keyboard.press("Escape")
    await model.script({**says("Hello."), "usage": HALF}, {**add_task("milk"), "usage": HALF})
    await screen.say(page, "hello")
    await screen.send(page, "add milk")
    await expect(screen.log(page)).to_contain_text("5,000,000 model tokens of the day are used up")
    await expect(screen.log(page)).to_contain_text("Added 1")
    await screen.send(page, "and bread")
    await expect(page.get_by_role("alert")).to_contain_text("You have used up your 5,000,000 model tokens of today.")
    await expect(screen.message_box(page)).to_have_value("and bread")
    await button.click()
    await expect(menu).to_contain_text("Tokens today: 5,000,000 of 5,000,000")
    assert await violations(page) == []
    assert len(await model.requests()) == 2
