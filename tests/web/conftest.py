"""The page in a real browser, on real services."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.conftest import new_database
from tests.logins import as_service
from tests.node_packages import installed
from tests.processes import ServiceProcess, running
from tests.scripted_model import ScriptedModel
from tests.tokens import MCP_TOKEN_SECRET
from tests.web import screen
from tests.web.draw_icons import chromium

BUILT_IN = "/?ui=built-in"
expect.set_options(timeout=30_000)  # a busy machine takes longer than the 5 s of the default
SETTLED = """() => new Promise(requestAnimationFrame)
    .then(() => document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished))
    .then(Promise.allSettled.bind(Promise))
    .then(() => null)"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    return installed(Path(__file__).resolve().parent)


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="session")
def session_database_url(server_url: str, template: str) -> Iterator[str]:
    """Of the page's own: its backend ends stale runs for as long as the tests go on, those of other rooms, too."""
    with new_database(server_url, template) as (_, url):
        yield as_service(url)


@pytest.fixture(scope="session")
def offline_model(logs: Path) -> Iterator[ServiceProcess]:
    service = ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", logs / "offline.log")
    yield from running(service, "/health")


@pytest.fixture(scope="session")
def tool_server(logs: Path, session_database_url: str) -> Iterator[ServiceProcess]:
    service = ServiceProcess(
        "mcp_server",
        "MCP_PORT",
        logs / "mcp.log",
        DATABASE_URL=session_database_url,
        MCP_TOKEN_SECRET=MCP_TOKEN_SECRET,
    )
    service.environment["MCP_URL"] = f"{service.url}/mcp"
    yield from running(service)


@pytest.fixture(scope="session")
def new_backend(
    logs: Path, session_database_url: str, tool_server: ServiceProcess, offline_model: ServiceProcess
) -> Callable[..., ServiceProcess]:
    """Makes a backend with more settings, not started yet."""

    def make(**settings: str) -> ServiceProcess:
        return ServiceProcess(
            "backend",
            "BACKEND_PORT",
            logs / "backend.log",
            DATABASE_URL=session_database_url,
            MCP_URL=f"{tool_server.url}/mcp",
            LLM_PROVIDER="offline",
            MCP_TOKEN_SECRET=MCP_TOKEN_SECRET,
            LLM_BASE_URL=f"{offline_model.url}/v1",
            HEARTBEAT_SECONDS="0.2",
            LEASE_SECONDS="2",
            **settings,
        )

    return make


@pytest.fixture(scope="session")
def site(new_backend: Callable[..., ServiceProcess]) -> Iterator[ServiceProcess]:
    """The backend whose page is tested; a test that stops it starts it again."""
    yield from running(new_backend())


@pytest_asyncio.fixture(loop_scope="session")
async def model(offline_model: ServiceProcess) -> AsyncIterator[ScriptedModel]:
    client = ScriptedModel(offline_model.url)
    await client.reset()
    yield client
    await client.reset()
    await client.aclose()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        await browser.close()


OpenPage = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser, site: ServiceProcess, database_url: str) -> AsyncIterator[OpenPage]:
    """Opens the page as a new person's browser would; no script may fail in it, and no policy be violated."""
    problems: list[str] = []
    tolerated: list[str] = []
    contexts = []

    async def open_it(
        path: str = BUILT_IN,
        *,
        base: str = site.url,
        prepare: Any = None,
        tolerate: str = "",
        pane: str = "chat",
        **options: Any,
    ) -> Page:
        tolerated.append(tolerate)
        context = await browser.new_context(base_url=base, **options)
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = await context.new_page()
        screen.watch(page, problems)
        await page.add_init_script(f"try {{ localStorage['todo.pane'] ??= '{pane}' }} catch {{}}")  # on a small screen
        if prepare is not None:
            await prepare(page)
        await page.goto(path)
        return page

    yield open_it
    for context in contexts:
        await context.close()
    assert [problem for problem in problems if problem not in tolerated] == []


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
        for theme in ("dark", "light"):
            await page.emulate_media(color_scheme=theme)
            await page.evaluate(SETTLED)
            result = await page.evaluate("tags => axe.run({runOnly: {type: 'tag', values: tags}})", WCAG)
            assert len(result["passes"]) > 5
            for one in result["violations"]:
                found += [f"{theme}: {one['id']}: {node['html']}" for node in one["nodes"]]
        return found

    return find
