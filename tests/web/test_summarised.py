"""A conversation that is longer than the model reads: a line says so."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.async_api import expect

from tests.processes import ServiceProcess, running
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

LINE = re.compile(r"^\s*\d+ earlier messages? (was|were) summarised\.\s*$")


@pytest.fixture(scope="module")
def forgetful(new_backend: Callable[..., ServiceProcess]) -> Iterator[ServiceProcess]:
    yield from running(new_backend(HISTORY_TOKENS="1000"))


async def test_a_line_says_that_earlier_messages_were_summarised(
    open_page: OpenPage, model: ScriptedModel, forgetful: ServiceProcess, violations: Violations
) -> None:
    page = await open_page(base=forgetful.url)
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
