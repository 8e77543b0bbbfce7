"""The dialog about notifications, and those that an open page shows itself; their API is a stand-in."""

import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen, task_list
from tests.browser.alerts_stand_in import OUTDATED, AlertsApi, alert, channel
from tests.browser.conftest import OpenPage, ServiceWorkers, Violations
from tests.browser.task_list import TaskApi
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

AT = "2026-11-25T07:59:00Z"
ENDED = {"code": "ended", "message": "The device no longer accepts notifications. Turn them on again there."}
PHONE, NTFY = channel(1, "push", "Chrome on Android", last_shown_at=AT), channel(3, "ntfy", "ntfy.example.com")
OLD_PHONE = channel(2, "push", "Firefox on Linux", state="off", problem=ENDED)
GRANTED = "Object.defineProperty(Notification, 'permission', { get: () => window.permission ?? '%s' });"
SUBSCRIBING = """
Notification.requestPermission = async () => (window.permission = '%s');
PushManager.prototype.subscribe = async function (options) {
  window.subscribed = options;
  if (window.pushService === 'none') throw new DOMException('push service error', 'AbortError');
  return { endpoint: 'https://push.example/1', toJSON: () => ({ endpoint: 'https://push.example/1', keys: {} }) };
};
"""


@pytest.fixture
def service_workers() -> ServiceWorkers:
    return "allow"


def delivery(channel_id: int, state: str, **fields: Any) -> dict[str, Any]:
    names = {1: "Chrome on Android", 2: "Firefox on Linux", 3: "ntfy.example.com"}
    return {
        "channel": names[channel_id],
        "channel_id": channel_id,
        "kind": "push",
        "state": state,
        "at": AT,
        "problem": None,
        **fields,
    }


def recent(key: str, state: str, *deliveries: dict[str, Any], task: int = 1, **fields: Any) -> dict[str, Any]:
    due: dict[str, Any] = {"kind": "task", "tasks": [task], "alert_at": AT, "late": False}
    return {"key": key, "state": state, "deliveries": list(deliveries), **due, **fields}


async def open_dialog(page: Page) -> Locator:
    await screen.from_menu(page, "Notifications")
    dialog = page.get_by_role("dialog", name="Notifications", exact=True)
    await expect(dialog.get_by_role("checkbox", name="Notify me of what is due")).to_be_visible()
    return dialog


async def press(dialog: Locator, name: str) -> None:
    """Presses a button by the keyboard once the dialog has done what was pressed before."""
    await expect(dialog).not_to_have_attribute("aria-busy", "true")
    await screen.button(dialog, name).press("Enter")


def section(dialog: Locator, name: str) -> Locator:
    return dialog.get_by_role("region", name=name, exact=True)


def in_page_alerts(page: Page) -> Locator:
    return page.get_by_role("region", name="New notifications", exact=True)


async def look(page: Page) -> None:
    """Lets the page look for alerts now, as when its tab is shown again."""
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


async def test_dialog_lists_recent_notifications(open_page: OpenPage, tasks: TaskApi, violations: Violations) -> None:
    await tasks.add("Call <b>mum</b>")
    api = AlertsApi(PHONE, OLD_PHONE, NTFY)
    api.recent = [
        recent("a", "shown", delivery(1, "shown")),
        recent("b", "sent", delivery(1, "gave_up"), delivery(3, "accepted"), kind="digest", late=True),
        recent("c", "failed", delivery(2, "failed", problem=ENDED), task=99),
        recent("d", "held", task=1),
        recent("e", "collected", kind="several"),
    ]
    page = await open_page(prepare=api.prepare, viewport={"width": 320, "height": 700}, locale="en-GB")
    dialog = await open_dialog(page)
    rows = section(dialog, "Recent").get_by_role("listitem")
    await expect(rows.first).to_contain_text("Call <b>mum</b>")
    for row, words in enumerate(
        (
            r"shown on Chrome on Android \d+:59$",
            r"^Morning overview \d+:59: late; not shown on Chrome on Android by \d+:59; "
            r"sent to ntfy\.example\.com \d+:59, not confirmed$",
            r"^Task 99 \d+:59: failed: Firefox on Linux\. The device no longer accepts",
            "held until the quiet hours end$",
            r"^Several tasks at once \d+:59: waits a few seconds for others$",
        )
    ):
        text = " ".join((await rows.nth(row).inner_text()).split())
        assert re.search(words, text), text
    channels = section(dialog, "Channels").get_by_role("listitem")
    await expect(channels.nth(0)).to_contain_text(
        re.compile(r"Chrome on Android \(target of Chrome on Android\)\s*On, last shown ")
    )
    await expect(channels.nth(1)).to_contain_text(f"Switched off. {ENDED['message']}")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    assert await dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")

    await rows.first.get_by_role("link").click()
    await expect(dialog).to_have_count(0)
    await expect(page).to_have_url(re.compile("/t/1$"))


