"""Takes the README's two screenshots of the running product: `python -m tests.browser.draw_screenshots`.

It starts everything with `./todo up` and a list of its own, which is deleted afterwards.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.draw_icons import chromium
from tests.conftest import ROOT, find_free_port

IMAGES = ROOT / "docs" / "images"
_START_SECONDS = 180  # with the packages that a first start installs
_SENTENCE = "remind me to call the bank tomorrow at 9 and buy milk"
TEXTS = {
    "desktop": ("Add a task", "Upcoming", "Overdue", "Move all to today", "Labels", "All conversations", "Undo"),
    "phone": ("Today", "Upcoming", "Search", "Assistant", "Overdue"),
}
"""Texts of the page in each picture; tests/docs/test_pictures.py fails when one of them is gone."""
_TASKS: tuple[tuple[int | None, str, dict[str, object]], ...] = (
    (-3, "Renew passport", {}),
    (0, "Send the report to Ana", {"time": "15:00", "priority": "high", "labels": ["work"]}),
    (0, "Water the plants", {"labels": ["home"], "repeat": "FREQ=WEEKLY"}),
    (0, "Book a table for Saturday", {"priority": "medium"}),
    (2, "Dentist", {"time": "09:30", "labels": ["health"]}),
    (None, "Read about gardens", {}),
)
"""In how many days each is due, its title, and what else is known of it."""


def draw(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with running() as url, sync_playwright() as playwright:
        add_tasks(url)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = opened(browser, url, width=1440, height=810, scheme="light")
        box = page.get_by_role("textbox", name="Message")
        box.fill(_SENTENCE)
        box.press("Enter")
        page.locator("todo-chat").get_by_role("button", name="Copy").wait_for()
        take(page, folder, "desktop")
        take(opened(browser, url, width=390, height=720, scheme="dark"), folder, "phone")
        browser.close()


def take(page: Page, folder: Path, name: str) -> None:
    for text in TEXTS[name]:
        page.get_by_text(text, exact=True).and_(page.locator(":visible")).first.wait_for()
    page.screenshot(path=folder / f"{name}.png", animations="disabled", caret="hide")


def opened(browser: Browser, url: str, *, width: int, height: int, scheme: str) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        has_touch=width < 900,
        is_mobile=width < 900,
    )
    page = context.new_page()
    page.goto(f"{url}/")
    page.locator("todo-tasks").get_by_text("Water the plants").wait_for()
    return page


def add_tasks(url: str) -> None:
    for days, title, more in _TASKS:
        day = (date.today() + timedelta(days)).isoformat() if days is not None else None
        due = f"{day} {more['time']}" if "time" in more else day
        rest = {name: value for name, value in more.items() if name != "time"}
        answer = httpx2.post(f"{url}/tasks", json={"title": title, **({"due": due} if due else {}), **rest})
        answer.raise_for_status()


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The address of a product that was just started, and is stopped afterwards."""
    port, mcp_port = find_free_port(), find_free_port()
    with tempfile.TemporaryDirectory(prefix="todo-screenshots-") as directory:
        Path(directory).chmod(0o711)  # PostgreSQL may run as another user
        command = [ROOT / "todo", "up", "--port", str(port), "--mcp-port", str(mcp_port), "--data-dir", directory]
        command += ["--workspace-port", str(find_free_port())]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"LLM_PROVIDER": "offline"})
        try:
            wait_until_ready(url := f"http://127.0.0.1:{port}")
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx2.TransportError):
            if httpx2.get(f"{url}/ready").status_code == 200:
                return
        time.sleep(0.2)
    raise TimeoutError(f"{url} is not ready")


if __name__ == "__main__":
    draw(IMAGES)
