"""The server is replaced by one of another version, while the page of the last one is open or stored."""

import asyncio
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, ServiceWorkers
from tests.browser.task_list import TaskApi
from tests.browser.test_offline import REGISTERED, STORED
from tests.conftest import ROOT
from tests.support.stack import STACKS, Services, Stack, run_stack
from tests.waiting import until

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]

READY = "A new version is ready."
VERSIONS = """async () => (await caches.keys()).map((name) => name.split(" ").at(-1))"""
LOOK_FOR_NEW_VERSION = """async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    await registration.update().catch(() => {}); // which joins a look that began before the release
    const problem = await registration.update().then(() => null, ({ name }) => name);
    while (registration.installing) await new Promise((resolve) => setTimeout(resolve, 20));
    return problem;
}"""
WORKER = "service-worker.js"
NAME = 'name: "To-do assistant"'


@pytest.fixture
def service_workers() -> ServiceWorkers:
    return "allow"


@pytest.fixture
def stack(services: Services, tmp_path: Path) -> Iterator[Stack]:
    """A stack of its own, whose server is replaced."""
    with run_stack(services, STACKS["page"], tmp_path) as stack:
        yield stack


class Releases:
    """Replaces the server by one whose page has other files."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._server = stack.backends[0]
        self._folder = folder

    def release(self, name: str, *changes: tuple[str, str, str], without: str | None = None) -> None:
        """Each change is of a file, from a text to another one; the page calls itself by the name."""
        folder = self._folder / name
        folder.mkdir()
        for path in ROOT.iterdir():
            if path.name not in ("web", ".env", ".data"):
                (folder / path.name).symlink_to(path)
        shutil.copytree(ROOT / "web", folder / "web")
        for file, old, new in (("texts.js", NAME, f'name: "{name}"'), *changes):
            path = folder / "web" / file
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        if without:
            (folder / "web" / without).unlink()
        self._replace(folder)

    def go_back(self) -> None:
        """To the version with which the test began."""
        self._replace(ROOT)

    def _replace(self, folder: Path) -> None:
        self._server.end()
        self._server.directory = folder
        self._server.start()
        self._server.wait_until_ready()

    @contextmanager
    def broken(self) -> Iterator[None]:
        """There is an error for every request, as of a proxy without a server behind it."""
        self._server.end()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", self._server.port), AlwaysFails)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
        server.server_close()
        self._server.start()
        self._server.wait_until_ready()


class AlwaysFails(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(500)
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Writes nothing."""


@pytest.fixture
def releases(stack: Stack, tmp_path: Path) -> Releases:
    return Releases(stack, tmp_path)


async def wait_for_worker(page: Page) -> None:
    await page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    await screen.until(page, "navigator.serviceWorker.controller")


async def expect_typed(page: Page) -> None:
    """What was typed is still in its fields."""
    await expect(task_list.adding(page)).to_have_value("half a task")
    await expect(page.get_by_role("textbox", name="Description")).to_have_value("two litres")
    await expect(screen.message_box(page)).to_have_value("half a message")


async def see_keys(page: Page) -> None:
    """Opens what is loaded only then."""
    await page.get_by_role("heading", name="Today", exact=True).click()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys", exact=True)).to_be_visible()
    await page.keyboard.press("Escape")


async def test_new_version_takes_over_at_the_next_visit_and_nothing_typed_is_lost(
    open_list: OpenPage, tasks: TaskApi, releases: Releases
) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    await wait_for_worker(page)
    (first,) = await page.evaluate(VERSIONS)
    await task_list.adding(page).fill("half a task")
    await screen.message_box(page).fill("half a message")
    await task_list.title_of(page, "milk").click()
    await page.get_by_role("textbox", name="Description").fill("two litres")

    releases.release("Second")
    await task_list.tick(page, "bread").click()
    await tasks.until("done", ["bread"])
    await see_keys(page)
    await expect(page.get_by_text(READY)).to_have_count(0)
    await page.reload()
    await expect(page.get_by_text(READY)).to_be_visible()
    await expect(page).to_have_title(re.compile("· To-do assistant$"))
    await expect_typed(page)
    await screen.button(page, "Reload").click()
    await expect(page).to_have_title(re.compile("· Second$"))
    await expect_typed(page)
    assert (await page.evaluate(VERSIONS))[:-1] == [first]

    releases.go_back()
    await page.reload()
    await expect(page.get_by_text(READY)).to_be_visible()
    assert (await page.evaluate(VERSIONS))[1:] == [first]
    releases.release("Third")
    await page.reload()
    await expect(page.get_by_text(READY)).to_be_visible()
    # Older ones are deleted after the new worker has taken over. Open tabs are of the first version, not of the second.
    await until(lambda: page.evaluate(f"({VERSIONS})().then((all) => all.length === 2 && all[0] === '{first}')"))
    await page.reload()
    await expect(page).to_have_title(re.compile("· Third$"))
    await expect_typed(page)
    await expect(page.get_by_text(READY)).to_have_count(0)

    await screen.from_menu(page, "Sign out")
    await screen.button(page.get_by_role("dialog", name="Sign out?"), "Discard").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    await screen.until(page, f"{REGISTERED}.then((count) => count === 0)")
    assert await page.evaluate(STORED) == []


