"""What a user sees and does on the page."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Locator, Page, Route, expect

from tests import waiting

LOST_REQUESTS = ("Failed to load resource", "An unknown error occurred when fetching the script")
"""What browsers say of a lost connection, of a page's request and of a service worker's."""
LOST = "Connection lost. Reconnecting…"


NOT_OF_THE_CHAT = re.compile(r"^\w+://[^/]+/(?!assets/|chatkit$)")


@asynccontextmanager
async def only_the_chat(page: Page) -> AsyncIterator[None]:
    """Holds back all other requests, one of which could be the first to find out that the session is over."""
    await page.route(NOT_OF_THE_CHAT, lambda _: None)
    yield
    await page.unroute_all(behavior="ignoreErrors")


def watch(page: Page, problems: list[str]) -> None:
    """Collect what no page may do: script errors and policy violations; a lost connection is none."""
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text)
            if message.type == "error" and not any(lost in message.text for lost in LOST_REQUESTS)
            else None
        ),
    )


def message_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def button(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def log(page: Page) -> Locator:
    return page.get_by_role("log", name="Conversation")


def answers(page: Page) -> Locator:
    return log(page).get_by_role("article", name="Assistant")


def questions(page: Page) -> Locator:
    return log(page).get_by_role("article", name="You")


def task_list(page: Page) -> Locator:
    return log(page).get_by_role("group", name="Task list")


async def until(page: Page, expression: str) -> None:
    """Wait until it is true in the page; Playwright waits by evaluating strings, which the page's policy forbids."""
    await waiting.until(lambda: page.evaluate(f"Boolean({expression})"))


async def send(page: Page, text: str) -> None:
    await message_box(page).fill(text)
    await message_box(page).press("Enter")


async def say(page: Page, text: str) -> None:
    """Send it and wait for the end of the answer."""
    await send(page, text)
    await expect(message_box(page)).to_have_value("")  # from then on, the last answer cannot be made again
    await questions(page).filter(has_text=text).last.wait_for()
    await answered(page)


async def answered(page: Page) -> None:
    await button(page, "Answer again").wait_for()
    await button(page, "Send").wait_for()


async def show_assistant(page: Page) -> None:
    """On a phone, where it covers the list."""
    await button(page.get_by_role("navigation", name="Bottom bar"), "Assistant").click()


async def show_tasks(page: Page) -> None:
    """On a phone."""
    await button(page, "Back to the tasks").click()


def side_bar(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Views and conversations")


async def open_side_bar(page: Page) -> None:
    """Where it is a drawer."""
    if await button(page, "Back to the tasks").is_visible():
        await show_tasks(page)
    opener = button(page, "Views and conversations")
    if await opener.is_visible():
        await opener.click()
    await side_bar(page).wait_for()


async def open_about(page: Page) -> Locator:
    """What the name of the model explains."""
    await open_side_bar(page)
    await button(page, "Basic mode · Add AI").click()
    panel = page.get_by_role("dialog", name="About this assistant")
    await panel.wait_for()
    return panel


async def open_menu(page: Page) -> None:
    await open_side_bar(page)
    await button(page, "Menu").click()


async def from_menu(page: Page, name: str) -> None:
    await open_menu(page)
    await button(page.get_by_role("dialog", name="Menu"), name).click()


def history(page: Page) -> Any:
    return page.get_by_role("navigation", name="Conversations", exact=True)


async def open_history(page: Page) -> None:
    toggle = button(page, "Conversations")
    if await toggle.get_attribute("aria-expanded") != "true":
        await toggle.click()
    await expect(history(page)).to_be_visible()


async def on(page: Page, kind: str, handler: Any) -> None:
    """Let the handler answer requests of one type."""

    async def route(route: Route) -> None:
        if json.loads(route.request.post_data or "{}").get("type") == kind:
            await handler(route)
        else:
            await route.fallback()

    await page.route("**/chatkit", route)
