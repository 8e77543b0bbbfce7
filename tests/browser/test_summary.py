"""A conversation that is longer than the model reads: a line says so."""

import re

import pytest
from playwright.async_api import expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations

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
