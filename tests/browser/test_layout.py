"""What is around the list and the chat: panes and tabs, the badge, the menu with the theme, the icons."""

import json
import re
import struct

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.stand_ins import with_list

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 390, "height": 800}
MODEL = {"offline": False, "name": "qwen3:0.6b", "writesCalls": True}
# The page's own files by their paths, with the bytes of each as it was sent.
LOADED = """() => Object.fromEntries(
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize])
        .filter(([path]) => path === "/" || path.startsWith("/web/")))"""


def tasks(page: Page) -> Locator:
    return page.get_by_role("region", name="Tasks")


async def ground(page: Page) -> str:
    return await page.evaluate("getComputedStyle(document.body).backgroundColor")


async def test_list_and_chat_are_tabs_on_a_phone_and_beside_each_other_elsewhere(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport=PHONE)
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_hidden()
    await page.get_by_role("tab", name="Tasks").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Chat", selected=True)).to_be_focused()
    await expect(page.get_by_role("tabpanel", name="Chat")).to_be_visible()
    await expect(tasks(page)).to_be_hidden()
    await expect(screen.message_box(page)).to_be_visible()
    await page.reload()
    await expect(screen.message_box(page)).to_be_visible()
    await page.get_by_role("tab", name="Chat").focus()
    await page.keyboard.press("Home")
    await expect(tasks(page)).to_be_visible()
    await page.keyboard.press("Tab")
    assert not await page.evaluate("document.activeElement.closest('#chat')"), "what is not seen takes no focus"
    await page.evaluate("document.querySelector('todo-tasks > div').scrollTop = 400")
    await page.get_by_role("tab", name="Chat").click()
    await screen.message_box(page).fill("one\ntwo\nthree")
    await page.get_by_role("tab", name="Tasks").click()
    assert await page.evaluate("document.querySelector('todo-tasks > div').scrollTop") == 400
    await page.get_by_role("tab", name="Chat").click()
    await expect(screen.message_box(page)).to_have_value("one\ntwo\nthree")

    await page.set_viewport_size({"width": 900, "height": 700})
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_visible()
    await expect(page.get_by_role("tab")).to_have_count(0)
    left, right = await tasks(page).bounding_box(), await screen.log(page).bounding_box()
    assert left
    assert right
    assert left["x"] + left["width"] <= right["x"] + 1
    for side, most in (("Width", 900), ("Height", 700)):
        assert await page.evaluate(f"document.documentElement.scroll{side}") <= most, "each part scrolls by itself"


async def test_theme_is_kept_and_badge_and_menu_by_keyboard(open_page: OpenPage) -> None:
    page = await open_page(color_scheme="light")
    light = await ground(page)
    await screen.button(page, "Menu").click()
    await expect(page.get_by_role("radio", name="System")).to_be_checked()
    await page.get_by_role("radio", name="Dark").check()
    dark = await ground(page)
    assert dark != light
    await page.reload(wait_until="commit")
    await page.wait_for_selector("main", state="attached")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
    await screen.button(page, "Menu").click()
    await expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    await page.get_by_role("radio", name="System").check()
    assert await ground(page) == light
    await page.emulate_media(color_scheme="dark")
    assert await ground(page) == dark
    await page.keyboard.press("Escape")

    await screen.button(page, "Basic mode · Add AI").focus()
    await page.keyboard.press("Enter")
    about = page.get_by_role("dialog", name="About this assistant")
    await expect(about).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(about.get_by_text("LLM_PROVIDER=cerebras")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(about).to_be_hidden()
    await expect(screen.button(page, "Basic mode · Add AI")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("radio", name="System")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("radio", name="Light")).to_be_checked()
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Remind me while this page is open")).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Calendar")).to_be_visible()


async def test_header_says_that_a_model_writes_its_calls_as_text(open_page: OpenPage, violations: Violations) -> None:
    async def limit(route: Route) -> None:
        html = await (await route.fetch()).text()
        await route.fulfill(
            body=re.sub('"model": {.*?}', f'"model": {json.dumps(MODEL)}', html), content_type="text/html"
        )

    page = await open_page(prepare=lambda page: page.route(lambda url: url.endswith("/"), limit), viewport=PHONE)
    badge = screen.button(page, "Limited · qwen3:0.6b")
    await badge.click()
    about = page.get_by_role("dialog", name="About this assistant")
    await expect(about).to_contain_text("it writes its calls as text. Answers can be slower and less exact.")
    for width, words in ((320, None), (PHONE["width"], "Limited"), (1280, "Limited · qwen3:0.6b")):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await violations(page) == [], width
        if words:
            await expect(badge.get_by_text(words, exact=True)).to_be_visible()


async def test_page_is_small_contacts_no_other_server_and_can_be_installed(open_page: OpenPage) -> None:
    urls: list[str] = []

    async def prepare(page: Page) -> None:
        page.on("request", lambda request: urls.append(request.url))

    page = await open_page(prepare=prepare)
    await expect(screen.message_box(page)).to_be_editable()
    files: dict[str, int] = await page.evaluate(LOADED)
    assert 20_000 < sum(files.values()) < 120_000
    await screen.say(page, "add milk")
    more = (await page.evaluate(LOADED)).keys() - files.keys()
    assert {"/web/chat/log.js", "/web/vendor/marked/marked.esm.js"} <= more, (
        "what draws messages is loaded with the first"
    )
    assert {url.split("/")[2].split(":")[0] for url in urls} == {"127.0.0.1"}

    session = await page.context.new_cdp_session(page)
    found = await session.send("Page.getAppManifest")
    assert found["errors"] == []
    assert found["url"].endswith("/web/manifest.json")
    manifest = await (await page.request.get("/web/manifest.json")).json()
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    sizes = []
    for icon in manifest["icons"]:
        response = await page.request.get(icon["src"])
        assert response.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", (await response.body())[16:24])
            assert icon["sizes"] == f"{width}x{height}"
            sizes.append(width)
    assert sorted(sizes) == [192, 512, 512]
