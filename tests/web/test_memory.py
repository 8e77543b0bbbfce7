"""What a person wants remembered is written on the page, and nobody's change is lost."""

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect

from tests.processes import ServiceProcess
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


def elsewhere(site: ServiceProcess, text: str) -> None:
    """Another client writes it."""
    given = {"If-Match": "*"}
    httpx2.put(f"{site.url}/memory", json={"text": text}, headers=given, trust_env=False).raise_for_status()


def kept(site: ServiceProcess) -> str:
    return httpx2.get(f"{site.url}/memory", trust_env=False).json()["text"]


async def opened(page: Page) -> tuple[Locator, Locator]:
    await screen.from_menu(page, "Memory")
    dialog = page.get_by_role("dialog", name="Memory")
    field = dialog.get_by_role("textbox", name="Memory")
    await expect(field).to_be_enabled()
    return dialog, field


@pytest.mark.parametrize("width", [320, 1280])
async def test_it_is_written_and_a_change_elsewhere_is_shown_before_it_is_replaced(
    open_page: OpenPage, violations: Violations, site: ServiceProcess, width: int
) -> None:
    elsewhere(site, "")
    page = await open_page(viewport={"width": width, "height": 700})
    await expect(screen.message_box(page)).to_be_visible()
    dialog, field = await opened(page)
    await expect(field).to_be_focused()
    await field.fill("* I work nights\n")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("status")).to_have_text("Saved. ")
    assert kept(site) == "* I work nights\n"
    assert await violations(page) == []

    elsewhere(site, "theirs")
    await field.fill("mine")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("changed elsewhere")
    await expect(dialog.get_by_label("What it says now")).to_have_value("theirs")
    await expect(field).to_have_value("mine")
    assert kept(site) == "theirs"
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    assert kept(site) == "mine"

    much = f"{'<' * 99}\n" * 600  # which are read as four characters each
    await field.fill(much)
    await screen.button(dialog, "Save").click()
    said = "Saved. The assistant reads the first 241 of 600 lines: the rest does not fit."
    await expect(dialog.get_by_role("status")).to_have_text(said)
    await field.fill("x" * 65_537)
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("65,536 bytes")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    dialog, field = await opened(page)
    await expect(field).to_have_value(much)
    await page.route("**/memory", lambda route: route.abort())
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_have_text("The server cannot be reached.")
