"""The address of a calendar is made, copied, replaced and revoked on the page."""

import re

import httpx2
import pytest
from playwright.async_api import Page, expect

from tests.processes import ServiceProcess
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


def status_of(url: str) -> int:
    return httpx2.get(url, trust_env=False).status_code


async def make(page: Page, name: str) -> str:
    await screen.button(page, name).click()
    field = page.get_by_label("Your address")
    await expect(field).to_be_visible()
    return await field.input_value()


@pytest.mark.parametrize("width", [390, 1280])
async def test_an_address_is_shown_once_copied_replaced_and_revoked(
    open_page: OpenPage, violations: Violations, site: ServiceProcess, width: int
) -> None:
    page = await open_page(viewport={"width": width, "height": 700}, permissions=["clipboard-read", "clipboard-write"])
    await expect(screen.message_box(page)).to_be_visible()
    await screen.from_menu(page, "Calendar")
    dialog = page.get_by_role("dialog", name="Calendar")
    await expect(dialog.get_by_text("You have no address.")).to_be_visible()
    assert await violations(page) == []

    first = await make(page, "Make an address")
    assert re.fullmatch(re.escape(site.url) + r"/calendar/[\w-]{43}\.ics", first)
    assert status_of(first) == 200
    await screen.button(page, "Copy").click()
    await expect(dialog.get_by_role("status")).to_have_text("Copied.")
    assert await page.evaluate("navigator.clipboard.readText()") == first
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= width

    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    assert first not in await page.content()
    await screen.from_menu(page, "Calendar")
    await expect(dialog.get_by_text("You have an address. A new one replaces it.")).to_be_visible()
    await expect(page.get_by_label("Your address")).to_have_count(0)
    second = await make(page, "Make a new address")
    assert [status_of(url) for url in (first, second)] == [404, 200]

    await screen.button(page, "Revoke").click()
    await expect(dialog.get_by_text("You have no address.")).to_be_visible()
    await expect(page.get_by_label("Your address")).to_have_count(0)
    assert status_of(second) == 404
    await screen.button(page, "Close").click()
    await expect(dialog).to_have_count(0)


async def test_a_server_that_is_away_is_told_of(open_page: OpenPage) -> None:
    page = await open_page()
    await page.route("**/calendar", lambda route: route.abort())
    await screen.from_menu(page, "Calendar")
    await expect(page.get_by_role("alert")).to_have_text("The server cannot be reached.")
    await expect(screen.button(page, "Make an address")).to_be_disabled()
