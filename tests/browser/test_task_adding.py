"""The line that adds tasks: what is understood is shown before it is sent, and nothing that was written is lost."""

import asyncio
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, Response, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]
LATE_IN_THE_MINUTE = """{
    const now = performance.now.bind(performance);
    const begin = now();
    performance.now = () => begin + (window.later ?? 0);
    Date.now = () => 50_000;
}"""
"""The clock stands at the 50th second of a minute until `later` milliseconds are added."""


async def test_parsed_fields_are_shown_and_can_stay_in_the_title(open_list: OpenPage) -> None:
    page = await open_list(locale="en-GB")
    await task_list.adding(page).fill("call mum every day at 23:59 #family !high")
    chips = task_list.understood(page).locator(".chip")
    await expect(chips).to_have_text(["Today, 23:59", "every day", "High", "#family"])
    await task_list.adding(page).press("Enter")
    await expect(task_list.titles(page)).to_have_text(["call mum"])
    await expect(task_list.adding(page)).to_have_value("")
    await expect(task_list.adding(page)).to_be_focused()

    await task_list.adding(page).fill("watch the day after tomorrow #film !low")
    await task_list.understood(page).get_by_role("button", name="Not a date: keep it in the title").click()
    await expect(chips).to_have_text(["Low", "#film"])
    await task_list.adding(page).press("Enter")
    await expect(task_list.notice(page)).to_contain_text("Added “watch the day after tomorrow”")

    # without waiting for the preview
    release = asyncio.Event()

    async def delay(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await page.route("**/tasks/preview?*", delay, times=1)
    async with page.expect_request("**/tasks/preview?*"):
        await task_list.adding(page).fill("call dad tomorrow at 15:00")
    await task_list.adding(page).press("Enter")
    await expect(task_list.notice(page)).to_contain_text("Added “call dad”")
    await task_list.adding(page).fill("buy milk #shop")
    release.set()  # what is late is for another text
    await expect(task_list.understood(page).locator(".chip")).to_have_text(["Today", "#shop"])

    await task_list.adding(page).fill("dentist tomorrow at 15:00, remind me an hour before")
    await expect(task_list.understood(page).locator(".chip")).to_have_text(
        ["Tomorrow, 15:00", "reminder 1 hour before"]
    )
    await task_list.adding(page).fill("rent tomorrow, remind me a day before")
    await expect(task_list.understood(page)).to_contain_text(
        "“remind me a day before” is not understood. A reminder needs a time, such as 15:00."
    )

    await task_list.adding(page).fill("dentist 12/05")
    await expect(task_list.understood(page)).to_contain_text("“12/05” is not understood. Write it like “5 dec”")
    await task_list.adding(page).press("Enter")
    await expect(task_list.notice(page)).to_contain_text("Added “dentist 12/05”. “12/05” is not understood.")


async def test_view_and_day_give_the_date_and_text_survives_a_reload(open_list: OpenPage) -> None:
    page = await open_list()
    await task_list.adding(page).fill("milk")
    await task_list.adding(page).press("Enter")
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await task_list.see(page, "Upcoming")
    await task_list.section(page, "Tomorrow").hover()
    await task_list.section(page, "Tomorrow").get_by_role("button", name="Add a task for Tomorrow").click()
    await expect(task_list.adding(page)).to_be_focused()
    await page.keyboard.type("bread")
    await page.keyboard.press("Enter")
    await expect(task_list.section(page, "Tomorrow")).to_contain_text("bread")
    await expect(task_list.notice(page)).to_contain_text("Added “bread”")
    await task_list.see(page, "Today")
    await task_list.adding(page).fill("dentist in 3 days")
    await task_list.adding(page).press("Enter")
    await expect(task_list.notice(page)).to_contain_text("Added “dentist”")
    await task_list.notice(page).get_by_role("button", name="Show").click()
    await expect(task_list.title_of(page, "dentist")).to_be_focused()
    await expect(page.locator("#side [data-view=upcoming]")).to_have_attribute("aria-current", "page")

    await task_list.see(page, "Today")
    await task_list.adding(page).fill("tea")
    await page.reload()
    await expect(task_list.adding(page)).to_have_value("tea")
    await task_list.adding(page).press("Enter")
    await task_list.notice(page).get_by_role("button", name="Undo").click()
    await expect(task_list.notice(page)).to_contain_text("Undone")  # the list shows it before
    await expect(task_list.titles(page)).to_have_text(["milk"])


async def test_rejected_task_is_kept_beside_newer_text(
    open_list: OpenPage, violations: Violations, tasks: TaskApi
) -> None:
    page = await open_list(viewport={"width": 320, "height": 700})
    since = asyncio.Event()

    async def refuse(route: Route) -> None:
        await since.wait()
        await route.fulfill(status=400, json={"error": "No room."})

    await page.route("**/tasks", refuse, times=1)
    await task_list.adding(page).fill("oat milk #shop")
    await task_list.adding(page).press("Enter")
    await task_list.adding(page).fill("bread")
    since.set()
    await expect(page.get_by_role("alert")).to_have_text("“oat milk #shop” was not added. No room.")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await page.reload()
    await expect(task_list.adding(page)).to_have_value("bread")
    await page.get_by_role("button", name="Edit: oat milk #shop").click()
    await expect(task_list.adding(page)).to_have_value("oat milk #shop")
    await expect(task_list.adding(page)).to_be_focused()
    await task_list.adding(page).press("Enter")
    await tasks.until("all", ["oat milk"])
    await page.get_by_role("button", name="Edit: bread").click()
    await expect(task_list.adding(page)).to_have_value("bread")
    await expect(task_list.region(page).get_by_role("list", name="Not added")).to_have_count(0)
    await page.route("**/tasks", refuse, times=1)
    await task_list.adding(page).press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("“bread” was not added. No room.")
    await expect(task_list.adding(page)).to_have_value("bread")


async def test_tasks_added_without_server_are_saved_later(open_list: OpenPage, tasks: TaskApi) -> None:
    page = await open_list()
    await page.route(task_list.API, lambda route: route.abort())
    for title in ("milk", "bread"):
        await task_list.adding(page).fill(title)
        await task_list.adding(page).press("Enter")
    await expect(task_list.region(page).get_by_text("Cannot reach the server. Reconnecting…")).to_be_visible()
    await expect(task_list.region(page).get_by_text("2 changes will be saved")).to_be_visible()
    await page.unroute_all()
    await page.reload()
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    await tasks.until("all", ["milk", "bread"])
    await screen.until(page, "localStorage.getItem('todo.tasks.unsent') === null")


async def test_minutes_count_from_the_time_at_which_they_are_written(open_list: OpenPage) -> None:
    """Not from the beginning of the minute in which the server was asked last."""
    responses = list[str]()

    async def remember(response: Response) -> None:
        if "/tasks?view=" in response.url:
            responses.append((await response.json())["now"])

    async def prepare(page: Page) -> None:
        await page.add_init_script(LATE_IN_THE_MINUTE)
        page.on("response", remember)

    page = await open_list(prepare=prepare)
    await until(lambda: bool(responses))
    await page.evaluate("window.later = 15_000")
    async with page.expect_request("**/tasks/preview?*") as request:
        await task_list.adding(page).fill("call mum in 2 minutes")
    [written] = parse_qs(urlsplit((await request.value).url).query)["written"]
    assert datetime.fromisoformat(written) - datetime.fromisoformat(responses[-1]) == timedelta(minutes=1)
