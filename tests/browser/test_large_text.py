"""The page on a phone with text of up to twice the usual size: whole words, and every button in reach."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.draw_icons import chromium
from tests.browser.task_list import TaskApi
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=20), pytest.mark.asyncio(loop_scope="session")]

PHONES = [(390, 844), (360, 640), (740, 360)]
ZOOMED = [(width // 2, height // 2) for width, height in PHONES]
"""The sizes of these screens for a page that is zoomed to 200 %."""
ROOMY: ViewportSize = {"width": 390, "height": 1200}
"""A screen on which everything can be opened."""
DIALOGS = {"Memory": "Close", "Calendar": "Close", "Devices": "End all others", "Keys": "Close", "Sign out": "Cancel"}
"""Those of the menu, each with a button that it has once it is loaded."""
LARGE_TEXT = pytest.mark.parametrize(
    ("font_size", "sizes"),
    [(24, PHONES), (32, [*PHONES, (1100, 800)]), (16, ZOOMED)],
    ids=["text of 150 %", "text of 200 %", "zoom of 200 %"],
)
# The buttons that cannot be clicked after scrolling to them, the broken words, and what is cut off, of what is open.
FAULTS = r"""(selector) => {
    const root = [...document.querySelectorAll(selector)].find((one) => one.checkVisibility());
    if (!root) return [`nothing at ${selector}`];
    const faults = [];
    const isShown = (one) => one.checkVisibility({ visibilityProperty: true }) && getComputedStyle(one).opacity !== "0";
    for (const button of root.querySelectorAll("button, a[href], input, select, textarea, summary")) {
        const label = button.closest("label") ?? button;
        if (!isShown(label)) continue;
        const name = button.ariaLabel ?? label.textContent.trim();
        label.scrollIntoView({ block: "center", inline: "nearest" });
        const { left, right, top, bottom } = label.getBoundingClientRect();
        const frame = root.getBoundingClientRect();
        const [first, last] = [Math.max(0, frame.left), Math.min(innerWidth, frame.right)];
        const isInside = first - 1 <= left && right <= last + 1;
        if (!isInside) faults.push(`${name}: from ${left} to ${right} of ${first} to ${last}`);
        const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        if (!label.contains(hit) && !hit?.contains(label)) faults.push(`${name}: ${hit?.outerHTML} is before it`);
    }
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
        const parent = text.parentElement;
        if (!isShown(parent) || getComputedStyle(parent).textOverflow === "ellipsis") continue;
        if (parent.closest("pre, textarea, .visually-hidden")) continue;
        for (const { 0: word, index } of text.data.matchAll(/[\p{L}\p{N}']+/gu)) {
            const range = document.createRange();
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
            if (lines.size > 1) faults.push(`${word} has ${lines.size} lines in ${parent.outerHTML.slice(0, 80)}`);
        }
    }
    for (const one of [root, ...root.querySelectorAll("dialog, .rows")]) {
        if (one.scrollWidth > one.clientWidth + 1) faults.push(`${one.className} is wider than it shows`);
    }
    return faults;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def browser(font_size: int) -> AsyncIterator[Browser]:
    """Whose user has chosen the size of text."""
    options = ["--no-sandbox", f"--blink-settings=defaultFontSize={font_size}"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=options)
        yield browser
        await browser.close()


async def fill(tasks: TaskApi) -> None:
    await tasks.add("Renew the passport", due="2020-01-01")
    await tasks.add("Send the report to Ana", due="today", priority="high", labels=["work", "administration"])


async def states(page: Page) -> AsyncIterator[tuple[str, str]]:
    """One after the other, all that opens on the page, with its selector."""
    title = "Send the report to Ana"
    yield "list", "#tasks"
    yield "bottom bar", "#bottom"
    await task_list.title_of(page, title).click()
    await expect(screen.button(page, "Ask an agent to do it")).to_be_visible()
    yield "editor", ".task-sheet"
    await page.get_by_role("textbox", name="Repeat").fill("never")
    await page.get_by_role("textbox", name="Repeat").press("Enter")
    await expect(page.locator(".task-sheet").get_by_role("alert")).to_be_visible()
    yield "editor with a problem", ".task-sheet"
    await page.keyboard.press("Escape")
    await expect(task_list.notice(page)).to_be_visible()
    yield "notice", ".below"
    await task_list.open_menu(page, title)
    yield "menu of a row", ".row-menu"
    await page.keyboard.press("Escape")
    await task_list.title_of(page, title).focus()
    await page.keyboard.press("t")
    await page.keyboard.type("friday at 9")
    await expect(page.locator("#move-understood button")).to_be_visible()
    yield "move", ".move"
    await page.keyboard.press("Escape")
    await task_list.title_of(page, title).focus()
    await page.keyboard.press("l")
    await expect(screen.button(page, "#work 1")).to_be_visible()
    yield "labels", ".move"
    await page.keyboard.press("Escape")
    await task_list.adding(page).fill("call mum friday at 3pm #home !high")
    await expect(task_list.understood(page)).to_contain_text("home")
    yield "what is understood", ".adding"
    await task_list.adding(page).fill("")
    await screen.button(page, "Select tasks").click()
    await task_list.box(page, title).check()
    yield "selection", ".selection"
    await screen.button(page.get_by_role("toolbar"), "Stop selecting").click()
    await task_list.adding(page).fill("a draft")  # which a sign-out asks about
    await screen.open_side_bar(page)
    yield "side bar", "#side"
    await screen.button(page, "Menu").click()
    yield "menu", "#menu"
    for name, loaded in DIALOGS.items():
        await screen.button(page.get_by_role("dialog", name="Menu"), name).click()
        dialog = page.locator("body > dialog")
        await expect(screen.button(dialog, loaded)).to_be_visible()
        yield name, "body > dialog"
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await screen.open_menu(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await screen.show_assistant(page)
    await expect(screen.message_box(page)).to_be_visible()
    yield "assistant", "#assistant"


@LARGE_TEXT
async def test_no_word_is_broken_and_no_button_out_of_reach(
    open_list: OpenPage, user: User, tasks: TaskApi, font_size: int, sizes: list[tuple[int, int]]
) -> None:
    await fill(tasks)
    other = await user.runs.http.post("/session", headers={"User-Agent": "SamsungBrowser/28 (Android)"})
    assert other.status_code == 200  # the dialog of the devices lists it
    page = await open_list(viewport=ROOMY, has_touch=True, reduced_motion="reduce")
    faults = []
    async for state, selector in states(page):
        for width, height in sizes:
            await page.set_viewport_size({"width": width, "height": height})
            faults += [f"{width} x {height}, {state}: {fault}" for fault in await page.evaluate(FAULTS, selector)]
        await page.set_viewport_size(ROOMY)
    assert not faults, "\n".join(faults)


@LARGE_TEXT
async def test_most_of_the_editor_and_of_the_composer_is_text(
    open_list: OpenPage, tasks: TaskApi, font_size: int, sizes: list[tuple[int, int]]
) -> None:
    await fill(tasks)
    page = await open_list(viewport={"width": sizes[0][0], "height": sizes[0][1]}, has_touch=True)
    await task_list.title_of(page, "Send the report to Ana").click()
    save = screen.button(page.locator(".task-sheet"), "Save")
    for width, height in sizes:
        await page.set_viewport_size({"width": width, "height": height})
        await expect(save).to_be_in_viewport(ratio=1)
        box = await save.bounding_box()
        assert box
        assert height - box["y"] <= 0.4 * height, (width, height)
    await page.keyboard.press("Escape")
    await screen.show_assistant(page)
    for width, height in sizes:
        await page.set_viewport_size({"width": width, "height": height})
        field = await screen.message_box(page).bounding_box()
        assert field
        assert field["width"] >= 0.5 * width, (width, height)
