"""An answer that arrives late replaces nothing that the user has chosen or typed since."""

import asyncio
import contextlib
import re
from typing import Any

import pytest
from playwright.async_api import Error, Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.browser.test_addresses import address, at, title_field
from tests.waiting import WAIT_SECONDS

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

LATE = 700  # ms in which a late answer could change something
FOLLOW_LINK = """(href) => {
    const link = Object.assign(document.createElement("a"), { href });
    document.body.append(link);
    link.click();
}"""
TYPED = "[...document.querySelectorAll('textarea[name=title]')].map(({ value }) => value)"


class Gate:
    """Holds the requests to an address, or only the first, until it is opened."""

    def __init__(
        self, pattern: str, method: str = "GET", answer: dict[str, Any] | None = None, first: bool = False
    ) -> None:
        self._pattern, self._method, self._answer, self._first = re.compile(pattern), method, answer, first
        self._asked, self._open = asyncio.Event(), asyncio.Event()

    async def begin(self, page: Page) -> None:
        await page.route(self._pattern, self._hold)

    async def asked(self) -> None:
        await asyncio.wait_for(self._asked.wait(), WAIT_SECONDS)

    async def open(self, page: Page) -> None:
        self._open.set()
        await page.wait_for_timeout(LATE)

    async def _hold(self, route: Route) -> None:
        if route.request.method != self._method or (self._first and self._asked.is_set()):
            await route.continue_()
            return
        self._asked.set()
        await self._open.wait()
        with contextlib.suppress(Error):  # the page has taken back its request
            await (route.fulfill(**self._answer) if self._answer else route.continue_())


async def crash(page: Page, debugger: Any) -> Page:
    with contextlib.suppress(Error, TimeoutError):
        await asyncio.wait_for(debugger.send("Page.crash"), 1)
    other = await page.context.new_page()
    await other.goto("/")
    await task_list.loaded(other)
    await other.wait_for_timeout(LATE)
    return other


async def held(page: Page, pattern: str, **options: Any) -> Gate:
    gate = Gate(pattern, **options)
    await gate.begin(page)
    return gate


async def type_while_opened(page: Page, field: Locator, gate: Gate) -> None:
    """Types a word, in the middle of which the answer arrives: all letters are in the field."""
    await field.click()
    await page.keyboard.type("mi")
    await gate.open(page)
    await page.keyboard.type("lk")
    await expect(field).to_have_value("milk")


