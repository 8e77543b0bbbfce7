"""The model tokens of the user's day, in the page's menu and when they are used up."""

import asyncio

import pytest
from playwright.async_api import Route, expect

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


@pytest.mark.parametrize("size", [(1280, 800), (1280, 420), (320, 700)])
async def test_items_of_the_menu_stay_when_the_usage_comes(open_page: OpenPage, size: tuple[int, int]) -> None:
    """Otherwise a click between them is lost, or is another item's."""
    page = await open_page(viewport={"width": size[0], "height": size[1]})
    may_come = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await may_come.wait()
        await route.continue_()

    await page.route("**/usage", answer_late)
    await screen.open_menu(page)
    menu = page.get_by_role("dialog", name="Menu")
    before = await screen.button(menu, "Memory").bounding_box()
    may_come.set()
    await expect(menu).to_contain_text("Tokens today: 0 of 5,000,000")
    assert await screen.button(menu, "Memory").bounding_box() == before
