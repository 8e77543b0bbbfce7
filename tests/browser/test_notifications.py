"""Notifications of due tasks; the API of the list is a stand-in with a clock of its own."""

import json
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.stand_ins import with_list
from tests.waiting import until

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


class TasksApi:
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
    await screen.open_menu(page)
    await screen.button(page, "Remind me while this page is open").click()


async def looked(page: Page, api: TasksApi) -> None:
    """It has looked once more, at the api's time."""
    before = api.asked
    await page.clock.run_for(21_000)
    while api.asked < before + 2:
        await page.wait_for_timeout(20)


async def test_due_task_is_notified_once(open_page: OpenPage, violations: Violations) -> None:
    api = TasksApi(task(1, "No time", None), task(2, "Call \u202emum", "15:00"), task(3, "Long over", "09:00"))
    page = await open_page(prepare=api.prepare("default"), locale="en-US")
    await expect(screen.message_box(page)).to_be_visible()
    assert not await page.evaluate("window.requested"), "nobody is asked unasked"
    assert api.asked == 1, "for the list"
    await turn_on(page)
    await expect(screen.button(page, "Remind me while this page is open")).to_have_attribute("aria-pressed", "true")
    await screen.until(page, "window.requested")
    assert await violations(page) == []
    await until(lambda: api.asked >= 3)  # it has looked at 14:59
    api.time = "15:00"
    await looked(page, api)
    await screen.until(page, "window.told.length")
    api.time = "15:01"
    await looked(page, api)
    assert [(title, body.replace("\u202f", " ")) for title, body in await page.evaluate("window.told")] == [
        ("Call mum", "3:00 PM")
    ]
    await page.evaluate("window.last.onclick()")
    assert await page.evaluate("window.shown") == 2


async def test_notifications_stay_on_until_turned_off(open_page: OpenPage) -> None:
    api = TasksApi(task(1, "Call mum", "15:00"))
    page = await open_page(prepare=api.prepare("granted"))
    await turn_on(page)
    await page.reload()
    await looked(page, api)
    await screen.open_menu(page)
    pressed = screen.button(page, "Remind me while this page is open")
    await expect(pressed).to_have_attribute("aria-pressed", "true")
    await pressed.click()
    await expect(pressed).to_have_attribute("aria-pressed", "false")
    asked = api.asked
    await page.clock.run_for(90_000)
    await page.evaluate("fetch('/tasks?view=today&cursor=n')")  # when it is answered, earlier requests are counted
    assert api.asked <= asked + 2 + 1, "it ends only what it had begun"


async def test_blocked_notifications_are_reported(open_page: OpenPage) -> None:
    page = await open_page(prepare=TasksApi().prepare("default", "denied"))
    await turn_on(page)
    await expect(page.get_by_text("Notifications are blocked")).to_be_visible()
    await expect(screen.button(page, "Remind me while this page is open")).to_have_attribute("aria-pressed", "false")


async def test_notifications_are_not_offered_where_impossible(open_page: OpenPage) -> None:
    """As in Chrome on Android, which has the constructor, and throws."""
    refusing = "Notification = class { static permission = '%s'; static requestPermission = async () => 'granted';"
    for permission in ("default", "granted"):

        async def prepare(page: Page, permission: str = permission) -> None:
            await with_list(page)
            await page.add_init_script(f"{refusing % permission} constructor() {{ throw new TypeError('Illegal') }} }}")

        page = await open_page(prepare=prepare)
        if permission == "granted":  # it is not tried unasked, as it might be seen
            await turn_on(page)
            await expect(page.get_by_text("This browser cannot show notifications for this page.")).to_be_visible()
        else:
            await screen.open_menu(page)
        await expect(screen.button(page, "Calendar")).to_be_visible()
        await expect(screen.button(page, "Remind me while this page is open")).to_have_count(0)
