"""The dialog that lists where the user is signed in, and ends the sessions there."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.test_sign_in import sign_in
from tests.support.fixtures import NewUser
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]

FIREFOX = "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 "
    "Mobile/15E148 Safari/604.1"
)


async def open_devices(page: Page) -> tuple[Locator, Locator]:
    """Returns the dialog and its sessions."""
    await screen.from_menu(page, "Devices")
    dialog = page.get_by_role("dialog", name="Where you are signed in")
    sessions = dialog.get_by_role("listitem")
    await expect(sessions.first).to_be_visible()
    return dialog, sessions


def end(dialog: Locator, name: str) -> Locator:
    return dialog.get_by_role("button", name=re.compile(f"^End: {name}, last used "))


async def expect_signed_out(page: Page) -> None:
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_session_is_ended_from_another_browser(
    open_page: OpenPage, violations: Violations, user: User, new_user: NewUser
) -> None:
    phone = await open_page(user_agent=FIREFOX)
    await expect(screen.message_box(phone)).to_be_visible()
    stranger = await new_user().runs.http.post("/session", headers={"User-Agent": IPHONE})
    assert stranger.status_code == 200
    page = await open_page(viewport={"width": 320, "height": 700})
    dialog, sessions = await open_devices(page)
    await expect(sessions).to_have_count(2)
    current = sessions.filter(has_text="This browser")
    await expect(current).to_contain_text("Chrome on Linux")
    await expect(current.get_by_role("button")).to_have_count(0)
    await expect(sessions.filter(has_text="Last used")).to_contain_text("Firefox on Android")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320

    await end(dialog, "Firefox on Android").click()
    await expect(dialog.get_by_role("status")).to_have_text("Ended.")
    await expect(sessions).to_have_count(1)
    await expect(screen.button(dialog, "End all others")).to_have_count(0)
    await expect_signed_out(phone)
    assert await violations(page) == []

    await sign_in(phone, user.token)
    await expect(screen.message_box(phone)).to_be_visible()
    await screen.button(dialog, "Close").click()
    await expect(dialog).to_have_count(0)
    await open_devices(page)
    await expect(sessions).to_have_count(2)


async def test_all_others_are_ended_by_keyboard(open_page: OpenPage) -> None:
    others = [await open_page(user_agent=name) for name in (FIREFOX, IPHONE)]
    page = await open_page()
    await screen.open_menu(page)
    await screen.button(page, "Devices").press("Enter")
    dialog = page.get_by_role("dialog", name="Where you are signed in")
    await expect(dialog.get_by_role("listitem")).to_have_count(3)
    await expect(dialog.get_by_role("heading")).to_be_focused()
    for button in (
        end(dialog, "Safari on iPhone"),
        end(dialog, "Firefox on Android"),
        screen.button(dialog, "End all others"),
    ):
        await page.keyboard.press("Tab")
        await expect(button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("status")).to_have_text("Ended.")
    await expect(dialog.get_by_role("heading")).to_be_focused()
    await expect(dialog.get_by_role("listitem")).to_have_count(1)
    for other in others:
        await expect_signed_out(other)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(screen.message_box(page)).to_be_visible()


async def test_session_that_ends_while_the_dialog_is_open(open_page: OpenPage, violations: Violations) -> None:
    """Of another browser, it is gone once the list is read again; of this one, the page asks to sign in."""
    await open_page(user_agent=IPHONE)
    phone, page = await open_page(user_agent=FIREFOX), await open_page()
    dialog, sessions = await open_devices(page)
    await expect(sessions).to_have_count(3)
    dialog_on_phone, _ = await open_devices(phone)
    await end(dialog_on_phone, "Safari on iPhone").click()
    await expect(dialog_on_phone.get_by_role("status")).to_have_text("Ended.")

    await page.route("**/sessions/*", lambda route: route.abort(), times=1)
    await end(dialog, "Safari on iPhone").click()
    await expect(dialog.get_by_role("alert")).to_have_text(re.compile("^Cannot reach the server"))
    await expect(end(dialog, "Safari on iPhone")).to_be_focused()
    assert await violations(page) == []
    async with page.expect_response("**/sessions/*") as ended:
        await page.keyboard.press("Enter")
    assert (await ended.value).status == 404
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await expect(sessions).to_have_count(2)

    await phone.route(re.compile(r"^\w+://[^/]+/(?!assets/|sessions)"), lambda _: None)  # which could notice first
    await end(dialog, "Firefox on Android").click()
    await expect(sessions).to_have_count(1)
    async with phone.expect_response("**/sessions") as rejected:
        await screen.button(dialog_on_phone, "End all others").click()
    assert (await rejected.value).status == 401
    await expect_signed_out(phone)
    await phone.unroute_all(behavior="ignoreErrors")
