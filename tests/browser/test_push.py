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
    device = await Device.of(await open_page(permissions=["notifications"]))
    await device.push(
        alert("k1", "Call \u202e<b>mum</b>", body="at \u20663:00 PM", url="https://elsewhere.example/t/1")
    )
    [shown] = await device.until_shown("Call <b>mum</b>")
    assert (shown["tag"], shown["body"]) == ("k1", "at 3:00 PM")
    await device.page.close()
    await device.click("k1")
    assert [address.rpartition(":")[2].partition("/")[2] for address in await device.opened()] == [""]


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
