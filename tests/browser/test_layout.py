"""What is around the list and the chat: side bar, panes, the model's name, the menu with the theme, the icons."""

import json
import re
import struct

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, Violations, sign_in
from tests.browser.draw_icons import chromium
from tests.browser.stand_ins import with_list
from tests.browser.task_list import TaskApi
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 390, "height": 800}
MODEL = {"offline": False, "name": "qwen3:0.6b", "writesCalls": True}
# The page's own files by their paths, with the bytes of each as it was sent.
LOADED = r"""() => Object.fromEntries(
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize])
        .map(([path, size]) => [path.replace(/^\/assets\/[0-9a-f]+\//, ""), size])
        .filter(([path]) => path === "/" || !path.startsWith("/")))"""


def tasks(page: Page) -> Locator:
    return page.get_by_role("region", name="Tasks")


@pytest.fixture
def list_api(user: User) -> TaskApi:
    return TaskApi(user)


async def ground(page: Page) -> str:
    return await page.evaluate("getComputedStyle(document.body).backgroundColor")


async def test_assistant_covers_the_list_of_a_phone_and_stands_beside_it_elsewhere(open_page: OpenPage) -> None:
    page = await open_page(prepare=with_list, pane="tasks", viewport=PHONE)
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_hidden()
    await screen.button(page, "Assistant").focus()
    await page.keyboard.press("Enter")
    await expect(screen.message_box(page)).to_be_visible()
    await expect(tasks(page)).to_be_hidden()
    await page.reload()
    await expect(screen.message_box(page)).to_be_visible()
    await screen.button(page, "Back to the tasks").focus()
    await page.keyboard.press("Enter")
    await expect(tasks(page)).to_be_visible()
    await expect(screen.button(page, "Assistant")).to_be_focused()
    await page.evaluate("document.querySelector('todo-tasks > div').scrollTop = 400")
    await screen.show_assistant(page)
    await screen.message_box(page).fill("one\ntwo\nthree")
    await screen.show_tasks(page)
    assert await page.evaluate("document.querySelector('todo-tasks > div').scrollTop") == 400
    await screen.show_assistant(page)
    await expect(screen.message_box(page)).to_have_value("one\ntwo\nthree")

    for width in (700, 1099, 1100):
        await page.set_viewport_size({"width": width, "height": 700})
        await expect(tasks(page)).to_be_visible()
        await expect(screen.message_box(page)).to_be_visible()
        await expect(page.get_by_role("navigation", name="Bottom bar")).to_be_hidden()
        left, right = await tasks(page).bounding_box(), await screen.log(page).bounding_box()
        assert left
        assert right
        assert left["x"] + left["width"] <= right["x"] + 1
        for side, most in (("Width", width), ("Height", 700)):
            assert await page.evaluate(f"document.documentElement.scroll{side}") <= most, "each part scrolls by itself"


