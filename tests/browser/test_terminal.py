"""Two terminals and the page follow one conversation."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.cli.chat.terminal import Terminal
from tests.scripted_model import ScriptedModel
from tests.support.script import pausing_answer, says
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def test_terminals_and_page_show_the_same(
    open_page: OpenPage, stack: Stack, user: User, model: ScriptedModel, tmp_path: Path
) -> None:
    await model.script(
        says("Hello."), pausing_answer("one two three ", "four five"), says("And that."), says("Good night.")
    )
    here = ("--url", stack.url, "--data-dir", str(tmp_path))
    environment = {"TODO_TOKEN": user.token}
    with Terminal(*here, environment=environment) as one:
        await one.wait_for(">")
        one.say("hello")
        await one.wait_for("Hello.", "total")
        [thread] = (await user.chatkit.list_threads()).data
        page = await open_page(f"/c/{thread['id']}")
        await expect(screen.answers(page)).to_contain_text("Hello.")
        with Terminal(*here, "--continue", environment=environment) as other:
            await other.wait_for("> hello", "Hello.")
            await screen.send(page, "count")
            for terminal in (one, other):
                await terminal.wait_for("> count", "three")
            one.say("and that?")
            await one.wait_for("comes after this answer")
            await model.release()
            for terminal in (one, other):
                await terminal.wait_for("four five", "And that.", "total")
            await expect(screen.answers(page).last).to_contain_text("And that.")
            await expect(screen.questions(page)).to_have_count(3)
            other.say("good night")
            await other.wait_for("Good night.", "total", times=2)
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # its user comes back to it
            await expect(screen.answers(page).last).to_contain_text("Good night.")
            await one.wait_for("> good night", "Good night.")
