"""The page where nobody signs in: the name of the model, its titles and summaries."""

import re

import pytest
from playwright.async_api import expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.scripted_model import ScriptedModel
from tests.support.stack import STACKS

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

LINE = re.compile(r"^\s*\d+ earlier messages? (was|were) summarised\.\s*$")


@pytest.fixture
def stack_name() -> str:
    return "no_sign_in"


async def test_summarised_messages_are_mentioned(open_page: OpenPage, violations: Violations) -> None:
    page = await open_page(signed_in=False)
    line = screen.log(page).locator("p").filter(has_text=LINE)
    for number in range(12):
        await screen.say(page, f"hello {number}")
        if await line.count():
            break
    await expect(line.first).to_be_visible()
    assert await violations(page) == []
    await page.reload()
    await expect(line.first).to_be_visible()
    await expect(screen.answers(page).last).to_be_visible()
    await expect(screen.button(page, "Answer again")).to_be_visible()


async def test_nobody_signs_out(open_page: OpenPage) -> None:
    page = await open_page(signed_in=False)
    await screen.open_menu(page)
    await expect(screen.button(page, "Keys")).to_be_visible()
    for name in ("Devices", "Sign out"):
        await expect(screen.button(page, name)).to_have_count(0)


async def test_badge_names_the_model_which_writes_titles(
    open_page: OpenPage, violations: Violations, model: ScriptedModel
) -> None:
    await model.script({"when": "Write a title", "text": "Saying hello"})
    page = await open_page(signed_in=False, viewport={"width": 320, "height": 800}, is_mobile=True)
    name = STACKS["no_sign_in"].environment["LLM_MODEL"]
    await screen.open_side_bar(page)
    badge = screen.button(page, name)
    await expect(badge).to_be_in_viewport(ratio=1)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await badge.click()
    about = page.get_by_role("dialog", name="About this assistant")
    for text in (name, "No sign-in", "Built-in chat"):
        await expect(about).to_contain_text(text)
    await expect(about.get_by_text("Add an AI model")).to_have_count(0)
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await screen.show_assistant(page)
    await screen.button(page, "New conversation").click()
    await screen.say(page, "hello there")
    await expect(page).to_have_title("Saying hello · To-do assistant")
    await screen.open_history(page)
    await expect(screen.history(page)).to_contain_text("Saying hello")
