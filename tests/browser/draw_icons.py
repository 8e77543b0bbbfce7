"""Draws the page's icons from web/icon.svg: `python -m tests.browser.draw_icons`, after the drawing has changed."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

WEB = Path(__file__).resolve().parents[2] / "web"
ICONS = {"192.png": (192, False), "512.png": (512, False), "full.png": (512, True)}
"""By name: how large, and whether the ground goes to the edges, as systems want it that cut a shape out themselves."""


def chromium() -> str | None:
    """The system's; None lets Playwright use the one it installed itself.

    Without the browser's own windows it takes half the processor.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def draw(folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, (size, full) in ICONS.items():
            page = browser.new_page(viewport={"width": size, "height": size})
            drawing = (WEB / "icon.svg").read_text()
            page.set_content(f"<style>* {{ margin: 0; display: block }}</style>{drawing}")
            if full:
                page.evaluate("document.querySelector('rect').removeAttribute('rx')")
            page.screenshot(path=folder / name, omit_background=True)
        browser.close()


if __name__ == "__main__":
    draw(WEB / "icons")
