"""Notifications of what becomes due while the page is open; the list's door is played, to set its clock."""

import json
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.web import screen
from tests.web.conftest import OpenPage, Violations
from tests.web.stand_ins import with_list

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

NOTIFICATIONS = """
window.told = [];
Notification = class extends EventTarget {
  static permission = '%s';
  static async requestPermission() {
    window.requested = true;
    return (this.permission = '%s');
  }
  constructor(title, options) {
    super();
    this.told = [title, options.body];
    window.told.push(this.told);
    window.last = this;
  }
  close() {
    window.told = window.told.filter((told) => told !== this.told);
  }
};
"""
DAY = "2026-11-23"


def task(number: int, title: str, time: str | None) -> dict[str, Any]:
    return {"id": number, "title": title, "due": DAY, "time": time}


class Door:
    """`GET /tasks` at a wall-clock time."""

    def __init__(self, *tasks: dict[str, Any]) -> None:
        self.tasks = list(tasks)
        self.time = "14:59"
        self.asked = 0

    async def answer(self, route: Route) -> None:
        self.asked += 1
        second = "cursor=" in route.request.url
        shown = {"now": f"{DAY}T{self.time}", "tasks": self.tasks[1:] if second else self.tasks[:1]}
        await route.fulfill(body=json.dumps({**shown, "next_cursor": None if second else "n/1"}))

    def prepare(self, permission: str, answer: str = "granted") -> Any:
        async def prepare(page: Page) -> None:
            await with_list(page)
            await page.add_init_script(NOTIFICATIONS % (permission, answer))
            await page.route("**/tasks?view=today*", self.answer)
            await page.clock.install()

        return prepare


async def turn_on(page: Page) -> None:
    await screen.button(page, "Menu").click()
    await screen.button(page, "Notify me of due tasks").click()


async def looked(page: Page, door: Door) -> None:
    """It has looked once more, at the door's time."""
    before = door.asked
    await page.clock.run_for(21_000)
    while door.asked < before + 2:
        await page.wait_for_timeout(20)


async def test_who_asks_is_told_once_of_what_becomes_due(open_page: OpenPage, violations: Violations) -> None:
    door = Door(task(1, "No time", None), task(2, "Call mum", "15:00"), task(3, "Long over", "09:00"))
    page = await open_page(prepare=door.prepare("default"), locale="en-US")
    await expect(screen.message_box(page)).to_be_visible()
    assert not await page.evaluate("window.requested"), "nobody is asked unasked"
    assert door.asked == 0
    await turn_on(page)
    await expect(screen.button(page, "Notify me of due tasks")).to_have_attribute("aria-pressed", "true")
    await screen.until(page, "window.requested")
    assert await violations(page) == []
    door.time = "15:00"
    await looked(page, door)
    await screen.until(page, "window.told.length")
    door.time = "15:01"
    await looked(page, door)
    assert [(title, body.replace("\u202f", " ")) for title, body in await page.evaluate("window.told")] == [
        ("Call mum", "3:00 PM")
    ]
    await page.evaluate("window.last.onclick()")
    assert await page.evaluate("window.shown") == 2


async def test_it_is_kept_until_it_is_turned_off(open_page: OpenPage) -> None:
    door = Door(task(1, "Call mum", "15:00"))
    page = await open_page(prepare=door.prepare("granted"))
    await turn_on(page)
    await page.reload()
    await looked(page, door)
    await screen.button(page, "Menu").click()
    pressed = screen.button(page, "Notify me of due tasks")
    await expect(pressed).to_have_attribute("aria-pressed", "true")
    await pressed.click()
    await expect(pressed).to_have_attribute("aria-pressed", "false")
    asked = door.asked
    await page.clock.run_for(90_000)
    assert door.asked == asked


async def test_a_browser_that_refuses_is_told_of(open_page: OpenPage) -> None:
    page = await open_page(prepare=Door().prepare("default", "denied"))
    await turn_on(page)
    await expect(page.get_by_text("The browser does not let this page notify you.")).to_be_visible()
    await expect(screen.button(page, "Notify me of due tasks")).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("permission", ["default", "granted"])
async def test_nothing_is_offered_where_a_page_cannot_notify(open_page: OpenPage, permission: str) -> None:
    """As in Chrome on Android, which has the constructor, and throws."""
    refusing = "Notification = class { static permission = '%s'; static requestPermission = async () => 'granted';"

    async def prepare(page: Page) -> None:
        await with_list(page)
        await page.add_init_script(f"{refusing % permission} constructor() {{ throw new TypeError('Illegal') }} }}")

    page = await open_page(prepare=prepare)
    if permission == "granted":  # it is not tried unasked, as it might be seen
        await turn_on(page)
        await expect(page.get_by_text("This browser lets no page notify you.")).to_be_visible()
    else:
        await screen.button(page, "Menu").click()
    await expect(screen.button(page, "Calendar")).to_be_visible()
    await expect(screen.button(page, "Notify me of due tasks")).to_have_count(0)


async def test_the_list_s_door_answers_with_what_is_read_of_it(open_page: OpenPage) -> None:
    async def prepare(page: Page) -> None:
        await with_list(page)
        await page.add_init_script(NOTIFICATIONS % ("granted", "granted"))

    page = await open_page(prepare=prepare)
    await screen.say(page, "add call mum today at 23:59")
    async with page.expect_response("**/tasks?view=today*") as asked:
        await turn_on(page)
    response = await asked.value
    told = await response.json()
    assert response.status == 200
    assert (len(told["now"]), told["next_cursor"]) == (len("2026-11-23T14:59"), None)
    [shown] = told["tasks"]
    assert (shown["title"], shown["due"], shown["time"]) == ("call mum", told["now"][:10], "23:59")