async def test_large_text_gets_the_layout_that_has_room_for_it(
    open_page: OpenPage, browser: Browser, stack: Stack, user: User
) -> None:
    """Text of twice the usual size, by the browser's setting and on a page that scales its own."""
    options = ["--no-sandbox", "--blink-settings=defaultFontSize=32"]
    large = await browser.browser_type.launch(executable_path=chromium(), args=options)
    try:
        context = await large.new_context(base_url=stack.url, viewport={"width": 900, "height": 800})
        await sign_in(context, user)
        page = await context.new_page()
        await page.goto("/")
        await expect(page.get_by_role("navigation", name="Bottom bar")).to_be_visible()
        await expect(screen.message_box(page)).to_be_hidden()
    finally:
        await large.close()
    page = await open_page(prepare=with_list, pane="tasks", viewport=PHONE)
    await expect(tasks(page)).to_be_visible()
    await page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_divider_and_button_of_the_assistant(open_page: OpenPage, violations: Violations) -> None:
    page = await open_page(viewport={"width": 1440, "height": 900})
    divider = page.get_by_role("separator", name="Width of the assistant")
    await expect(divider).to_have_attribute("aria-valuenow", "380")
    await screen.say(page, "add milk")
    await expect(divider).to_have_attribute("aria-valuenow", "432")  # 30 % of the page
    await divider.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(divider).to_have_attribute("aria-valuenow", "456")
    assert await violations(page) == []
    box = await divider.bounding_box()
    assert box
    middle = box["x"] + box["width"] / 2
    await page.mouse.move(middle, 400)
    await page.mouse.down()
    await page.mouse.move(middle - 100, 410, steps=4)
    await page.mouse.up()
    await page.mouse.move(middle + 300, 410)
    await expect(divider).to_have_attribute("aria-valuenow", re.compile("^55[5-7]$"))
    width = await page.locator("#assistant").evaluate("one => one.offsetWidth")
    await page.reload()
    await expect(divider).to_have_attribute("aria-valuenow", str(width))
    for key, bound in (("Home", "aria-valuemin"), ("End", "aria-valuemax")):
        await divider.press(key)
        await expect(divider).to_have_attribute("aria-valuenow", str(await divider.get_attribute(bound)))
        assert await tasks(page).evaluate("one => one.clientWidth") >= 376
    await screen.button(page, "New conversation").click()
    await expect(divider).to_have_attribute("aria-valuenow", str(await divider.get_attribute("aria-valuemax")))

    await screen.button(page, "Hide the assistant").click()
    await expect(screen.message_box(page)).to_be_hidden()
    await expect(divider).to_be_hidden()
    await expect(screen.button(page, "Show the assistant")).to_be_focused()
    assert await tasks(page).locator(".tasks").evaluate("one => one.clientWidth") == 860
    await page.reload()
    await expect(tasks(page)).to_be_visible()
    await expect(screen.message_box(page)).to_be_hidden()
    assert await violations(page) == []
    await screen.side_bar(page).get_by_role("button", name="All conversations").click()
    await expect(screen.history(page)).to_be_visible()
    await screen.button(screen.history(page), "Close").click()
    await expect(screen.message_box(page)).to_be_visible()


async def test_drawer_keeps_the_focus_and_gives_it_back(open_page: OpenPage, violations: Violations) -> None:
    page = await open_page(pane="tasks", viewport={"width": 820, "height": 700})
    opener, drawer = screen.button(page, "Views and conversations"), screen.side_bar(page)
    await expect(tasks(page)).to_be_visible()
    await expect(drawer).to_be_hidden()
    await opener.press("Enter")
    await expect(drawer.get_by_role("link", name="Today")).to_be_focused()
    assert await violations(page) == []
    for _ in range(12):
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.matches('body, #side *')"), "the rest takes no focus"
    await screen.button(drawer, "Menu").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog", name="Menu")).to_be_hidden()
    await page.keyboard.press("Escape")
    await expect(drawer).to_be_hidden()
    await expect(opener).to_be_focused()
    await opener.click()
    await page.mouse.click(700, 300)
    await expect(drawer).to_be_hidden()
    await expect(opener).to_be_focused()
    await opener.click()
    await screen.button(drawer, "Close").click()
    await expect(drawer).to_be_hidden()
    await opener.click()
    await drawer.get_by_role("link", name="All").click()
    await expect(drawer).to_be_hidden()
    await expect(tasks(page).get_by_role("heading", name="All", exact=True)).to_be_attached()
    await opener.click()
    await page.set_viewport_size({"width": 1280, "height": 700})
    await expect(drawer).to_be_visible()
    await tasks(page).get_by_role("textbox", name="Add a task").click()  # the drawer holds nothing back any more


