"""The line that adds tasks: what is understood is shown before it is sent, and nothing that was written is lost."""

import signal

import pytest
from playwright.async_api import Route, expect

from tests.processes import ServiceProcess
from tests.web import screen
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored, today

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def test_what_is_understood_is_shown_before_it_is_added(open_list: OpenList, stored: Stored) -> None:
    page = await open_list(locale="en-GB")
    await listed.adding(page).fill("call mum every day at 23:59 #family !high")
    chips = listed.understood(page).locator(".chip")
    await expect(chips).to_have_text(["Today, 23:59", "every day", "High", "#family"])
    await listed.adding(page).press("Enter")
    await expect(listed.titles(page)).to_have_text(["call mum"])
    await expect(listed.adding(page)).to_have_value("")
    await expect(listed.adding(page)).to_be_focused()
    task = await stored.task("call mum")
    assert (task["due"], task["time"], task["repeat"]) == (str(today()), "23:59", "FREQ=DAILY")
    assert (task["labels"], task["priority"]) == (["family"], "high")


async def test_a_date_can_be_left_in_the_title(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()
    await listed.adding(page).fill("watch the day after tomorrow")
    await listed.understood(page).get_by_role("button", name="Leave it in the title").click()
    await listed.understood(page).get_by_role("button", name="No date").click()
    await listed.adding(page).press("Enter")
    await expect(listed.notice(page)).to_contain_text("Added “watch the day after tomorrow”")
    assert (await stored.task("watch the day after tomorrow"))["due"] is None


async def test_in_today_a_task_is_of_today_and_beside_a_day_of_that_day(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()
    await listed.adding(page).fill("milk")
    await listed.adding(page).press("Enter")
    await expect(listed.titles(page)).to_have_text(["milk"])
    await listed.see(page, "Upcoming")
    await listed.section(page, "Tomorrow").hover()
    await listed.section(page, "Tomorrow").get_by_role("button", name="Add a task for Tomorrow").click()
    await expect(listed.adding(page)).to_be_focused()
    await page.keyboard.type("bread")
    await page.keyboard.press("Enter")
    await expect(listed.section(page, "Tomorrow")).to_contain_text("bread")
    assert [task["due"] for task in await stored.view()] == [str(today()), str(today(1))]


async def test_a_task_that_is_elsewhere_is_shown_when_asked_for(open_list: OpenList) -> None:
    page = await open_list()
    await listed.adding(page).fill("dentist in 3 days")
    await listed.adding(page).press("Enter")
    await listed.notice(page).get_by_role("button", name="Show").click()
    await expect(listed.title_of(page, "dentist")).to_be_focused()
    await expect(page.get_by_role("button", name="Upcoming", exact=True)).to_have_attribute("aria-current", "page")


async def test_what_was_added_is_taken_back(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()
    await listed.adding(page).fill("milk")
    await listed.adding(page).press("Enter")
    await listed.notice(page).get_by_role("button", name="Undo").click()
    await expect(listed.notice(page)).to_contain_text("Taken back")  # the list shows it before
    await expect(listed.titles(page)).to_have_count(0)
    assert await stored.titles() == []


async def test_what_is_written_is_there_after_a_reload(open_list: OpenList) -> None:
    page = await open_list()
    await listed.adding(page).fill("call the ba")
    await page.reload()
    await expect(listed.adding(page)).to_have_value("call the ba")


async def test_what_is_refused_is_given_back_with_a_sentence(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()
    await listed.adding(page).fill(f"milk #{'a' * 39} {' '.join(f'#l{at}' for at in range(8))} 12:00")
    await page.route("**/tasks", lambda route: route.fulfill(status=400, json={"error": "No room."}), times=1)
    await listed.adding(page).press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="No room.")).to_be_visible()
    await expect(listed.adding(page)).to_have_value(f"milk #{'a' * 39} {' '.join(f'#l{at}' for at in range(8))} 12:00")
    assert await stored.titles() == []


async def test_one_whose_answer_was_lost_is_added_once(open_list: OpenList, stored: Stored) -> None:
    page = await open_list()

    async def lose_the_response(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/tasks", lose_the_response, times=1)
    await listed.adding(page).fill("milk")
    await listed.adding(page).press("Enter")
    await expect(listed.titles(page)).to_have_text(["milk"])
    await stored.until("all", ["milk"])


async def test_what_is_added_while_the_server_is_away_comes_later_even_after_a_reload(
    open_list: OpenList, stored: Stored, site: ServiceProcess
) -> None:
    page = await open_list()
    site.end(signal.SIGKILL)
    try:
        for title in ("milk", "bread"):
            await listed.adding(page).fill(title)
            await listed.adding(page).press("Enter")
        await expect(listed.region(page).get_by_text("The server cannot be reached. Trying again…")).to_be_visible()
        await expect(listed.region(page).get_by_text("2 changes will be saved then.")).to_be_visible()
    finally:
        site.start()
        site.wait_until_ready()
    await page.reload()
    await expect(listed.titles(page)).to_have_text(["milk", "bread"])
    await stored.until("all", ["milk", "bread"])
    await screen.until(page, "localStorage.getItem('todo.tasks.unsent') === null")
