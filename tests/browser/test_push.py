"""Pushes to a closed or open page: what the service worker shows, says and does."""

import pytest
from playwright.async_api import expect

from tests.browser import task_list
from tests.browser.alerts_stand_in import alert
from tests.browser.conftest import OpenPage
from tests.browser.device import Device
from tests.browser.task_list import TaskApi

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def test_what_a_push_says_is_data(open_page: OpenPage) -> None:
    """It opens no page of others, and the task here even if the server calls itself otherwise."""
    device = await Device.of(await open_page(permissions=["notifications"]))
    url = device.page.url
    await device.push(alert("k1", "Call \u202e<b>mum</b>", body="at \u20663:00 PM", url="https://elsewhere.example/x"))
    [shown] = await device.until_shown("Call <b>mum</b>")
    assert (shown["tag"], shown["body"]) == ("k1", "at 3:00 PM")
    await device.page.close()
    await device.click("k1")
    for address in (
        "https://elsewhere.example/t/7",
        "//elsewhere.example",
        "javascript:alert(1)",
        "http://[",
        "t/8?x=1",
    ):
        await device.push(alert("k2", "Call mum", url=address))
        await device.until_shown("Call mum")
        await device.click("k2")
    assert await device.opened() == [url, f"{url}t/7", url, url, url, f"{url}t/8"]


async def test_push_that_cannot_be_read_is_shown(open_page: OpenPage) -> None:
    device = await Device.of(await open_page(permissions=["notifications"]))
    for unreadable in ("no json", "null", '{"key": 1}', ""):
        await device.push(unreadable)
        await device.until_shown("To-do assistant")
        await device.click("unreadable")
        await device.until_shown()


async def test_click_opens_the_task(open_page: OpenPage, tasks: TaskApi) -> None:
    task = await tasks.add("Call mum", due="tomorrow 15:00")
    page = await open_page(pane="tasks", permissions=["notifications"])
    await task_list.loaded(page)
    device = await Device.of(page)
    await device.push(alert("k1", "Call mum", url=f"t/{task}"))
    await device.until_shown("Call mum")
    await device.click("k1")
    await expect(page).to_have_url(f"{page.url.partition('/t/')[0].rstrip('/')}/t/{task}")
    await expect(task_list.rows(page).get_by_role("textbox", name="Title")).to_have_value("Call mum")