async def test_search_and_add_button_are_those_of_the_list(open_page: OpenPage, list_api: TaskApi) -> None:
    await list_api.add("buy milk", due="today")
    await list_api.add("call mum", due="today")
    page = await open_page(viewport=PHONE)
    await expect(screen.message_box(page)).to_be_visible()
    await screen.show_tasks(page)
    field = page.get_by_role("searchbox", name="Search tasks")
    await screen.button(page, "Search").click()
    await expect(field).to_be_focused()
    await field.fill("milk")
    await expect(task_list.titles(page)).to_have_text(["buy milk"])
    await page.get_by_role("link", name="Today", exact=True).click()
    await expect(task_list.titles(page)).to_have_text(["buy milk", "call mum"])
    await expect(field).to_have_value("")
    await task_list.see(page, "Done")
    await screen.button(page, "Add a task").click()
    await expect(task_list.adding(page)).to_be_focused()
    await expect(screen.button(page, "Add a task")).to_be_hidden()  # it would cover the list above a keyboard
    for width, height in ((640, 360), (320, 256)):  # 1,280 px at 200 and 400 %
        await page.set_viewport_size({"width": width, "height": height})
        await page.evaluate("document.activeElement.blur()")
        for name in ("Search", "Assistant", "Add a task"):
            await expect(screen.button(page, name)).to_be_in_viewport(ratio=1)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await task_list.adding(page).focus()


async def test_side_bar_names_views_labels_conversations_and_the_user(
    open_page: OpenPage, list_api: TaskApi, user: User, violations: Violations
) -> None:
    await list_api.add("old", due="2020-01-01")
    await list_api.add("milk", due="today", labels=["home"])
    await list_api.add("report", due="tomorrow", labels=["work", "home"])
    page = await open_page(viewport={"width": 1440, "height": 900})
    side = screen.side_bar(page)
    await expect(side.get_by_role("listitem")).to_have_text(
        ["Today2", "Upcoming1", "All3", "Done", "Deleted", "home2", "work1"]
    )
    await expect(side).to_contain_text(user.name)
    await side.get_by_role("link", name="home 2").click()
    await expect(task_list.titles(page)).to_have_text(["milk", "report"])
    await expect(side.locator("[aria-current]")).to_have_text(["home2"])
    await screen.say(page, "add bread #home")
    await expect(side.get_by_role("link", name="home 3")).to_be_visible()
    await expect(side.get_by_role("link", name="add bread #home")).to_have_attribute("aria-current", "page")
    await screen.button(page, "New conversation").click()
    await expect(side.locator("[aria-current]")).to_have_text(["home3"])
    await side.get_by_role("link", name="add bread #home").click()
    await expect(screen.questions(page)).to_have_text(["add bread #home"], use_inner_text=True)
    assert await violations(page) == []
    await side.get_by_role("link", name="Today").click()
    await expect(task_list.titles(page)).to_have_text(["old", "milk"])


async def test_landmarks_and_headings(open_page: OpenPage, violations: Violations) -> None:
    for width, height in ((1440, 900), (1280, 720), (820, 1100), (390, 844)):
        page = await open_page(pane="tasks", viewport={"width": width, "height": height}, reduced_motion="reduce")
        await expect(tasks(page)).to_be_visible()
        await task_list.loaded(page)
        await expect(page.get_by_role("heading", level=1)).to_have_text("To-do assistant")
        for role in ("banner", "main"):
            await expect(page.get_by_role(role)).to_have_count(1)
        await expect(page.get_by_role("complementary", name="Assistant")).to_have_count(0 if width < 700 else 1)
        assert await violations(page) == [], width
        moving = "[...document.querySelectorAll('*')].filter(one => getComputedStyle(one).transitionDuration !== '0s')"
        assert await page.evaluate(f"{moving}.length") == 0