@pytest.mark.parametrize("address_held", ["/tasks/2$", r"/tasks\?view=deleted", r"/tasks/controls\.js"])
async def test_view_wins_over_a_task_that_arrives_late(address_held: str, open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.delete(await tasks.add("old"))
    gate = Gate(address_held)
    page = await open_page("/t/2", prepare=gate.begin, pane="tasks", timezone_id=task_list.ZONE)
    await gate.asked()
    await page.locator("#side [data-view=today]").click()
    await at(page, "/today")
    await gate.open(page)
    await expect(task_list.titles(page)).to_have_text(["milk"])
    await task_list.loaded(page)
    assert await address(page) == "/today"


@pytest.mark.parametrize("chosen", ["task", "label", "search"])
async def test_choice_in_the_list_wins_over_a_task_that_arrives_late(
    chosen: str, open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add("milk", due="today", labels=["home"])
    await tasks.delete(await tasks.add("old"))
    page = await open_list()
    gate = await held(page, "/tasks/2$")
    await page.evaluate(FOLLOW_LINK, "t/2")
    await gate.asked()
    if chosen == "task":
        await task_list.title_of(page, "milk").click()
        place = "/t/1"
    elif chosen == "label":
        await task_list.row(page, "milk").get_by_role("button", name="home", exact=True).click()
        place = "/today?label=home"
    else:
        await page.get_by_role("searchbox", name="Search tasks").fill("mi")
        place = "/today?q=mi"
    await at(page, place)
    await gate.open(page)
    await task_list.loaded(page)
    await expect(task_list.rows(page).get_by_role("listitem")).to_have_count(1)
    await expect(title_field(page)).to_have_count(1 if chosen == "task" else 0)
    assert await address(page) == place


async def test_view_that_waits_for_a_repeat_does_not_close_the_next_editor(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    gate = await held(page, "/tasks/preview")
    await page.get_by_label("Repeat", exact=True).fill("every monday")
    await page.locator("#side [data-view=upcoming]").click()
    await gate.asked()
    await screen.button(task_list.rows(page), "Cancel").click()
    await task_list.title_of(page, "bread").click()
    await title_field(page).fill("brown bre")
    await gate.open(page)
    await expect(title_field(page)).to_have_value("brown bre")
    assert await tasks.titles() == ["milk", "bread"]


async def test_view_wins_over_an_editor_that_a_reload_restores(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("report", due="tomorrow")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title_field(page).fill("oat milk")
    gate = await held(page, r"/tasks/controls\.js")
    await page.reload()
    await gate.asked()
    await page.locator("#side [data-view=upcoming]").click()
    await expect(task_list.titles(page)).to_have_text(["report"])
    await gate.open(page)
    assert await address(page) == "/upcoming"
    await expect(task_list.titles(page)).to_have_text(["report"])


async def test_repeat_that_is_typed_while_another_one_is_read_stays(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    gate = await held(page, "/tasks/preview", first=True)
    repeat = page.get_by_label("Repeat", exact=True)
    await repeat.fill("every monday")
    await repeat.press("Enter")
    await gate.asked()
    await repeat.fill("every friday")
    await gate.open(page)
    await expect(repeat).to_have_value("every friday")
    assert (await tasks.view())[0]["repeat"] is None
    await repeat.press("Enter")
    await expect(repeat).to_have_count(0)
    assert (await tasks.view())[0]["repeat"] == "FREQ=WEEKLY;BYDAY=FR"


@pytest.mark.parametrize("where", ["add", "message", "search"])
async def test_late_task_takes_no_key_of_another_field(where: str, open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("report", due="tomorrow")
    page = await open_list()
    await screen.message_box(page).wait_for()
    gate = await held(page, "/tasks/2$")
    await page.evaluate(FOLLOW_LINK, "t/2")
    await gate.asked()
    search = page.get_by_role("searchbox", name="Search tasks")
    field = {"add": task_list.adding(page), "message": screen.message_box(page), "search": search}[where]
    await type_while_opened(page, field, gate)
    assert await page.evaluate(TYPED) == ([] if where == "search" else ["report"])


async def test_late_save_takes_no_key(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    gate = await held(page, "/tasks/preview.*monday")
    await page.get_by_label("Repeat", exact=True).fill("every monday")
    await page.keyboard.press("Enter")
    await gate.asked()
    await type_while_opened(page, task_list.adding(page), gate)


async def test_rejected_edit_takes_no_key(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    gate = await held(page, "/tasks/1$", method="PATCH", answer={"status": 422, "json": {"detail": "Too long."}})
    await task_list.title_of(page, "milk").click()
    await title_field(page).fill("oat milk")
    await page.keyboard.press("Enter")
    await gate.asked()
    await task_list.see(page, "Upcoming")
    await type_while_opened(page, task_list.adding(page), gate)


async def test_late_row_takes_no_key(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number:03}" for number in range(350)], due="today")
    page = await open_list()
    gate = await held(page, r"/tasks\?.*offset=\d")
    await page.keyboard.press("j")
    await page.keyboard.press("End")
    await gate.asked()
    await type_while_opened(page, task_list.adding(page), gate)


async def test_late_task_does_not_cover_the_assistant_of_a_phone(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("report", due="tomorrow")
    page = await open_list(viewport={"width": 390, "height": 844})
    gate = await held(page, "/tasks/1$")
    await page.evaluate(FOLLOW_LINK, "t/1")
    await gate.asked()
    await screen.show_assistant(page)
    await type_while_opened(page, screen.message_box(page), gate)


async def test_task_that_is_opened_on_a_phone_is_shown_in_place_of_the_assistant(
    open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add("report", due="tomorrow")
    page = await open_list(viewport={"width": 390, "height": 844})
    await screen.show_assistant(page)
    await page.goto("/t/1")
    await expect(page.locator("dialog.task-sheet textarea[name=title]")).to_be_visible()


@pytest.mark.parametrize("way", ["link", "back", "add"])
async def test_missing_task_does_not_hide_the_next_one(way: str, open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    if way == "back":
        await task_list.title_of(page, "milk").click()
    await page.evaluate(FOLLOW_LINK, "t/99")
    await expect(page.get_by_text("There is no task 99.")).to_be_visible()
    if way == "link":
        await page.evaluate(FOLLOW_LINK, "t/1")
    elif way == "back":
        await page.go_back()
    else:
        await task_list.adding(page).fill("bread")
        await task_list.adding(page).press("Enter")
        await tasks.until("today", ["milk", "bread"])
        await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
        return
    await at(page, "/t/1")
    await expect(title_field(page)).to_have_value("milk")


@pytest.mark.parametrize("what", ["add", "save"])
async def test_what_was_sent_is_not_offered_again_after_a_crash(what: str, open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    debugger = await page.context.new_cdp_session(page)
    if what == "save":
        await task_list.title_of(page, "milk").click()
    field = task_list.adding(page) if what == "add" else title_field(page)
    await field.fill("bread")
    await page.wait_for_timeout(300)
    await field.press("Enter")
    await expect(task_list.titles(page).filter(has_text="bread")).to_be_visible()
    page = await crash(page, debugger)
    await expect(task_list.adding(page)).to_have_value("")
    await expect(title_field(page)).to_have_count(0)


async def test_address_wins_over_a_text_of_a_closed_tab(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("report", due="tomorrow")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    await title_field(page).fill("oat milk")
    await page.wait_for_timeout(300)
    other = await page.context.new_page()
    await page.close()
    gate = await held(other, "/tasks/2$")
    await other.goto("/t/2")
    await gate.asked()
    await other.wait_for_timeout(1000)  # the text is taken over after 250 ms
    await gate.open(other)
    assert await address(other) == "/t/2"


async def test_view_does_not_wait_for_an_earlier_one(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    gate = await held(page, r"/tasks\?.*view=upcoming")
    await page.locator("#side [data-view=upcoming]").click()
    await gate.asked()
    await page.locator("#side [data-view=all]").click()
    await expect(task_list.titles(page)).to_have_text(["milk"])


async def test_editor_that_is_typed_in_again_stays_open(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").click()
    gate = await held(page, "/tasks/preview")
    await page.get_by_label("Repeat", exact=True).fill("every monday")
    before = await page.evaluate("history.length")
    await page.locator("#side [data-view=upcoming]").click()
    await gate.asked()
    await page.get_by_label("Repeat", exact=True).fill("every friday")
    await gate.open(page)
    shown = await address(page), await title_field(page).count(), await page.evaluate("history.length") - before
    assert shown == ("/t/1", 1, 2)


async def test_all_are_not_selected_after_a_search(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number:03}" for number in range(250)], due="today")
    page = await open_list()
    gate = await held(page, r"/tasks\?.*offset=\d")
    await page.keyboard.press("j")
    await page.keyboard.press("ControlOrMeta+a")
    await gate.asked()
    await page.get_by_role("searchbox", name="Search tasks").fill("24")
    await at(page, "/today?q=24")
    await gate.open(page)
    await expect(task_list.titles(page)).to_have_count(13)
    assert await task_list.rows(page).locator(".selected").count() == 0


async def test_rejected_edit_does_not_cover_the_assistant_of_a_phone(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list(viewport={"width": 390, "height": 844})
    gate = await held(page, "/tasks/1$", method="PATCH", answer={"status": 422, "json": {"detail": "Too long."}})
    await task_list.title_of(page, "milk").click()
    field = page.locator("dialog.task-sheet textarea[name=title]")
    await field.fill("oat milk")
    await field.press("Enter")
    await gate.asked()
    await screen.show_assistant(page)
    await type_while_opened(page, screen.message_box(page), gate)
