"""The page's list as a user sees it, and the tasks as another program of theirs does."""

import asyncio
import re
from datetime import date, datetime, timedelta
from typing import Any

from fastmcp import Client
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.support.stack import NOW
from tests.support.users import User
from tests.waiting import until

ZONE = "UTC"
API = re.compile(r"^\w+://[^/]+/tasks(/|\?|$)")
"""The addresses of what the list asks for."""
Json = dict[str, Any]
TOO_MANY_REQUESTS = 429
_PAUSE_SECONDS = 0.25  # page and test share the request limit of the user
_MAX_ADDED = 51  # tasks of one call


def today(later: int = 0) -> date:
    """By the services' clock, in the page's zone."""
    return datetime.fromisoformat(NOW).date() + timedelta(days=later)


class TaskApi:
    """A user's tasks over HTTP."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._http = user.runs.http

    async def add(self, title: str, **fields: Any) -> int:
        return (await self._send("POST", "/tasks", json={"title": title, **fields}))["tasks"][0]["id"]

    async def add_many(self, titles: list[str], **fields: Any) -> None:
        """In few calls, as an MCP client."""
        url = f"{self._user.stack.services.mcp.url}/mcp"
        async with Client(url, auth=self._user.mcp_token) as client:
            for start in range(0, len(titles), _MAX_ADDED):
                first, *also = titles[start : start + _MAX_ADDED]
                await client.call_tool("add_task", {"title": first, "also": also, **fields})

    async def change(self, task_id: int, **fields: Any) -> None:
        await self._send("PATCH", f"/tasks/{task_id}", json=fields)

    async def delete(self, task_id: int) -> None:
        await self._send("DELETE", f"/tasks/{task_id}")

    async def view(self, view: str = "all") -> list[Json]:
        await asyncio.sleep(_PAUSE_SECONDS)
        return (await self._send("GET", f"/tasks?view={view}"))["tasks"]

    async def titles(self, view: str = "all") -> list[str]:
        return [task["title"] for task in await self.view(view)]

    async def task(self, title: str, view: str = "all") -> Json:
        return next(task for task in await self.view(view) if task["title"] == title)

    async def until(self, view: str, titles: list[str]) -> None:
        """Waits until these are in the view, in this order."""

        async def are_there() -> bool:
            return await self.titles(view) == titles

        await until(are_there)

    async def _send(self, method: str, path: str, **options: Any) -> Json:
        response = await self._http.request(method, path, **options)
        while response.status_code == TOO_MANY_REQUESTS:  # page and test share the limit of the user
            await asyncio.sleep(float(response.headers["Retry-After"]))
            response = await self._http.request(method, path, **options)
        assert response.is_success, response.text
        return response.json()


def region(page: Page) -> Locator:
    return page.get_by_role("region", name="Tasks")


def rows(page: Page) -> Locator:
    return region(page).locator(".rows")


def row(page: Page, title: str) -> Locator:
    """The row of a task; one whose title contains this, too."""
    return rows(page).get_by_role("listitem").filter(has_text=title)


def title_of(page: Page, title: str) -> Locator:
    return row(page, title).get_by_role("button", name=title, exact=True)


async def open_menu(page: Page, title: str) -> Locator:
    """The menu of a task's row."""
    await row(page, title).hover()
    await row(page, title).get_by_role("button", name=f"More actions: {title}", exact=True).click()
    return page.get_by_role("dialog", name=title, exact=True)


def tick(page: Page, title: str) -> Locator:
    return rows(page).get_by_role("checkbox", name=f"Done: {title}", exact=True)


def box(page: Page, title: str) -> Locator:
    """By which it is selected."""
    return rows(page).get_by_role("checkbox", name=f"Select {title}", exact=True)


def titles(page: Page) -> Locator:
    return rows(page).get_by_role("listitem").locator(".title")


def adding(page: Page) -> Locator:
    return region(page).get_by_role("textbox", name="Add a task")


def understood(page: Page) -> Locator:
    return region(page).locator("#understood")


def notice(page: Page) -> Locator:
    return region(page).locator(".notice-bar")


def section(page: Page, name: str) -> Locator:
    return rows(page).get_by_role("region", name=name)


async def loaded(page: Page) -> None:
    """Waits for the tasks, and for the dialogs and keys of the list, which are loaded after them."""
    await rows(page).and_(page.locator("[aria-busy=false]")).wait_for()
    await region(page).locator("dialog.move").wait_for(state="attached")


async def see(page: Page, view: str) -> None:
    """One of the views, when it is read."""
    await screen.open_side_bar(page)
    link = page.locator(f"#side [data-view={view.lower()}]")
    await link.click()
    await expect(link).to_have_attribute("aria-current", "page")  # until then, the last view is shown as read
    await loaded(page)