async def test_printed_is_what_is_open(open_page: OpenPage, list_api: TaskApi) -> None:
    await list_api.add("milk", due="today")
    await list_api.add_many([f"Task {number}" for number in range(30)], due="today")
    page = await open_page(viewport={"width": 1280, "height": 720})
    await expect(task_list.titles(page)).to_have_count(31)
    await page.emulate_media(media="print")
    assert await page.evaluate("document.documentElement.scrollHeight") > 900, "all of the list"
    await expect(task_list.title_of(page, "milk")).to_be_visible()
    for part in (screen.message_box(page), screen.side_bar(page), screen.log(page), screen.button(page, "Add a task")):
        await expect(part).to_be_hidden()
    await page.emulate_media(media="screen")
    page = await open_page(viewport=PHONE)
    await screen.say(page, "hello")
    await page.emulate_media(media="print")
    await expect(screen.questions(page)).to_be_visible()
    await expect(task_list.title_of(page, "milk")).to_be_hidden()


async def test_all_tasks_of_the_view_are_printed(open_page: OpenPage, list_api: TaskApi) -> None:
    await list_api.add_many([f"task {number}" for number in range(90)], due="today")
    page = await open_page(viewport={"width": 1280, "height": 720})
    await expect(task_list.title_of(page, "task 0")).to_be_visible()
    await expect(task_list.title_of(page, "task 89")).to_have_count(0)
    await page.evaluate("""() => addEventListener("beforeprint", () => {
        globalThis.printed = document.querySelectorAll("[data-row]").length;
    })""")
    await page.pdf()
    assert await page.evaluate("globalThis.printed") == 90
    await expect(task_list.title_of(page, "task 89")).to_have_count(0)
    await page.emulate_media(media="print")
    for part in (
        task_list.adding(page),
        task_list.region(page).get_by_role("combobox"),
        screen.button(page, "More actions: task 0"),
    ):
        await expect(part).to_be_hidden()


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
    await expect(screen.button(page, "Notifications")).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Calendar")).to_be_visible()


async def test_side_bar_says_that_a_model_writes_its_calls_as_text(open_page: OpenPage, violations: Violations) -> None:
    async def limit(route: Route) -> None:
        html = await (await route.fetch()).text()
        await route.fulfill(
            body=re.sub('"model": {.*?}', f'"model": {json.dumps(MODEL)}', html), content_type="text/html"
        )

    page = await open_page(prepare=lambda page: page.route(lambda url: url.endswith("/"), limit), viewport=PHONE)
    badge = screen.button(page, "Limited · qwen3:0.6b")
    await screen.open_side_bar(page)
    await badge.click()
    about = page.get_by_role("dialog", name="About this assistant")
    await expect(about).to_contain_text("it writes its calls as text. Answers can be slower and less exact.")
    for width in (320, PHONE["width"], 1280):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await violations(page) == [], width
        await expect(badge).to_be_in_viewport(ratio=1)


async def test_page_is_small_contacts_no_other_server_and_can_be_installed(open_page: OpenPage) -> None:
    urls: list[str] = []

    async def prepare(page: Page) -> None:
        page.on("request", lambda request: urls.append(request.url))

    page = await open_page(prepare=prepare)
    await expect(screen.message_box(page)).to_be_editable()
    files: dict[str, int] = await page.evaluate(LOADED)
    assert 20_000 < sum(files.values()) < 152_000, "list and assistant; the list alone is in test_loading.py"
    await screen.say(page, "add milk")
    more = (await page.evaluate(LOADED)).keys() - files.keys()
    assert {"chat/log.js", "vendor/marked/marked.esm.js"} <= more, "what draws messages is loaded with the first"
    assert {url.split("/")[2].split(":")[0] for url in urls} == {"127.0.0.1"}

    session = await page.context.new_cdp_session(page)
    found = await session.send("Page.getAppManifest")
    assert found["errors"] == []
    assert found["url"].endswith("/manifest.json")
    manifest = await (await page.request.get("/manifest.json")).json()
    assert (manifest["start_url"], manifest["display"]) == ("./", "standalone")
    sizes = []
    for icon in manifest["icons"]:
        response = await page.request.get(f"/{icon['src']}")
        assert response.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", (await response.body())[16:24])
            assert icon["sizes"] == f"{width}x{height}"
            sizes.append(width)
    assert sorted(sizes) == [192, 512, 512]
