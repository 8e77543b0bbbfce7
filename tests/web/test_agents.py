"""An agent at work, as its person sees it: asked before it starts, seen step by step, its files to open."""

from collections.abc import Callable, Iterator

import pytest
from playwright.async_api import expect

from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations, running
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, served_workspace

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

STARTING = {"tool_calls": [{"name": "do_with_coder", "arguments": {"task": "write a.txt", "task_id": None}}]}
WORKING = {
    "text": "I write it.",
    "tool_calls": [
        {"name": "write_file", "arguments": {"path": "a.txt", "content": "one two\n"}},
        {"name": "run_command", "arguments": {"command": "wc -w a.txt; exit 3"}},
    ],
}


@pytest.fixture(scope="module")
def with_agents(new_backend: Callable[..., ServiceProcess]) -> Iterator[ServiceProcess]:
    with served_workspace() as (workspace, _):
        url = f"{workspace.url}/mcp"
        yield from running(new_backend(WORKSPACE_URL=url, WORKSPACE_TOKEN_SECRET=WORKSPACE_TOKEN_SECRET))


async def test_an_agent_is_asked_about_seen_at_work_and_its_file_opened(
    open_page: OpenPage, with_agents: ServiceProcess, model: ScriptedModel, violations: Violations
) -> None:
    page = await open_page(base=with_agents.url)
    await model.script(STARTING, WORKING, {"text": "Written."}, {"text": "Shall I complete it?"})
    await screen.say(page, "do it")
    card = screen.log(page).locator(".card").filter(has_text="Let the coder do this")
    await expect(card).to_contain_text("no internet")
    await card.get_by_label("Always in this conversation").check()
    await expect(card.get_by_role("checkbox")).to_be_checked()
    assert await violations(page) == []
    await screen.button(card, "Approve: Let the coder do this?").click()
    await expect(screen.answers(page).last).to_have_text("Shall I complete it?")

    work = screen.log(page).locator("details.workflow")
    await expect(work.locator("summary")).to_have_text("Coder: 2 steps, 1 file written")
    if await work.get_attribute("open") is None:
        await work.locator("summary").click()
    await expect(work).to_contain_text("Exit code 3")
    await expect(work.locator("code")).to_contain_text("2 a.txt")
    assert await violations(page) == []
    async with page.context.expect_page() as opened:
        await work.get_by_role("link", name="Open a.txt").click()
    await expect((await opened.value).locator("body")).to_have_text("one two")

    await model.script(STARTING, {"text": "Nothing to do."}, {"text": "Unasked."})
    await screen.say(page, "again")
    await expect(screen.answers(page).last).to_have_text("Unasked.")
    await page.reload()
    await expect(work.first.locator("summary")).to_have_text("Coder: 2 steps, 1 file written")
