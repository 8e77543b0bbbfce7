"""The host page with a stub in the place of OpenAI's element: it loads, is offline, hangs, refuses, vanishes."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.processes import ServiceProcess
from tests.web import screen
from tests.web.conftest import OpenPage
from tests.web.stand_ins import READY, SCRIPT, WIDGET, serving, with_list_and_widget
from tests.web.tasks.listed import Stored

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

REFUSED = (
    "this.dispatchEvent(new CustomEvent('chatkit.error', {detail: {error: new Error('Domain verification failed')}}));"
)


async def offline(page: Page) -> None:
    await page.route(SCRIPT, lambda route: route.abort())


async def hanging(page: Page) -> None:
    async def never(route: Route) -> None:
        await asyncio.sleep(5)
        await route.abort()

    await page.route(SCRIPT, never)


def real(page: Page) -> Any:
    return page.get_by_text("The real widget", exact=True)


async def test_it_is_shown_where_it_loads_with_the_options(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=serving(WIDGET % READY))
    await expect(real(page)).to_be_visible()
    await expect(await screen.open_about(page)).to_contain_text("OpenAI's ChatKit widget")
    await expect(page.locator("todo-chat")).to_have_count(0)
    assert await page.evaluate("window.loaded") == 1
    given = await page.evaluate("({...window.given, api: {...window.given.api, fetch: typeof window.given.api.fetch}})")
    assert given["api"]["url"] == "/chatkit"
    assert given["api"]["domainKey"] == "local-dev"
    assert given["threadItemActions"] == {"feedback": True, "retry": True}
    assert len(given["startScreen"]["prompts"]) == 3


async def test_it_asks_as_the_built_in_chat_does_from_where_the_person_is(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=serving(WIDGET % READY), timezone_id="Asia/Tokyo")
    await expect(real(page)).to_be_visible()
    body = '{"type": "threads.list", "params": {}}'
    init = "{method: 'POST', body, headers: {'Content-Type': 'application/json'}}"
    async with page.expect_request(lambda request: request.post_data == body) as asked:
        assert await page.evaluate(f"async (body) => (await given.api.fetch('/chatkit', {init})).status", body) == 200
    headers = await (await asked.value).all_headers()
    assert (headers["x-time-zone"], headers["content-type"]) == ("Asia/Tokyo", "application/json")


async def test_it_names_tasks_and_opens_them_in_the_list(open_page: OpenPage, site: ServiceProcess) -> None:
    async with Stored(site.url) as stored:
        await stored.add("Buy milk", due="2030-11-27")
        await stored.add("Call mum")
    page = await open_page("/", prepare=with_list_and_widget, viewport={"width": 390, "height": 844})
    await expect(real(page)).to_be_visible()
    assert await page.evaluate("given.entities.onTagSearch('mi')") == [
        {"id": "1", "title": "Buy milk", "interactive": True, "data": {"due": "Nov 27, 2030"}}
    ]
    assert len(await page.evaluate("given.entities.onTagSearch('')")) == 2
    shown = await page.evaluate("given.entities.onRequestPreview({id: '1', title: 'Buy milk', data: {due: 'Nov 27'}})")
    assert [part["value"] for part in shown["preview"]["children"]] == ["Buy milk", "Nov 27"]
    tab = page.get_by_role("tab", name="Tasks")
    action = "{type: 'open_task', payload: {task_id: 2}}"
    for opens, number in (
        ("given.entities.onClick({id: '1', title: 'Buy milk'})", 1),
        (f"given.widgets.onAction({action}, {{id: 'wid_1', widget: null}})", 2),
        ("given.header.rightAction.onClick()", 2),
    ):
        await page.get_by_role("tab", name="Chat").click()
        await page.evaluate(f"void ({opens})")
        await expect(tab).to_have_attribute("aria-selected", "true")
        assert await page.evaluate("window.shown") == number


async def test_the_open_conversation_is_remembered_for_either_chat(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=serving(WIDGET % READY))
    await expect(real(page)).to_be_visible()
    await page.evaluate(
        "document.querySelector('openai-chatkit').dispatchEvent("
        "new CustomEvent('chatkit.thread.change', {detail: {threadId: 'thr_x'}}))"
    )
    await page.reload()
    await expect(real(page)).to_be_visible()
    assert await page.evaluate("window.given.initialThread") == "thr_x"


NEVER_READY = serving(WIDGET % "")
SLOW = (hanging, NEVER_READY)


@pytest.mark.parametrize(
    "case",
    [offline, hanging, serving("throw new Error('broken')"), NEVER_READY, serving(WIDGET % REFUSED)],
    ids=["offline", "hanging", "broken", "never ready", "refusing"],
)
async def test_ours_is_there_at_once_and_stays_where_it_does_not_load(open_page: OpenPage, case: Any) -> None:
    page = await open_page("about:blank", prepare=case, tolerate="script: broken")
    await page.goto("/", wait_until="commit")
    await expect(screen.message_box(page)).to_be_visible()
    about = await screen.open_about(page)
    if case in SLOW:
        await expect(about).to_contain_text("OpenAI's widget is being loaded")
    await expect(about).to_contain_text("OpenAI's widget could not be loaded")
    await expect(page.locator("openai-chatkit")).to_have_count(0)
    await screen.say(page, "add milk")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.reload()
    await expect(await screen.open_about(page)).to_contain_text("OpenAI's widget could not be loaded", timeout=1_000)
    assert SCRIPT not in asked, "what failed is not tried again during a visit"


@pytest.mark.parametrize(
    "end",
    ["this.remove()", "this.style.height = '0'", REFUSED],
    ids=["removed", "without height", "refused later"],
)
async def test_one_that_vanishes_is_replaced(open_page: OpenPage, end: str) -> None:
    body = WIDGET % f"{READY} setTimeout(() => {{ {end} }}, 1000);"
    page = await open_page("/", prepare=serving(body))
    await expect(real(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_visible(timeout=8_000)
    await expect(page.locator("openai-chatkit")).to_have_count(0)
    await expect(page.locator("todo-chat")).to_have_count(1)


@pytest.mark.parametrize("seconds", [1, 4], ids=["in time", "late"])
async def test_one_that_comes_while_somebody_writes_does_not_replace_ours(open_page: OpenPage, seconds: float) -> None:
    async def late(page: Page) -> None:
        async def after_a_while(route: Route) -> None:
            await asyncio.sleep(seconds)
            await route.fulfill(body=WIDGET % READY, content_type="text/javascript")

        await page.route(SCRIPT, after_a_while)

    page = await open_page("/", prepare=late)
    await screen.message_box(page).fill("half a mess")
    await screen.until(page, "customElements.get('openai-chatkit')")
    await expect(page.locator("todo-chat")).to_have_count(1)
    await expect(page.locator("openai-chatkit")).to_have_count(0)
    await expect(screen.message_box(page)).to_have_value("half a mess")


async def test_one_can_switch_between_the_two(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=serving(WIDGET % READY))
    await screen.open_about(page)
    await page.get_by_role("link", name="Use the built-in chat").click()
    await expect(screen.message_box(page)).to_be_visible()
    await expect((await screen.open_about(page)).get_by_text("Built-in chat", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Use OpenAI's widget").click()
    await expect(real(page)).to_be_visible()


async def test_the_built_in_chat_asks_nothing_of_other_servers(open_page: OpenPage) -> None:
    asked: list[str] = []

    async def prepare(page: Page) -> None:
        page.on("request", lambda request: asked.append(request.url))

    page = await open_page(prepare=prepare)
    await screen.say(page, "add milk")
    assert {url.split("/")[2].split(":")[0] for url in asked} == {"127.0.0.1"}


async def test_the_widget_follows_the_system_from_light_to_dark(open_page: OpenPage) -> None:
    page = await open_page("/", prepare=serving(WIDGET % READY), color_scheme="light")
    await expect(real(page)).to_be_visible()
    assert await page.evaluate("window.given.theme.colorScheme") == "light"
    await page.emulate_media(color_scheme="dark")
    await screen.until(page, "window.given.theme.colorScheme === 'dark'")
