"""The calendar link is made, copied, replaced and revoked on the page."""

import re

import httpx2
import pytest
from playwright.async_api import Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.support.stack import Stack

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


def status_of(url: str) -> int:
    return httpx2.get(url, trust_env=False).status_code


async def make(page: Page, name: str) -> str:
    await screen.button(page, name).click()
    field = page.get_by_label("Copy this link now")
    await expect(field).to_be_visible()
    return await field.input_value()


async def test_link_is_shown_once_copied_replaced_and_revoked(
    open_page: OpenPage, violations: Violations, stack: Stack
) -> None:
    page = await open_page(viewport={"width": 390, "height": 700}, permissions=["clipboard-read", "clipboard-write"])
    await expect(screen.message_box(page)).to_be_visible()
    await screen.from_menu(page, "Calendar")
    dialog = page.get_by_role("dialog", name="Calendar")
    await expect(dialog.get_by_text("You have no calendar link yet.")).to_be_visible()
    assert await violations(page) == []

    first = await make(page, "Create a link")
    assert re.fullmatch(re.escape(stack.url) + r"/calendar/[\w-]{43}\.ics", first)
    assert status_of(first) == 200
    await screen.button(page, "Copy").click()
    await expect(dialog.get_by_role("status")).to_have_text("Copied.")
    assert await page.evaluate("navigator.clipboard.readText()") == first
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390

    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    assert first not in await page.content()
    await screen.from_menu(page, "Calendar")
    await expect(dialog.get_by_text("You have a link.")).to_be_visible()
    await expect(page.get_by_label("Copy this link now")).to_have_count(0)
    await screen.button(page, "Create a new link").click()
    await screen.button(page, "Cancel").click()
    await screen.button(page, "Create a new link").click()
    await expect(screen.button(page, "Cancel")).to_be_focused()
    assert await violations(page) == []
    assert status_of(first) == 200
    second = await make(page, "Replace the old link")
    assert [status_of(url) for url in (first, second)] == [404, 200]

    await screen.button(page, "Turn off the link").click()
    await expect(dialog.get_by_text("You have no calendar link yet.")).to_be_visible()
    await expect(page.get_by_label("Copy this link now")).to_have_count(0)
    assert status_of(second) == 404
    await screen.button(page, "Close").click()
    await expect(dialog).to_have_count(0)

    await page.route("**/calendar", lambda route: route.abort())
    await screen.from_menu(page, "Calendar")
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(screen.button(page, "Create a link")).to_be_disabled()
