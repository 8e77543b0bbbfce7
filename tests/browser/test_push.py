"""Pushes to a closed or open page: what the service worker shows, says and does."""

import re
from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import Page, expect
from psycopg.types.json import Jsonb

from tests.alerts.rows import AlertRows
from tests.browser import screen, task_list
from tests.browser.alerts_stand_in import alert
from tests.browser.conftest import OpenPage, ServiceWorkers
from tests.browser.device import PERMISSION, SUBSCRIPTION, Device, call
from tests.browser.task_list import TaskApi
from tests.support.stack import Stack
from tests.support.users import User
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

DUE = "2026-11-27"
TITLE = "Call mum"


@pytest.fixture
def service_workers() -> ServiceWorkers:
    return "allow"


@pytest.fixture
def rows(stack: Stack) -> Iterator[AlertRows]:
    with AlertRows(stack.database_url) as rows:
        yield rows


async def open_device(open_page: OpenPage) -> Device:
    """Opens the page in a browser that may show notifications."""

    async def prepare(page: Page) -> None:
        await page.add_init_script(PERMISSION)

    options = {"permissions": ["notifications"], "timezone_id": task_list.ZONE}
    page = await open_page(pane="tasks", prepare=prepare, **options)
    await task_list.loaded(page)
    return await Device.of(page)


async def add_channel(device: Device) -> int:
    body = {"kind": "push", "name": "Phone", "target": SUBSCRIPTION}
    return (await call(device.page, "POST", "alerts/channels", body))["id"]


async def sent_alert(device: Device, user: User, tasks: TaskApi, rows: AlertRows) -> dict[str, Any]:
    """What the server sends about a task to a channel of this device; nothing is sent to a push service."""
    channel = await add_channel(device)
    message = await due_alert(user, tasks, rows)
    rows.execute(
        "INSERT INTO alert_deliveries (user_id, alert_id, channel_id, state, proof, first_at, at)"
        " SELECT %(user)s, id, %(channel)s, 'accepted', %(proof)s, now(), now() FROM alerts"
        " WHERE user_id = %(user)s AND key = %(key)s",
        **{"user": user.name, "channel": channel, "proof": message["proof"], "key": message["key"]},
    )
    return message


async def due_alert(user: User, tasks: TaskApi, rows: AlertRows) -> dict[str, Any]:
    """An alert of a task, which no channel has brought to the user."""
    task, key, proof = await tasks.add(TITLE, due=f"{DUE} 15:00"), uuid4().hex[:24], uuid4().hex
    rows.execute(
        "INSERT INTO alerts (user_id, key, kind, task_dues, alert_at, created_at, state)"
        " VALUES (%(user)s, %(key)s, 'task', %(due)s, now(), now(), 'sent')",
        **{"user": user.name, "key": key, "due": Jsonb([{"id": task, "due_on": DUE, "due_time": "15:00:00"}])},
    )
    return alert(key, TITLE, url=f"{user.url}/t/{task}", task=task, proof=proof)


def states(rows: AlertRows, user: User) -> list[str]:
    return [row["state"] for row in [*rows.alerts(user.name), *rows.deliveries(user.name)]]


async def test_push_is_shown_acknowledged_and_done(
    open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows
) -> None:
    device = await open_device(open_page)
    message = await sent_alert(device, user, tasks, rows)
    assert states(rows, user) == ["sent", "accepted"]
    await device.push(message)
    [shown] = await device.until_shown(TITLE)
    assert (shown["tag"], shown["body"], shown["actions"][:2]) == (message["key"], message["body"], ["done", "snooze"])
    await until(lambda: states(rows, user) == ["shown", "shown"])
    await device.click(message["key"], "done")
    assert await tasks.titles("done") == [TITLE]
    assert (await device.shown(), await device.opened()) == ([], [])
    await expect(task_list.rows(device.page)).not_to_contain_text(TITLE)


async def test_push_is_snoozed(open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows) -> None:
    device = await open_device(open_page)
    message = await sent_alert(device, user, tasks, rows)
    await task_list.see(device.page, "All")
    await device.push(message)
    await device.until_shown(TITLE)
    await device.click(message["key"], "snooze")
    [row] = rows.all("SELECT snoozed_until, created_at FROM tasks WHERE user_id = %(user)s", user=user.name)
    assert timedelta(minutes=10) <= row["snoozed_until"] - row["created_at"] < timedelta(minutes=15), row
    again = f"{row['snoozed_until'].astimezone(UTC):%-I:%M}"
    await expect(task_list.row(device.page, TITLE)).to_contain_text(re.compile(rf"snoozed until (Tomorrow )?{again}\s"))
    assert (await device.shown(), await device.opened()) == ([], [])


@pytest.mark.parametrize("action", ["done", "snooze"])
async def test_action_after_the_due_date_has_changed_does_nothing_and_says_so(
    open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows, action: str
) -> None:
    device = await open_device(open_page)
    message = await sent_alert(device, user, tasks, rows)
    await device.push(message)
    await device.until_shown(TITLE)
    await tasks.change(message["task"], due=f"{DUE} 16:00")
    await device.click(message["key"], action)
    [shown] = await device.until_shown(TITLE)
    assert shown["tag"] == message["key"]
    assert shown["body"].startswith("Nothing was done: ")
    assert shown["actions"] == []
    assert (await tasks.task(TITLE))["status"] == "pending"
    assert rows.all("SELECT FROM tasks WHERE snoozed_until IS NOT NULL AND user_id = %(user)s", user=user.name) == []
    await device.click(message["key"])
    await expect(device.page).to_have_url(re.compile(f"/t/{message['task']}$"))


