"""Dialogs of the menu: the memory, of which no change is lost, and the calendar link."""

import re

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def write_elsewhere(user: User, text: str) -> None:
    await user.runs.http.put("/memory", json={"text": text}, headers={"If-Match": "*"})


async def stored(user: User) -> str:
    return (await user.runs.memory())["text"]


async def opened(page: Page) -> tuple[Locator, Locator]:
    await screen.from_menu(page, "Memory")
    dialog = page.get_by_role("dialog", name="Memory")
    field = dialog.get_by_role("textbox", name="Memory")
    await expect(field).to_be_enabled()
    return dialog, field


async def test_memory_is_edited_and_no_change_is_lost(open_page: OpenPage, violations: Violations, user: User) -> None:
    page = await open_page(viewport={"width": 320, "height": 700})
    await expect(screen.message_box(page)).to_be_visible()
    dialog, field = await opened(page)
    await expect(field).to_be_focused()
    await field.fill("* I work nights\n")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("status")).to_have_text("Saved. ")
    assert await stored(user) == "* I work nights\n"
    assert await violations(page) == []

    await write_elsewhere(user, "theirs")
    await field.fill("mine")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("changed in another window")
    await expect(dialog.get_by_label("The other version")).to_have_value("theirs")
    await expect(field).to_have_value("mine")
    assert await stored(user) == "theirs"
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Views and conversations")).to_be_focused()
    await screen.from_menu(page, "Memory")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    assert await stored(user) == "mine"

    much = f"{'<' * 99}\n" * 600  # which are read as four characters each
    await field.fill(much)
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("status")).to_contain_text("241 of 600")
    await field.fill("x" * 65_537)
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("65,536 bytes")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_text("Your changes to the memory are not saved yet.")).to_be_visible()
    await page.reload()
    dialog, field = await opened(page)
    await expect(field).to_have_value("x" * 65_537)
    await expect(dialog.get_by_role("status")).to_have_text("Not saved yet.")
    assert await violations(page) == []
    await screen.button(dialog, "Discard").click()
    await expect(field).to_have_value(much)
    await expect(field).to_be_focused()
    await screen.button(dialog, "Close").click()
    dialog, field = await opened(page)
    await expect(field).to_have_value(much)
    await page.route("**/memory", lambda route: route.abort())
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()


async def test_unsaved_memory_of_an_earlier_version_is_taken_over_once(open_page: OpenPage) -> None:
    page = await open_page()
    await page.evaluate("localStorage['todo.memory.draft'] = JSON.stringify({ text: 'from before', version: '' })")
    await page.reload()
    dialog, field = await opened(page)
    await expect(field).to_have_value("from before")
    assert await page.evaluate("localStorage['todo.memory.draft'] === undefined")
    await screen.button(dialog, "Discard").click()
    await page.reload()
    _, field = await opened(page)
    await expect(field).to_have_value("")


def status_of(url: str) -> int:
    return httpx2.get(url, trust_env=False, timeout=60).status_code


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