async def test_end_of_the_dialog_covers_nothing_that_has_the_focus(open_page: OpenPage) -> None:
    api = AlertsApi(PHONE, OLD_PHONE, NTFY)
    page = await open_page(prepare=api.prepare, viewport={"width": 360, "height": 500})
    dialog = await open_dialog(page)
    await screen.button(dialog, "Send a test: Chrome on Android").click()
    await expect(dialog.get_by_role("status")).to_have_text("The notification was accepted.")
    await dialog.get_by_role("checkbox").focus()
    save = screen.button(dialog, "Save")
    while not await save.evaluate("button => button === document.activeElement"):
        await page.keyboard.press("Tab")
        assert await dialog.evaluate(
            "dialog => document.activeElement.getBoundingClientRect().bottom"
            " <= dialog.querySelector('.end').getBoundingClientRect().top"
        ), await page.evaluate("document.activeElement.outerHTML")


async def test_times_are_saved(open_page: OpenPage) -> None:
    api = AlertsApi(PHONE)
    page = await open_page(prepare=api.prepare)
    dialog = await open_dialog(page)
    await dialog.get_by_label("Reminder of a task with a time").select_option("10 min before")
    await dialog.get_by_label("Morning overview at").fill("")
    await dialog.get_by_label("Quiet from").fill("22:00")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Quiet hours need both times, or none.")
    assert api.asked == []
    await dialog.get_by_label("Quiet until").fill("07:00")
    await screen.button(dialog, "Save").click()
    await expect(dialog.get_by_role("status")).to_have_text("Saved.")
    saved = {"remind": 10, "digest_time": None, "quiet_from": "22:00", "quiet_until": "07:00"}
    assert api.asked == [("PATCH", "settings", saved)]


async def test_notifications_are_switched_on_and_off(open_page: OpenPage) -> None:
    api = AlertsApi(on=False)
    api.unshown = [alert("k", "Call mum")]
    page = await open_page(prepare=api.prepare)
    dialog = await open_dialog(page)
    await expect(dialog).to_contain_text("No notifications are sent while this is off.")
    await expect(section(dialog, "Channels")).to_have_count(0)
    await look(page)
    switch = dialog.get_by_role("checkbox", name="Notify me of what is due")
    await expect(switch).not_to_be_checked()
    await switch.check()
    await expect(section(dialog, "Channels")).to_contain_text("None yet")
    await expect(in_page_alerts(page)).to_contain_text("Call mum")
    assert api.asked[0] == ("PATCH", "settings", {"on": True})
    await switch.uncheck()
    await expect(section(dialog, "Channels")).to_have_count(0)
    await expect(in_page_alerts(page)).to_have_count(0)


async def test_rejected_switch_shows_what_is_stored(open_page: OpenPage) -> None:
    api = AlertsApi(on=False)
    api.rejections["settings"] = 503, "The database cannot be reached."
    dialog = await open_dialog(await open_page(prepare=api.prepare))
    switch = dialog.get_by_role("checkbox", name="Notify me of what is due")
    await switch.click()
    await expect(dialog.get_by_role("alert")).to_have_text("The database cannot be reached.")
    await expect(switch).not_to_be_checked()


async def test_channels_are_added(open_page: OpenPage) -> None:
    missing = {
        "kind": "email",
        "name": "E-mail",
        "possible": False,
        "why_not": "E-mail is not set up here. Ask the operator.",
    }
    api = AlertsApi()
    api.settings["kinds"][3] = missing
    page = await open_page(prepare=api.prepare)
    dialog = await open_dialog(page)
    await dialog.get_by_text("Other channels").click()
    await expect(dialog.get_by_text(missing["why_not"])).to_be_visible()
    await expect(screen.button(dialog, "E-mail")).to_have_count(0)
    await screen.button(dialog, "ntfy").click()
    await expect(dialog.get_by_label("Server", exact=True)).to_be_focused()
    await dialog.get_by_label("Server", exact=True).fill("https://ntfy.example.com")
    topic = await dialog.get_by_label(re.compile("^Topic")).input_value()
    assert re.fullmatch("todo-[0-9a-f]{16}", topic)
    api.rejections["channels"] = 422, "Notifications may not be sent to that address."
    await dialog.get_by_label("Server", exact=True).press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Notifications may not be sent to that address.")
    assert await dialog.get_by_label("Server", exact=True).input_value() == "https://ntfy.example.com"
    assert await dialog.get_by_label(re.compile("^Topic")).input_value() == topic
    api.rejections.clear()
    await screen.button(dialog, "Add").click()
    await expect(dialog.get_by_role("status")).to_have_text("Added. Send a test to see whether it arrives.")
    target = {"server": "https://ntfy.example.com", "topic": topic}
    assert api.asked == [("POST", "channels", {"kind": "ntfy", "name": "ntfy", "target": target})] * 2
    await expect(dialog.get_by_label("Server", exact=True)).to_have_count(0)


