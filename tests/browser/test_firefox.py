"""The page in Firefox: the list by hand, an answer that streams and changes it, and one that nests too deeply."""

import pytest

from tests.browser.conftest import PAGE
from tests.browser.firefox import firefox
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, pausing_answer
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

BOX = "document.querySelector('.rows [aria-label=\"Done: %s\"]')"
ANSWER = "document.querySelector('todo-chat article.answer')"
NOTICE = "document.querySelector('.notice-bar')"


async def test_list_and_chat_in_firefox(stack: Stack, model: ScriptedModel, user: User) -> None:
    await model.script(
        add_task("bread", due="today"),
        pausing_answer("I have **added** it. ", "I have **added** it. " * 19),
        {"text": "> " * 3000 + "deep"},
    )
    async with firefox() as browser:
        await browser.open(f"{stack.url}{PAGE}")
        session = "fetch('/session', {method: 'POST', headers: {Authorization: 'Bearer %s'}})"
        await browser.evaluate(f"void {session % user.token}.then(({{ ok }}) => {{ window.signedIn = ok; }})")
        await browser.until("window.signedIn")
        await browser.open(f"{stack.url}{PAGE}")
        await browser.click("textbox", "Add a task")
        await browser.write("buy milk today #shop")
        await browser.click("checkbox", "Done: buy milk")
        await browser.until(f"{BOX % 'buy milk'}?.checked")
        await browser.until(f"{NOTICE}?.textContent.includes('Completed')")  # before that, Undo takes back the addition
        await browser.click("button", "Undo")
        await browser.until(f"{BOX % 'buy milk'}?.checked === false")
        await browser.click("textbox", "Message")
        await browser.write("bread, please")
        await browser.until(f"{ANSWER}?.ariaBusy === 'true' && {ANSWER}.textContent.includes('added')")
        await browser.until(BOX % "bread")  # the list is told at once, while the answer goes on
        assert await browser.evaluate(f"{ANSWER}.ariaBusy") == "true"
        await model.release()
        await browser.until(f"{ANSWER}.ariaBusy === 'false' && {ANSWER}.querySelectorAll('strong').length === 20")
        assert await browser.evaluate("document.querySelector('.widget [type=checkbox]').ariaLabel") == "bread"
        await browser.click("textbox", "Message")
        await browser.write("again")
        await browser.until("document.querySelector('todo-chat .log').textContent.includes('> deep')")
        await browser.click("button", "Answer again")
        assert browser.problems == []
