"""The profile: the dialog, and the question whether to use the time zone of this device."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import PAGE, OpenPage, Violations
from tests.browser.test_sign_in import sign_in
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 320, "height": 700}


def question(page: Page) -> Locator:
    return page.get_by_role("region", name="Time zone")


async def stored_zone(user: User) -> str:
    return (await user.runs.http.get("/profile")).json()["time_zone"]


async def open_in(open_page: OpenPage, zone: str, **options: object) -> Page:
    """Opens the list on a device in a zone, and waits until the page has read the profile."""

    page = await open_page("about:blank", timezone_id=zone, asks_zone=True, pane="tasks", **options)
    async with page.expect_response("**/profile"):
        await page.goto(PAGE)
    await task_list.loaded(page)
    return page


async def test_zone_of_another_device_is_a_question(open_page: OpenPage, violations: Violations, user: User) -> None:
    first = await open_in(open_page, "Europe/Berlin")
    assert await stored_zone(user) == "Europe/Berlin"
    await expect(question(first)).to_have_count(0)

    page = await open_in(open_page, "Europe/Lisbon", viewport=PHONE)
    await expect(question(page)).to_contain_text(
        "This device is in Europe/Lisbon, and your time zone is Europe/Berlin."
    )
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await expect(screen.button(page, "Add a task")).to_be_in_viewport(ratio=1)
    await screen.button(question(page), "Keep Europe/Berlin").press("Enter")
    await expect(question(page)).to_have_count(0)
    async with page.expect_response("**/profile"):
        await page.reload()
    await task_list.loaded(page)
    await expect(question(page)).to_have_count(0)
    assert await stored_zone(user) == "Europe/Berlin"

    other = await open_in(open_page, "Europe/Lisbon")
    await screen.button(question(other), "Use Europe/Lisbon").click()
    await expect(question(other)).to_have_count(0)
    assert await stored_zone(user) == "Europe/Lisbon"

    await first.reload()
    await expect(question(first)).to_contain_text("your time zone is Europe/Lisbon.")
    await first.route("**/profile", lambda route: route.fulfill(status=401))
    await screen.button(question(first), "Use Europe/Berlin").click()
    await expect(first.get_by_label("Token")).to_be_visible()
    await expect(question(first)).to_have_count(0)
    assert await stored_zone(user) == "Europe/Lisbon"
    await first.unroute("**/profile")
    await sign_in(first, user.token)
    await expect(question(first)).to_be_visible()


async def test_same_zone_by_another_name(open_page: OpenPage, user: User) -> None:
    await user.runs.http.patch("/profile", json={"time_zone": "Asia/Calcutta"})
    page = await open_in(open_page, "Asia/Kolkata")
    await expect(question(page)).to_have_count(0)


async def test_name_and_zone_are_changed_in_the_dialog(open_page: OpenPage, violations: Violations, user: User) -> None:
    page = await open_in(open_page, "Europe/Berlin", viewport=PHONE)
    await screen.from_menu(page, "Profile")
    dialog = page.get_by_role("dialog", name="Profile")
    name, zone = dialog.get_by_label("Name"), dialog.get_by_label("Time zone")
    await expect(zone).to_have_value("Europe/Berlin")
    await expect(dialog).to_contain_text("This device is in Europe/Berlin.")
    assert await violations(page) == []
    await name.fill("Anna Łoś")
    await zone.fill("Mars/Olympus")
    await zone.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("and not Mars/Olympus.")
    await expect(name).to_have_value("Anna Łoś")
    assert await stored_zone(user) == "Europe/Berlin"
    await zone.fill("Asia/Tokyo")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("status")).to_have_text("Saved.")
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await screen.button(dialog, "Close").click()
    await expect(dialog).to_have_count(0)
    await screen.open_side_bar(page)
    shown = page.get_by_text("Anna Łoś")
    await expect(shown).to_be_visible()
    await expect(shown).to_have_attribute("title", re.compile(re.escape(user.name)))
    assert (await user.runs.http.get("/profile")).json() == {
        "user_id": user.name,
        "name": "Anna Łoś",
        "time_zone": "Asia/Tokyo",
    }
