"""The page's list as a person sees it, and their tasks as another program of theirs does."""

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from types import TracebackType
from typing import Any, Self

import httpx2
from playwright.async_api import Locator, Page

ZONE = "UTC"
DOOR = re.compile(r"^\w+://[^/]+/tasks(/|\?|$)")
"""The addresses of what the list asks for."""
Json = dict[str, Any]


def today(later: int = 0) -> date:
    """By the clock of the person, whose zone is `ZONE`."""
    return datetime.now(UTC).date() + timedelta(days=later)


class Stored:
    """The backend's door for tasks."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.AsyncClient(
            base_url=url, headers={"X-Time-Zone": ZONE}, timeout=30, trust_env=False, verify=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def add(self, title: str, **fields: Any) -> int:
        return (await self._ask("POST", "/tasks", json={"title": title, **fields}))["tasks"][0]["id"]

    async def change(self, task_id: int, **fields: Any) -> None:
        await self._ask("PATCH", f"/tasks/{task_id}", json=fields)

    async def delete(self, task_id: int) -> None:
        await self._ask("DELETE", f"/tasks/{task_id}")

    async def view(self, view: str = "all") -> list[Json]:
        return (await self._ask("GET", f"/tasks?view={view}"))["tasks"]

    async def titles(self, view: str = "all") -> list[str]:
        return [task["title"] for task in await self.view(view)]

    async def task(self, title: str, view: str = "all") -> Json:
        return next(task for task in await self.view(view) if task["title"] == title)

    async def until(self, view: str, titles: list[str]) -> None:
        """Wait until these are in the view, in this order."""
        async with asyncio.timeout(10):
            while await self.titles(view) != titles:
                await asyncio.sleep(0.05)

    async def _ask(self, method: str, path: str, **options: Any) -> Json:
        response = await self._client.request(method, path, **options)
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


async def see(page: Page, view: str) -> None:
    """One of the views, when it is read."""
    await region(page).get_by_role("navigation", name="Views").get_by_role("button", name=view, exact=True).click()
    await rows(page).and_(page.locator("[aria-busy=false]")).wait_for()
