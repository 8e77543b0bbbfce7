"""The page in a real browser, on running services; each test has a user and a browser context of its own."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.browser import screen, task_list
from tests.browser.draw_icons import chromium
from tests.browser.task_list import TaskApi
from tests.node_packages import install_packages
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser, new_users
from tests.support.stack import CLOCK, Stack
from tests.support.users import User

PAGE = "/"
NOWHERE = "https://nowhere.invalid/"
expect.set_options(timeout=120_000)  # a busy machine takes longer than the 5 s of the default
KEEP_ZONE = """try {
    localStorage["todo.zone-kept"] = new Intl.DateTimeFormat().resolvedOptions().timeZone;
} catch {}"""
SETTLED = """() => new Promise(requestAnimationFrame)
    .then(() => document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished))
    .then(Promise.allSettled.bind(Promise))
    .then(() => null)"""
CHECKED: dict[Literal["dark", "light"], dict[str, Any]] = {
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},  # all that a theme can change
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]},
}
STRUCTURE = ("heading-order", "region", "landmark-unique", "landmark-main-is-top-level", "landmark-banner-is-top-level")
"""Rules of axe about landmarks and headings, which belong to no level of WCAG."""
FIND_VIOLATIONS = """([runOnly, rules]) => axe.run({ runOnly, rules, resultTypes: ["violations"], selectors: false })
    .then(({ passes, incomplete, violations }) =>
        ({ checked: [...passes, ...incomplete].map(({ id }) => id), violations }))"""


@pytest.fixture(scope="session")
def node_modules() -> Path:
    return install_packages(Path(__file__).resolve().parent)


@pytest.fixture
def stack_name() -> str:
    return "page"


@pytest_asyncio.fixture(loop_scope="session")
async def model(stack: Stack) -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(stack.services.model.url) as model:
        yield model


@pytest_asyncio.fixture(loop_scope="session")
async def new_user(stack: Stack) -> AsyncIterator[NewUser]:
    async with new_users(stack) as make:
        yield make


@pytest_asyncio.fixture(loop_scope="session")
async def user(new_user: NewUser) -> User:
    """Whom the page is opened for."""
    return new_user()


@pytest.fixture
def tasks(user: User) -> TaskApi:
    """The tasks of the page's user, read and changed as another program of theirs would."""
    return TaskApi(user)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        await browser.close()


OpenPage = Callable[..., Awaitable[Page]]
ServiceWorkers = Literal["allow", "block"]


@pytest.fixture
def service_workers() -> ServiceWorkers:
    """`block`, because each worker loads all files of the page; tests of what it does allow it."""
    return "block"


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(
    browser: Browser, stack: Stack, user: User, model: ScriptedModel, service_workers: ServiceWorkers
) -> AsyncIterator[OpenPage]:
    """Opens the page in a new browser context; no script may fail in it, and no policy be violated."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    async def open_it(
        path: str = PAGE,
        *,
        signed_in: bool = True,
        asks_zone: bool = False,
        prepare: Any = None,
        pane: str = "chat",
        **options: Any,
    ) -> Page:
        context = await browser.new_context(base_url=stack.url, **{"service_workers": service_workers, **options})
        contexts.append(context)
        # A page's first route, and the removal of its last one, would lose the requests that are going on just then.
        await context.route(NOWHERE, lambda route: route.abort())
        await context.add_init_script(clock_from_now())
        context.set_default_timeout(120_000)
        if signed_in:
            await sign_in(context, user)
        page = await context.new_page()
        screen.watch(page, problems)
        await page.add_init_script(f"try {{ localStorage['todo.pane'] ??= '{pane}' }} catch {{}}")  # on a small screen
        if not asks_zone:  # as if the user had kept the stored zone before
            await page.add_init_script(KEEP_ZONE)
        if prepare is not None:
            await prepare(page)
        await page.goto(path)
        return page

    yield open_it
    for context in contexts:
        await context.close()
    assert problems == []


def clock_from_now() -> str:
    """A script that gives the page the services' clock, whatever day it is."""
    ahead = round(float(CLOCK["TEST_CLOCK_OFFSET_SECONDS"]) * 1000)
    return f"""{{
        const Real = Date;
        globalThis.Date = class extends Real {{
            constructor(...given) {{ if (given.length) super(...given); else super(Real.now() + ({ahead})); }}
            static now() {{ return Real.now() + ({ahead}); }}
        }};
    }}"""


async def sign_in(context: BrowserContext, user: User) -> None:
    """Exchanges the user's token for a session cookie, as the page does."""
    response = await context.request.post("/session", headers={"Authorization": f"Bearer {user.token}"})
    assert response.ok, await response.text()


@pytest_asyncio.fixture(loop_scope="session")
async def open_list(open_page: OpenPage) -> OpenPage:
    """Opens the page, and waits until its list is loaded."""

    async def open_it(**options: Any) -> Page:
        page = await open_page(pane="tasks", timezone_id=task_list.ZONE, **options)
        await task_list.loaded(page)
        return page

    return open_it


@asynccontextmanager
async def without_server(stack: Stack) -> AsyncIterator[None]:
    stack.backends[0].end(signal.SIGKILL)
    try:
        yield
    finally:
        await asyncio.to_thread(stack.ensure_running)


Violations = Callable[[Page], Awaitable[list[str]]]


@pytest_asyncio.fixture(loop_scope="session")
async def violations(node_modules: Path) -> Violations:
    """What axe-core finds in the page as it is now, in both themes; it leaves the light one."""
    script = (node_modules / "axe-core" / "axe.min.js").read_text()

    async def find(page: Page) -> list[str]:
        if not await page.evaluate("'axe' in window"):
            # Evaluated by the debugger, as the page's own policy lets no foreign script in.
            await page.evaluate(script)
        found: list[str] = []
        for theme, checked in CHECKED.items():
            await page.emulate_media(color_scheme=theme)
            await page.evaluate(SETTLED)
            rules = {rule: {"enabled": True} for rule in STRUCTURE} if theme == "light" else {}
            result = await page.evaluate(FIND_VIOLATIONS, [checked, rules])
            assert "color-contrast" in result["checked"]
            assert theme == "dark" or len(result["checked"]) > 5
            for one in result["violations"]:
                found += [f"{theme}: {one['id']}: {node['html']}" for node in one["nodes"]]
        return found

    return find