async def test_channels_are_tested_moved_and_removed_by_keyboard(open_page: OpenPage) -> None:
    api = AlertsApi(PHONE, NTFY)
    page = await open_page(prepare=api.prepare)
    await screen.open_menu(page)
    await screen.button(page, "Notifications").press("Enter")
    dialog = page.get_by_role("dialog", name="Notifications", exact=True)
    heading = dialog.get_by_role("heading", name="Notifications")
    await expect(heading).to_be_focused()
    await press(dialog, "Send a test: ntfy.example.com")
    await expect(dialog.get_by_role("status")).to_have_text("The notification was accepted.")
    await press(dialog, "Move up: ntfy.example.com")
    await expect(dialog.get_by_role("status")).to_have_text("Moved.")
    await expect(heading).to_be_focused()
    await press(dialog, "Turn off: Chrome on Android")
    await until(lambda: len(api.asked) == 3)
    api.rejections["channels/3"] = 404, "It is gone."
    await press(dialog, "Remove: ntfy.example.com")
    await expect(dialog.get_by_role("status")).to_have_text("Removed.")
    assert api.asked == [
        ("POST", "channels/3/test", None),
        ("PATCH", "channels/3", {"position": 1}),
        ("PATCH", "channels/1", {"on": False}),
        ("DELETE", "channels/3", None),
    ]
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_this_device_is_added(open_page: OpenPage) -> None:
    api = AlertsApi()

    async def prepare(page: Page) -> None:
        await api.prepare(page)
        await page.add_init_script(GRANTED % "default" + SUBSCRIBING % "granted")

    page = await open_page(prepare=prepare)
    device = section(await open_dialog(page), "This device")
    add = screen.button(device, "Notify me on this device")
    await page.evaluate("window.pushService = 'none'")
    await add.click()
    await expect(page.get_by_role("alert")).to_contain_text("push service could not be reached")
    assert api.asked == []
    await page.evaluate("window.pushService = 'fine'")
    api.settings["channels"] = [channel(1, "push", "Chrome on Linux", this_device=True)]
    await add.click()
    await expect(device).to_contain_text("This device gets notifications, also while this page is closed.")
    target = {"endpoint": "https://push.example/1", "keys": {}}
    assert api.asked == [("POST", "channels", {"kind": "push", "name": "Chrome on Linux", "target": target})]
    assert await page.evaluate("window.subscribed") == {"userVisibleOnly": True, "applicationServerKey": "BA"}


@pytest.mark.parametrize(
    ("script", "options", "sentence"),
    [
        (GRANTED % "denied", {}, "Notifications of this page are blocked. Allow them in the settings"),
        ("delete window.PushManager;", {}, "This browser cannot receive notifications while the page is closed."),
        ("", {"user_agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X)"}, "Add to Home Screen"),
        ("Object.defineProperty(window, 'isSecureContext', { get: () => false });", {}, "is open without https"),
    ],
)
async def test_why_a_device_gets_no_notifications(
    open_page: OpenPage, script: str, options: dict[str, Any], sentence: str
) -> None:
    api = AlertsApi()

    async def prepare(page: Page) -> None:
        await api.prepare(page)
        await page.add_init_script(script)

    page = await open_page(prepare=prepare, **options)
    device = section(await open_dialog(page), "This device")
    await expect(device).to_contain_text(sentence)
    await expect(device).to_contain_text("While this page is open, it shows what is due by itself.")
    await expect(device.get_by_role("button")).to_have_count(0)


async def test_rejected_permission_is_reported(open_page: OpenPage) -> None:
    api = AlertsApi()

    async def prepare(page: Page) -> None:
        await api.prepare(page)
        await page.add_init_script(GRANTED % "default" + SUBSCRIBING % "denied")

    page = await open_page(prepare=prepare)
    dialog = await open_dialog(page)
    assert not await page.evaluate("Boolean(window.permission)"), "nobody is asked unasked"
    await screen.button(dialog, "Notify me on this device").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Notifications of this page are blocked.")
    await expect(screen.button(dialog, "Notify me on this device")).to_have_count(0)
    assert api.asked == []