async def test_new_version_that_takes_over_while_the_page_is_opening_is_announced(
    open_list: OpenPage, releases: Releases
) -> None:
    page = await open_list()
    await wait_for_worker(page)
    releases.release("Second")
    taken_over = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await taken_over.wait()
        await route.continue_()

    await page.route("**/tasks?*", answer_late)
    await page.add_init_script(
        "navigator.serviceWorker.addEventListener('controllerchange', () => { window.replaced = true; })"
    )
    await page.reload()
    await screen.until(page, "window.replaced")
    taken_over.set()
    await expect(page.get_by_text(READY)).to_be_visible()


async def test_broken_new_version_leaves_the_old_one_in_place(
    open_list: OpenPage, tasks: TaskApi, releases: Releases
) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await wait_for_worker(page)
    stored: list[str] = await page.evaluate(STORED)
    await task_list.adding(page).fill("half a task")

    async def visit() -> str | None:
        """Returns the problem of the browser with the new version."""
        await page.reload()
        await expect(page).to_have_title(re.compile("· To-do assistant$"))
        await expect(task_list.title_of(page, "milk")).to_be_visible()
        await expect(task_list.adding(page)).to_have_value("half a task")
        problem = await page.evaluate(LOOK_FOR_NEW_VERSION)
        await see_keys(page)
        await expect(page.get_by_text(READY)).to_have_count(0)
        assert await page.evaluate("navigator.serviceWorker.controller !== null")
        assert sorted(await page.evaluate(STORED)) == sorted(stored)
        return problem

    releases.release("Fails at once", (WORKER, "// @ts-check", "throw new Error();"))
    assert await visit() == "TypeError"
    releases.release("Is no script", (WORKER, "// @ts-check", "<html>"))
    assert await visit() == "TypeError"
    releases.release("Lacks a file", (WORKER, "[/* FILES */]", '[/* FILES */, "assets/0/missing.js"]'))
    assert await visit() is None
    with releases.broken():
        assert await visit() == "TypeError"

    releases.release("Works")
    await page.reload()
    await expect(page.get_by_text(READY)).to_be_visible()
    await page.reload()
    await expect(page).to_have_title(re.compile("· Works$"))
    await expect(task_list.adding(page)).to_have_value("half a task")


async def test_new_version_that_cannot_be_installed_leaves_both_versions_stored(
    open_list: OpenPage, releases: Releases
) -> None:
    page = await open_list()
    await wait_for_worker(page)
    releases.release("Second")
    await page.reload()
    await expect(page.get_by_text(READY)).to_be_visible()
    stored: list[str] = await page.evaluate(VERSIONS)
    assert len(stored) == 2, "of the open page, and of the next visit"
    releases.release("Lacks a file", (WORKER, "[/* FILES */]", '[/* FILES */, "assets/0/missing.js"]'))
    assert await page.evaluate(LOOK_FOR_NEW_VERSION) is None
    assert await page.evaluate(VERSIONS) == stored


async def test_tab_without_worker_loads_files_of_the_next_version_and_says_which_are_gone(
    open_list: OpenPage, releases: Releases
) -> None:
    page = await open_list(service_workers="block")
    await task_list.adding(page).fill("half a task")
    releases.release("Second", without="memory.js")
    await see_keys(page)
    await screen.from_menu(page, "Memory")
    await expect(
        page.get_by_text("This cannot be opened: the server cannot be reached, or has a new version.")
    ).to_be_visible()
    await expect(task_list.adding(page)).to_have_value("half a task")
