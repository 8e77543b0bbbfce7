"""The dialog that makes, lists and ends tokens for the user's programs."""

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]


async def open_tokens(page: Page) -> Locator:
    await screen.from_menu(page, "Access tokens")
    dialog = page.get_by_role("dialog", name="Access tokens")
    await expect(dialog.get_by_role("heading")).to_be_focused()
    return dialog


def read_status(user: User, token: str, path: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{user.url}{path}", headers=headers, trust_env=False).status_code


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_token_is_made_and_ended(open_page: OpenPage, violations: Violations, user: User, scheme: str) -> None:
    page = await open_page(viewport={"width": 320, "height": 700}, color_scheme=scheme)
    dialog = await open_tokens(page)
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await dialog.get_by_label("What is it for?").fill("My notebook")
    await screen.button(dialog, "Make a token").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Choose what the token may do.")
    await dialog.get_by_label("read your tasks").check()
    await screen.button(dialog, "Make a token").click()
    made = dialog.get_by_label("Copy this token now.")
    await expect(made).to_be_focused()
    token = await made.input_value()
    assert [read_status(user, token, path) for path in ("/tasks?view=all", "/chats")] == [200, 403]
    row = dialog.get_by_role("listitem")
    await expect(row).to_contain_text("My notebook")
    await expect(row).to_contain_text("read your tasks. Never used. Expires ")
    await expect(dialog.get_by_label("What is it for?")).to_have_value("")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320

    await screen.button(dialog, "Close").click()
    await expect(dialog).to_have_count(0)
    dialog = await open_tokens(page)
    await expect(row).to_have_count(1)
    await expect(dialog.get_by_label("Copy this token now.")).to_have_count(0)
    assert token not in await page.content()
    await screen.button(dialog, "End: My notebook").click()
    await expect(dialog.get_by_role("status")).to_have_text("Ended.")
    await expect(row).to_have_count(0)
    await expect(dialog.get_by_role("heading")).to_be_focused()
    assert read_status(user, token, "/tasks?view=all") == 401


async def test_by_keyboard(open_page: OpenPage) -> None:
    page = await open_page()
    dialog = await open_tokens(page)
    await page.keyboard.press("Tab")
    await page.keyboard.type("a script")
    for key in ("Tab", "Space", "Tab", "Tab", "Tab", "Tab", "Enter"):
        await page.keyboard.press(key)
    await expect(dialog.get_by_role("listitem")).to_contain_text("a script")
    await expect(dialog.get_by_role("listitem")).to_contain_text("talk to the assistant, which can change your tasks.")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_server_that_cannot_be_reached(open_page: OpenPage) -> None:
    page = await open_page()
    dialog = await open_tokens(page)
    await page.route("**/tokens", lambda route: route.abort())
    await dialog.get_by_label("What is it for?").fill("a script")
    await dialog.get_by_label("read your tasks").check()
    await screen.button(dialog, "Make a token").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Cannot reach the server")
    await expect(dialog.get_by_label("What is it for?")).to_have_value("a script")
