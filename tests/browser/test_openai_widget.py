"""The page with OpenAI's widget, for which a script stands in that speaks its protocol."""

from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.browser.stand_ins import SCRIPT, WIDGET, serving, with_list_and_widget
from tests.browser.task_list import TaskApi

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

PATH = "/widget"
REJECTED = WIDGET.replace(
    'this.#emit("chatkit.ready")', 'this.#emit("chatkit.error", { error: new Error("Domain verification failed") })'
)


async def offline(page: Page) -> None:
    await page.route(SCRIPT, lambda route: route.abort())


def widget(page: Page) -> Any:
    return page.get_by_text("OpenAI's widget", exact=True)


async def test_switch_to_the_widget_and_back(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page(prepare=serving(WIDGET))
    await screen.open_about(page)
    await page.get_by_role("link", name="Use OpenAI's chat").click()
    await expect(widget(page)).to_be_visible()
    await page.get_by_label("Message").fill("add buy milk today")
    await page.get_by_label("Message").press("Enter")
    await expect(page.get_by_role("log")).to_contain_text("buy milk")
    await expect(page.get_by_role("log").get_by_text("Added 1", exact=True)).to_be_visible()
    await expect(page.locator("#tasks")).to_contain_text("buy milk")
    assert await tasks.titles() == ["buy milk"]
    await page.reload()
    await expect(page.get_by_role("log")).to_contain_text("buy milk")
    assert await page.evaluate("location.pathname") == PATH
    await screen.open_about(page)
    await page.get_by_role("link", name="Use the built-in chat").click()
    await expect(screen.message_box(page)).to_be_visible()


async def test_widget_gets_its_options_and_theme_and_sends_the_time_zone(open_page: OpenPage) -> None:
    page = await open_page(PATH, prepare=serving(WIDGET), timezone_id="Asia/Tokyo", color_scheme="light")
    await expect(widget(page)).to_be_visible()
    await expect(await screen.open_about(page)).to_contain_text("OpenAI's chat (ChatKit)")
    await expect(page.locator("todo-chat")).to_have_count(0)
    assert await page.evaluate("window.loaded") == 1
    given = await page.evaluate("({...window.given, api: {...window.given.api, fetch: typeof window.given.api.fetch}})")
    assert (given["api"]["url"], given["api"]["domainKey"]) == (urljoin(page.url, "/chatkit"), "local-dev")
    assert given["threadItemActions"] == {"feedback": True, "retry": True}
    assert len(given["startScreen"]["prompts"]) == 3
    body = '{"type": "threads.list", "params": {}}'
    init = "{method: 'POST', body, headers: {'Content-Type': 'application/json'}}"
    async with page.expect_request(lambda request: request.post_data == body) as asked:
        assert await page.evaluate(f"async (body) => (await given.api.fetch('/chatkit', {init})).status", body) == 200
    headers = await (await asked.value).all_headers()
    assert (headers["x-time-zone"], headers["content-type"]) == ("Asia/Tokyo", "application/json")
    assert given["theme"]["colorScheme"] == "light"
    await page.emulate_media(color_scheme="dark")
    await screen.until(page, "window.given.theme.colorScheme === 'dark'")
    await page.keyboard.press("Escape")
    await screen.open_menu(page)
    await page.get_by_role("radio", name="Light").check()
    await screen.until(page, "window.given.theme.colorScheme === 'light'")


async def test_widget_mentions_tasks_and_opens_them_in_the_list(open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("Buy milk", due="2030-11-27")
    await tasks.add("Call mum")
    page = await open_page(PATH, prepare=with_list_and_widget, viewport={"width": 390, "height": 844})
    await expect(widget(page)).to_be_visible()
    assert await page.evaluate("given.entities.onTagSearch('mi')") == [
        {"id": "1", "title": "Buy milk", "interactive": True, "data": {"due": "Nov 27, 2030"}}
    ]
    assert len(await page.evaluate("given.entities.onTagSearch('')")) == 2
    shown = await page.evaluate("given.entities.onRequestPreview({id: '1', title: 'Buy milk', data: {due: 'Nov 27'}})")
    assert [part["value"] for part in shown["preview"]["children"]] == ["Buy milk", "Nov 27"]
    action = "{type: 'open_task', payload: {task_id: 2}}"
    for opens, number in (
        ("given.entities.onClick({id: '1', title: 'Buy milk'})", 1),
        (f"given.widgets.onAction({action}, {{id: 'wid_1', widget: null}})", 2),
        ("given.header.rightAction.onClick()", 2),
    ):
        await page.evaluate(f"void ({opens})")
        await expect(page.get_by_role("region", name="Tasks")).to_be_visible()
        assert await page.evaluate("window.shown") == number
        await screen.show_assistant(page)
    before = await page.evaluate("window.refreshed")
    await page.locator("openai-chatkit").dispatch_event("chatkit.response.end")
    assert await page.evaluate("window.refreshed") == before + 1


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [(offline, "its script did not load"), (serving(REJECTED), "Domain verification failed")],
    ids=["offline", "rejected"],
)
async def test_widget_that_fails_says_why_and_where_the_built_in_chat_is(
    open_page: OpenPage, prepare: Any, reason: str
) -> None:
    page = await open_page(PATH, prepare=prepare)
    await expect(page.get_by_text(f"OpenAI's chat is unavailable: {reason}.")).to_be_visible()
    await page.get_by_role("link", name="Use the built-in chat").click()
    await screen.say(page, "add milk")


async def test_signed_out_user_signs_in_first(open_page: OpenPage) -> None:
    page = await open_page(PATH, signed_in=False, prepare=serving(WIDGET))
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await expect(widget(page)).to_have_count(0)
