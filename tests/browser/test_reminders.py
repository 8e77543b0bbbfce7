"""The list says so if a reminder that the user asks for cannot be sent."""

from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from offline_model.replies import NOTIFICATIONS_OFF as OFF
from tests.browser import screen, task_list
from tests.browser.alerts_stand_in import AlertsApi, channel
from tests.browser.conftest import OpenPage, ServiceWorkers, Violations
from tests.browser.task_list import TaskApi
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

NO_CHANNEL = "To be reminded while this page is closed, add a channel under Notifications in the menu."
SETTINGS = "/alerts/settings"
PHONE = channel(1, "push", "Phone")


@pytest.fixture
def service_workers() -> ServiceWorkers:
    return "allow"


async def add(page: Page, text: str) -> None:
    await task_list.adding(page).fill(text)
    await task_list.adding(page).press("Enter")


async def test_reminder_of_a_new_task_while_notifications_are_off(open_list: OpenPage, violations: Violations) -> None:
    page = await open_list(viewport={"width": 320, "height": 700})
    await add(page, "dentist tomorrow at 15:00, remind me an hour before")
    notice = task_list.notice(page)
    await expect(notice.get_by_role("paragraph")).to_have_text(["Added “dentist”", OFF])
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await screen.button(notice, "Notifications").click()
    await expect(page.get_by_role("dialog", name="Notifications", exact=True)).to_be_visible()
    await page.keyboard.press("Escape")
    await screen.button(notice, "Undo").click()
    await expect(task_list.titles(page)).to_have_count(0)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("remind me to call mum tomorrow at 9", True),
        ("call mum tomorrow, remind me at 15:00", True),
        ("remind me to buy milk", False),  # nothing reminds without a date
        ("call mum tomorrow at 9", False),
        ("call mum tomorrow at 9, no reminder", False),
        ("ask Bob to remind me tomorrow", False),
    ],
)
async def test_which_new_tasks_ask_for_a_reminder(open_list: OpenPage, text: str, asks: bool) -> None:
    requests: list[str] = []

    async def prepare(page: Page) -> None:
        page.on("request", lambda request: requests.append(urlsplit(request.url).path))

    page = await open_list(prepare=prepare)
    await task_list.see(page, "All")
    await until(lambda: SETTINGS in requests)  # as at each start
    requests.clear()
    async with page.expect_response(lambda response: response.request.method == "POST") as added:
        await add(page, text)
    title = (await (await added.value).json())["tasks"][0]["title"]
    words = task_list.notice(page).get_by_role("paragraph")
    await expect(words).to_have_text([f"Added “{title}”", *([OFF] if asks else [])])
    assert (SETTINGS in requests) == asks


@pytest.mark.parametrize(
    ("api", "words"),
    [
        (AlertsApi(), [NO_CHANNEL]),
        (AlertsApi(channel(2, "ntfy", "ntfy", state="off")), [NO_CHANNEL]),
        (AlertsApi(channel(2, "ntfy", "ntfy", state="off"), PHONE), []),
        (AlertsApi(PHONE, on=False), [OFF]),
    ],
)
async def test_reminder_without_a_channel(open_list: OpenPage, api: AlertsApi, words: list[str]) -> None:
    page = await open_list(prepare=api.prepare)
    await task_list.see(page, "All")
    async with page.expect_response("**/alerts/settings"):
        await add(page, "dentist tomorrow at 15:00, remind me an hour before")
    await expect(task_list.notice(page).get_by_role("paragraph")).to_have_text(["Added “dentist”", *words])


async def test_reminder_that_is_set_in_the_editor(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("dentist", due=f"{task_list.today()} 23:00")
    page = await open_list()
    for reminder, words in (("10 min before", [OFF]), ("Never", [])):
        await task_list.title_of(page, "dentist").click()
        await task_list.rows(page).get_by_label("Reminder").select_option(reminder)
        await screen.button(task_list.region(page), "Save").click()
        await expect(task_list.notice(page).get_by_role("paragraph")).to_have_text(["Changed: “dentist”", *words])
