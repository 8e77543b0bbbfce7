"""Sign-in with a name and a password on the page, the first account, and another password."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.support.accounts import PASSWORD, hash_password, new_name
from tests.support.commands import todo_at
from tests.support.stack import Stack
from tests.support.stored import Stored

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]

PHONE = {"viewport": {"width": 320, "height": 600}}


@pytest.fixture
def stack_name() -> str:
    return "passwords"


@pytest.fixture
def name(stored: Stored) -> str:
    name = new_name()
    stored.add_password(name, hash_password(PASSWORD))
    return name


async def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("textbox", name="Password", exact=True).fill(password)
    await page.keyboard.press("Enter")


async def fits(page: Page) -> bool:
    return await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_sign_in_on_a_phone(open_page: OpenPage, violations: Violations, name: str) -> None:
    page = await open_page(signed_in=False, pane="tasks", **PHONE)
    field, password = page.get_by_label("Name"), page.get_by_role("textbox", name="Password", exact=True)
    await expect(field).to_be_focused()
    assert await field.get_attribute("autocomplete") == "username"
    assert await password.get_attribute("autocomplete") == "current-password"
    assert await violations(page) == []
    assert await fits(page)
    await sign_in(page, name, "wrong password")
    await expect(page.get_by_role("alert")).to_have_text("The name or the password is wrong.")
    await expect(password).to_be_focused()
    await expect(field).to_have_value(name)
    assert await violations(page) == []
    await page.keyboard.press("Tab")
    show = screen.button(page, "Show the password")
    await expect(show).to_be_focused()
    assert await password.get_attribute("type") == "password"
    await page.keyboard.press("Space")
    await expect(show).to_have_attribute("aria-pressed", "true")
    await expect(password).to_have_attribute("type", "text")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.route("**/session", lambda route: route.abort(), times=1)
    await sign_in(page, name)
    await expect(page.get_by_role("alert")).to_have_text(re.compile("^Cannot reach the server"))
    await sign_in(page, f"  {name.upper()} ")
    await expect(page.get_by_role("main").get_by_label("New task").or_(page.locator("todo-tasks"))).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Name")).to_have_count(0)


async def test_delay_says_how_long(open_page: OpenPage, name: str, stored: Stored) -> None:
    page = await open_page(signed_in=False, pane="tasks")
    await sign_in(page, name, "wrong password")
    await expect(page.get_by_role("alert")).to_have_text("The name or the password is wrong.")
    stored.set_failures(9)
    for status in (401, 429):
        async with page.expect_response("**/session") as rejected:
            await sign_in(page, name, "wrong password")
        assert (await rejected.value).status == status
        await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_text(re.compile(r"too many failed attempts\. Try again in \d+ sec"))


async def test_first_account(open_page: OpenPage, violations: Violations, stack: Stack, stored: Stored) -> None:
    stored.delete_accounts()
    address = (await todo_at(stack, "user", "setup")).stdout.strip()
    path = f"/{address.partition('/')[2].partition('/')[2].partition('/')[2]}"
    assert path.startswith("/#setup=")
    await open_page(path, signed_in=False)
    page = await open_page(path, signed_in=False, pane="tasks", **PHONE)
    await expect(page.get_by_role("heading", name="Make the first account")).to_be_visible()
    assert "setup" not in page.url, "the code does not stay in the history"
    assert await violations(page) == []
    assert await fits(page)
    password = page.get_by_role("textbox", name="Password", exact=True)
    assert await password.get_attribute("autocomplete") == "new-password"
    name = new_name()
    await sign_in(page, "two words")
    await expect(page.get_by_role("alert")).to_have_text(re.compile("^A name has up to 64"))
    await sign_in(page, name, "password123")
    await expect(page.get_by_role("alert")).to_have_text(re.compile("among the first that others try"))
    await sign_in(page, name)
    await expect(page.locator("todo-tasks")).to_be_visible()
    assert [account["user_id"] for account in stored.rows_of(name, "accounts")] == [name]

    late = await open_page(path, signed_in=False, pane="tasks")
    await sign_in(late, f"{name}-late")
    await expect(late.get_by_role("alert")).to_have_text(re.compile("^This link does not work any more"))
    await screen.button(late, "Sign in with an account").click()
    await sign_in(late, name)
    await expect(late.locator("todo-tasks")).to_be_visible()


async def test_change_of_the_password(open_page: OpenPage, violations: Violations, name: str) -> None:
    other, page = [await open_page(signed_in=False, pane="tasks", **options) for options in ({}, PHONE)]
    for each in (other, page):
        await sign_in(each, name)
        await expect(each.locator("todo-tasks")).to_be_visible()
    await screen.from_menu(page, "Change password")
    dialog = page.get_by_role("dialog", name="Change your password")
    old, new = dialog.get_by_label("Old password"), dialog.get_by_label("New password")
    await expect(old).to_be_focused()
    assert await violations(page) == []
    assert await fits(page)
    await old.fill("wrong password")
    await new.fill("another good one")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("The old password is wrong.")
    await expect(old).to_be_focused()
    await old.fill(PASSWORD)
    await new.fill(name)
    await screen.button(dialog, "Change").click()
    await expect(dialog.get_by_role("alert")).to_have_text(re.compile("is the name"))
    await expect(new).to_be_focused()
    assert await violations(page) == []
    await new.fill("another good one")
    await page.keyboard.press("Enter")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_text("Your password is changed.")).to_be_visible()
    await expect(other.get_by_label("Name")).to_be_visible()
    await sign_in(other, name)
    await expect(other.get_by_role("alert")).to_have_text("The name or the password is wrong.")
    await sign_in(other, name, "another good one")
    await expect(other.locator("todo-tasks")).to_be_visible()
    await page.reload()
    await expect(page.locator("todo-tasks")).to_be_visible()
