"""The dialog of schedules: one is typed in words, run, paused and deleted, and its answers are opened."""

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.scripted_model import ScriptedModel
from tests.support.script import says
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]


async def open_schedules(page: Page) -> Locator:
    await screen.from_menu(page, "Schedules")
    dialog = page.get_by_role("dialog", name="Schedules")
    await expect(dialog.get_by_role("heading")).to_be_focused()
    return dialog


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_one_is_added_run_paused_and_deleted(
    open_page: OpenPage, violations: Violations, user: User, model: ScriptedModel, scheme: str
) -> None:
    await model.script(says("You have finished three tasks."))
    page = await open_page(viewport={"width": 320, "height": 700}, color_scheme=scheme)
    dialog = await open_schedules(page)
    await expect(dialog).to_contain_text("Nothing is scheduled yet.")
    box, preview = dialog.get_by_label("What shall it do, and when?"), dialog.locator("#schedule-preview")
    await box.fill("summarise what I did")
    await expect(preview).to_contain_text("Say how often and at what time")
    await screen.button(dialog, "Add").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Say how often and at what time")
    await box.fill("Every Friday at 16:00 summarise what I did")
    await expect(preview).to_contain_text("every Friday at 16:00, for the first time")
    await expect(preview).to_contain_text("summarise what I did")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await screen.button(dialog, "Add").click()
    await expect(dialog.get_by_role("status")).to_have_text("Added.")
    [row] = await dialog.get_by_role("listitem").all()
    await expect(row).to_contain_text("every Friday at 16:00, next")
    await expect(box).to_have_value("")

    await row.get_by_role("button", name="Run now").click()
    await expect(row).to_contain_text("Done")
    await row.get_by_role("button", name="Pause").click()
    await expect(row).to_contain_text("every Friday at 16:00. Paused.")
    await row.get_by_role("button", name="Resume").click()
    await expect(row).to_contain_text("every Friday at 16:00, next")
    assert await violations(page) == []
    await row.get_by_role("link", name="Open the answers").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_text("You have finished three tasks.")).to_be_visible()
    await expect(page.locator("#recent")).to_contain_text("summarise what I did")

    dialog = await open_schedules(page)
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog.get_by_role("status")).to_have_text("Deleted.")
    await expect(dialog.get_by_role("listitem")).to_have_count(0)
    assert (await user.runs.http.get("/schedules")).json()["schedules"] == []
