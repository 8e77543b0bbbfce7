"""Two terminals and the page on one conversation."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.chatkit_client import ChatKit
from tests.cli.chat.terminal import Terminal
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

COUNTING = "one two three four five six seven eight nine ten"


async def test_what_is_said_in_one_is_seen_in_all(
    open_page: OpenPage, site: ServiceProcess, model: ScriptedModel, tmp_path: Path
) -> None:
    slow = {"text": COUNTING, "chunk_chars": 4, "token_delay": 0.5}
    await model.script({"text": "Hello."}, slow, {"text": "And that."}, {"text": "Good night."})
    here = ("--url", site.url, "--data-dir", str(tmp_path))
    with Terminal(*here) as one:
        await one.wait_for(">")
        one.say("hello")
        await one.wait_for("Hello.", "total")
        async with ChatKit(site.url) as chat:
            [thread] = (await chat.list_threads()).data
        page = await open_page(f"/c/{thread['id']}?ui=built-in")
        await expect(screen.answers(page)).to_contain_text("Hello.")
        with Terminal(*here, "--continue") as other:
            await other.wait_for("> hello", "Hello.")
            await screen.send(page, "count")
            for terminal in (one, other):
                await terminal.wait_for("> count", "three")
            one.say("and that?")
            await one.wait_for("It is answered after this")
            for terminal in (one, other):
                await terminal.wait_for(COUNTING, "And that.", "total")
            await expect(screen.answers(page).last).to_contain_text("And that.")
            await expect(screen.questions(page)).to_have_count(3)
            other.say("good night")
            await other.wait_for("Good night.", "total", times=2)
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # its person comes back to it
            await expect(screen.answers(page).last).to_contain_text("Good night.")
            await one.wait_for("> good night", "Good night.")
