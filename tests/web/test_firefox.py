"""The page in Firefox: the list by hand, and an answer that streams and changes it."""

import pytest

from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.web.conftest import BUILT_IN
from tests.web.firefox import firefox

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

BOX = "document.querySelector('.rows [aria-label=\"Done: %s\"]')"
ANSWER = "document.querySelector('todo-chat article.answer')"


async def test_the_list_and_the_chat_work_together(
    site: ServiceProcess, model: ScriptedModel, database_url: str
) -> None:
    call = {"name": "add_task", "arguments": {"title": "bread", "due": "today"}}
    await model.script({"tool_calls": [call]}, {"text": "I have **added** it. " * 20, "token_delay": 0.02})
    async with firefox() as browser:
        await browser.open(f"{site.url}{BUILT_IN}")
        await browser.click("textbox", "Add a task")
        await browser.write("buy milk today #shop")
        await browser.click("checkbox", "Done: buy milk")
        await browser.until(f"{BOX % 'buy milk'}?.checked")
        await browser.click("button", "Undo")
        await browser.until(f"{BOX % 'buy milk'}?.checked === false")
        await browser.click("textbox", "Message")
        await browser.write("bread, please")
        await browser.until(f"{ANSWER}?.ariaBusy === 'true' && {ANSWER}.textContent.includes('added')")
        await browser.until(BOX % "bread")  # the list is told at once, while the answer goes on
        assert await browser.evaluate(f"{ANSWER}.ariaBusy") == "true"
        await browser.until(f"{ANSWER}.ariaBusy === 'false' && {ANSWER}.querySelectorAll('strong').length === 20")
        assert await browser.evaluate("document.querySelector('.widget [type=checkbox]').ariaLabel") == "bread"
        assert browser.problems == []