SUBSCRIBED = """
const subscription = {
  endpoint: 'https://push.example/1',
  toJSON: () => ({ endpoint: 'https://push.example/1', keys: {} }),
  unsubscribe: async () => (window.unsubscribed = true),
};
PushManager.prototype.getSubscription = async () => (window.unsubscribed ? null : subscription);
"""


async def test_new_session_takes_the_device_over(open_page: OpenPage) -> None:
    """The channel is of the session that has made it; it is given to the server again, once in a session."""
    api = AlertsApi()

    async def prepare(page: Page) -> None:
        await api.prepare(page)
        await page.add_init_script(GRANTED % "granted" + SUBSCRIBED)

    page = await open_page(prepare=prepare)
    await until(lambda: api.asked != [])
    target = {"endpoint": "https://push.example/1", "keys": {}}
    assert api.asked == [("POST", "channels", {"kind": "push", "name": "Chrome on Linux", "target": target})]
    await screen.until(page, "localStorage['todo.push']")
    api.settings["channels"] = [channel(1, "push", "Chrome on Linux", this_device=True)]
    await page.reload()
    await expect(section(await open_dialog(page), "This device")).to_contain_text("This device gets notifications")
    assert len(api.asked) == 1
    assert not await page.evaluate("window.unsubscribed")

    api.settings["channels"] = []  # it was removed on another device
    await page.reload()
    await screen.until(page, "window.unsubscribed")
    assert len(api.asked) == 1


async def test_page_shows_what_is_due_itself(open_page: OpenPage, violations: Violations) -> None:
    """Where the browser shows no notifications; texts are data."""
    api = AlertsApi()
    page = await open_page(prepare=api.prepare, viewport={"width": 320, "height": 700}, pane="tasks")
    await task_list.loaded(page)
    digest = alert("k2", "Morning overview", body="2 tasks", kind="digest", task=None, actions=False)
    api.unshown = [alert("k1", "Call \u202e<b>mum</b>"), digest]
    await look(page)
    shown = in_page_alerts(page).get_by_role("listitem")
    await expect(shown).to_have_count(2)
    await expect(shown.first).to_contain_text("<b>mum</b>")
    await until(lambda: [path for _, path, _ in api.asked] == ["k1/shown", "k2/shown"])
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await expect(shown.last.get_by_role("button")).to_have_text(["", "Open"], use_inner_text=True)

    api.is_current = False
    await shown.first.get_by_role("button", name=re.compile("^Done")).click()
    await expect(shown.first.get_by_role("alert")).to_have_text(OUTDATED)
    await expect(shown.first.get_by_role("button", name=re.compile("^Done|^In 10 minutes"))).to_have_count(0)
    await shown.first.get_by_role("button", name=re.compile("^Dismiss")).click()
    await expect(shown).to_have_count(1)

    api.is_current = True
    api.unshown = [alert("k3", "Buy milk", task=7)]
    await look(page)
    await expect(shown).to_have_count(2)
    async with page.expect_request("**/tasks?view=*"):  # the list shows until when
        await shown.last.get_by_role("button", name=re.compile("^In 10 minutes")).click()
    await expect(shown).to_have_count(1)
    assert api.asked[-1] == ("POST", "k3/snooze", {"minutes": 10})
    await shown.first.get_by_role("button", name=re.compile("^Open")).click()
    await expect(in_page_alerts(page)).to_have_count(0)
    await look(page)
    await expect(in_page_alerts(page)).to_have_count(0)


async def test_signing_out_removes_what_is_shown(open_page: OpenPage) -> None:
    api = AlertsApi()
    page = await open_page(prepare=api.prepare, pane="tasks")
    await task_list.loaded(page)
    api.unshown = [alert("k1", "A secret of mine")]
    await look(page)
    await expect(in_page_alerts(page)).to_contain_text("A secret of mine")
    await screen.from_menu(page, "Sign out")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(in_page_alerts(page)).to_have_count(0)


async def test_no_session_leads_to_the_sign_in(open_page: OpenPage) -> None:
    api = AlertsApi(PHONE)
    page = await open_page(prepare=api.prepare)
    dialog = await open_dialog(page)
    api.rejections["channels/1/test"] = 401, "Sign in."
    await screen.button(dialog, "Send a test: Chrome on Android").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)