async def test_acknowledgement_is_sent_again_after_a_lost_connection(
    open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows
) -> None:
    device = await open_device(open_page)
    message = await sent_alert(device, user, tasks, rows)
    async with device.unreachable_server():
        await device.push(message)
        await device.until_shown(TITLE)
        await until(device.failed_requests)
        assert states(rows, user) == ["sent", "accepted"]
        await device.click(message["key"], "done")
        await expect(device.page).to_have_url(re.compile(f"/t/{message['task']}$"))  # what cannot be done is opened
    await until(lambda: states(rows, user) == ["shown", "shown"])
    assert await tasks.titles("done") == []


async def test_device_without_a_session_shows_acknowledges_and_opens(
    open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows
) -> None:
    device = await open_device(open_page)
    message = await sent_alert(device, user, tasks, rows)
    url = device.page.url
    await device.page.close()
    await device.page.context.clear_cookies()
    await device.push(message)
    await device.until_shown(TITLE)
    await until(lambda: states(rows, user) == ["shown", "shown"])
    await device.click(message["key"], "done")
    assert await device.opened() == [f"{url.removesuffix('today')}t/{message['task']}"]
    assert (await tasks.task(TITLE))["status"] == "pending"


async def test_signing_out_ends_the_device(open_page: OpenPage, user: User, rows: AlertRows) -> None:
    device = await open_device(open_page)
    await add_channel(device)
    assert len(rows.channels(user.name)) == 1
    await screen.from_menu(device.page, "Sign out")
    await expect(device.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert rows.channels(user.name) == []
    registrations = "navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)"
    await until(lambda: device.page.evaluate(registrations))


async def test_device_that_is_ended_elsewhere(open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows) -> None:
    """It gets nothing any more. What is on the way is shown, and can do nothing."""
    device = await open_device(open_page)
    message = await sent_alert(device, user, tasks, rows)
    url = device.page.url
    other = await open_page()
    await expect(screen.message_box(other)).to_be_visible()
    await call(other, "DELETE", "sessions")
    assert rows.channels(user.name) == []
    await expect(device.page.get_by_label("Token")).to_be_visible()
    await device.page.close()
    await device.push(message)
    await device.until_shown(TITLE)
    await device.click(message["key"], "done")
    assert await device.opened() == [f"{url.removesuffix('today')}t/{message['task']}"]
    assert (await tasks.task(TITLE))["status"] == "pending"
    assert rows.deliveries(user.name) == []


async def test_subscription_that_the_push_service_replaces(open_page: OpenPage, user: User, rows: AlertRows) -> None:
    device = await open_device(open_page)
    await add_channel(device)
    renewed = SUBSCRIPTION | {"endpoint": "https://updates.push.services.mozilla.com/wpush/v2/the-next"}
    await device.renew_subscription(renewed)
    stored = [channel["target"]["endpoint"] for channel in rows.channels(user.name)]
    assert stored == [SUBSCRIPTION["endpoint"], renewed["endpoint"]]


async def test_two_tabs_show_one_notification(open_page: OpenPage, user: User, tasks: TaskApi, rows: AlertRows) -> None:
    """Of what no device has shown, in the same way as of a push."""
    device = await open_device(open_page)
    tab = await device.page.context.new_page()
    await tab.add_init_script(PERMISSION)
    await tab.goto("/")
    await call(tab, "PATCH", "alerts/settings", {"on": True})
    tabs = (device.page, tab)
    for each in tabs:
        await each.reload()
        await task_list.loaded(each)
    message = await due_alert(user, tasks, rows)

    async def look() -> bool:
        for each in tabs:
            await each.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        return states(rows, user) == ["shown"]

    await until(look)
    [shown] = await device.until_shown(TITLE)
    assert shown["tag"] == message["key"]
    assert shown["actions"][:2] == ["done", "snooze"]
    for each in tabs:
        await expect(each.get_by_role("region", name="New notifications", exact=True)).to_have_count(0)
    await device.push(message)
    await device.until_shown(TITLE)


async def test_what_a_push_says_is_data(open_page: OpenPage) -> None:
    """It opens no page of others, and the task here even if the server calls itself otherwise."""
    device = await open_device(open_page)
    url = device.page.url.removesuffix("today")
    elsewhere = "https://elsewhere.example"
    await device.push(alert("k1", "Call \u202e<b>mum</b>", body="at \u20663:00 PM", url=f"{elsewhere}/x"))
    [shown] = await device.until_shown("Call <b>mum</b>")
    assert (shown["tag"], shown["body"]) == ("k1", "at 3:00 PM")
    await device.page.close()
    await device.click("k1")
    for address in (f"{elsewhere}/t/7", "//elsewhere.example", "javascript:alert(1)", "http://[", "t/8?x=1"):
        await device.push(alert("k2", TITLE, url=address))
        await device.until_shown(TITLE)
        await device.click("k2")
    assert await device.opened() == [url, f"{url}t/7", url, url, url, f"{url}t/8"]


async def test_push_that_cannot_be_read_is_shown(open_page: OpenPage) -> None:
    device = await open_device(open_page)
    for unreadable in ("no json", "null", '{"key": 1}', ""):
        await device.push(unreadable)
        await device.until_shown("To-do assistant")
        await device.click("unreadable")
        await device.until_shown()


async def test_click_opens_the_task(open_page: OpenPage, tasks: TaskApi) -> None:
    task = await tasks.add(TITLE, due=f"{DUE} 15:00")
    device = await open_device(open_page)
    await device.push(alert("k1", TITLE, url=f"t/{task}"))
    await device.until_shown(TITLE)
    await device.click("k1")
    await expect(device.page).to_have_url(re.compile(f"/t/{task}$"))
    await expect(task_list.rows(device.page).get_by_role("textbox", name="Title")).to_have_value(TITLE)
