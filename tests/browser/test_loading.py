"""How the page loads: what it loads first, from where, and how fast over a slow connection."""

import asyncio
import statistics
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, ServiceWorkers
from tests.browser.task_list import TaskApi

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

VISITS = 5
MODULES = 45  # of the first screen
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50 * 1024, "uploadThroughput": 50 * 1024}
OFFLINE = {**SLOW, "offline": True}
FAST = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
# When the list shows a task and its field takes input.
NOTE_WHEN_USABLE = """new MutationObserver((_, observer) => {
    if (["[data-part=new]", "[data-row]"].some((part) => !document.querySelector(`todo-tasks ${part}`))) return;
    globalThis.usableAt = performance.now();
    observer.disconnect();
}).observe(document, { childList: true, subtree: true })"""
SHOWN_AT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
LOADED = r"""() => performance.getEntriesByType("resource")
    .filter(({ name, startTime }) => /\/assets\//.test(name) && startTime < usableAt)
    .map(({ name }) => new URL(name).pathname.replace(/^\/assets\/[0-9a-f]+\//, ""))"""
PRELOADED = r"""() => [...document.querySelectorAll("link[rel=modulepreload]")]
    .map(({ href }) => new URL(href).pathname.replace(/^\/assets\/[0-9a-f]+\//, ""))"""
SIZE = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .filter(({ startTime }) => startTime < usableAt)
    .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""


REQUESTED = """() => performance.getEntriesByType("resource").filter(({ startTime }) => startTime < usableAt)
    .map(({ name }) => new URL(name)).filter(({ pathname }) => !/^\\/assets/.test(pathname))
    .map(({ pathname, search }) => pathname + search)"""


@pytest.fixture
def service_workers() -> ServiceWorkers:
    return "allow"


async def note_when_usable(page: Page) -> None:
    await page.add_init_script(NOTE_WHEN_USABLE)


async def open_list(open_page: OpenPage) -> Page:
    page = await open_page(prepare=note_when_usable, pane="tasks")
    await screen.until(page, "globalThis.usableAt")
    return page


async def test_first_screen_is_small_and_preloads_what_it_runs(open_page: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("Water the plants", due="today")
    page = await open_list(open_page)
    loaded: list[str] = await page.evaluate(LOADED)
    preloaded: list[str] = await page.evaluate(PRELOADED)
    assert {name for name in {*loaded} - {*preloaded} if not name.endswith(".css")} == {"early.js"}
    assert {*preloaded} <= {*loaded}
    assert len(preloaded) <= MODULES, "each six take a round trip"
    assert [name for name in loaded if name.startswith("chat/element")] == [], "the assistant is loaded after the list"
    requested = [path for path in await page.evaluate(REQUESTED) if not path.startswith("/tasks/")]
    assert requested == ["/session", "/tasks?view=today&sort=date&limit=100"], "each once, before the modules ask"
    assert 20_000 < await page.evaluate(SIZE) < 105_000
    await expect(screen.message_box(page)).to_be_editable()


async def test_list_takes_texts_and_no_keys_until_its_controls_are_loaded(open_page: OpenPage, tasks: TaskApi) -> None:
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    async def prepare(page: Page) -> None:
        await page.route("**/tasks/controls.js", hold)

    await tasks.add("Water the plants", due="today")
    page = await open_page(prepare=prepare, pane="tasks")
    await task_list.adding(page).fill("Buy milk")
    await task_list.adding(page).press("Enter")
    await expect(task_list.titles(page)).to_have_text(["Water the plants", "Buy milk"])
    await task_list.title_of(page, "Water the plants").click()
    for key in ("e", "1", "Delete"):
        await page.keyboard.press(key)
    released.set()
    await expect(task_list.region(page).get_by_role("textbox", name="Title")).to_be_focused()
    assert [(task["title"], task["priority"]) for task in await tasks.view()] == [
        ("Water the plants", None),
        ("Buy milk", None),
    ]


UNREACHABLE = "The assistant cannot be loaded: the server does not respond."


async def test_assistant_is_loaded_again_until_the_server_answers(open_page: OpenPage) -> None:
    async def prepare(page: Page) -> None:
        await page.route("**/chat/element.js", lambda route: route.abort())
        await page.route("**/http.js", lost_as_probe)

    async def lost_as_probe(route: Route) -> None:
        await (route.abort() if route.request.resource_type == "fetch" else route.continue_())

    page = await open_page(prepare=prepare, pane="tasks")
    await expect(page.get_by_text(UNREACHABLE)).to_be_attached()
    await page.unroute_all()
    await expect(screen.message_box(page)).to_be_editable()


async def test_page_is_reloaded_for_an_assistant_that_a_browser_does_not_load_again(open_page: OpenPage) -> None:
    """Chromium never again imports a module that it failed to load once."""

    async def prepare(page: Page) -> None:
        await page.route("**/chat/element.js", lambda route: route.abort(), times=1)

    page = await open_page(prepare=prepare, pane="tasks")
    await expect(page.get_by_text(UNREACHABLE)).to_be_attached()
    await task_list.adding(page).fill("Buy milk")
    await page.get_by_role("button", name="Reload").evaluate("button => button.click()")
    await expect(screen.message_box(page)).to_be_editable()
    await expect(task_list.adding(page)).to_have_value("Buy milk")


async def visit(context: BrowserContext, conditions: dict[str, Any]) -> tuple[float, float]:
    """Seconds until something is shown, and until the list is usable."""
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", conditions)
    await page.goto("/", wait_until="commit")
    await screen.until(page, "globalThis.usableAt")
    times = await page.evaluate(SHOWN_AT) / 1000, await page.evaluate("usableAt") / 1000
    await session.send("Network.emulateNetworkConditions", FAST)
    await screen.until(page, "navigator.serviceWorker.controller")
    await page.close()
    return times


@pytest.mark.extended
@pytest.mark.long(seconds=120)
async def test_loading_over_a_slow_connection(open_page: OpenPage, tasks: TaskApi) -> None:
    for number in range(20):
        await tasks.add(f"Task {number}", due="today")
    times: dict[str, list[tuple[float, float]]] = {"cold": [], "again": [], "offline": []}
    for _ in range(VISITS):
        blank = await open_page("/health", pane="tasks")
        context = blank.context
        await context.add_init_script(NOTE_WHEN_USABLE)
        await blank.close()
        times["cold"].append(await visit(context, SLOW))
        times["again"].append(await visit(context, SLOW))
        times["offline"].append(await visit(context, OFFLINE))
    for name, each in times.items():
        shown, usable = (statistics.median(one) for one in zip(*each, strict=True))
        print(f"{name}: shown after {shown:.1f} s, usable after {usable:.1f} s")  # noqa: T201
