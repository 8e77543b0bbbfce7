"""A person's tasks behind the page, and the page with its list."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio
from playwright.async_api import Page

from tests.processes import ServiceProcess
from tests.web.conftest import OpenPage
from tests.web.tasks import listed
from tests.web.tasks.listed import Stored

OpenList = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def stored(site: ServiceProcess, database_url: str) -> AsyncIterator[Stored]:
    """What is stored for the page's person, changed and read as another browser of theirs would."""
    async with Stored(site.url) as stored:
        yield stored


@pytest_asyncio.fixture(loop_scope="session")
async def open_list(open_page: OpenPage) -> OpenList:
    """Opens the page, and waits until its list is read."""

    async def open_it(**options: Any) -> Page:
        page = await open_page(pane="tasks", timezone_id=listed.ZONE, **options)
        await listed.rows(page).and_(page.locator("[aria-busy=false]")).wait_for()
        return page

    return open_it
