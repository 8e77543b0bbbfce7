"""Ten thousand tasks: only what is seen is drawn, and no frame is long."""

import json
from bisect import bisect
from collections import Counter

import psycopg
import pytest
from playwright.async_api import Browser, Page, expect

from tests.logins import as_admin
from tests.web import screen
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList
from tests.web.tasks.listed import Stored

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.asyncio(loop_scope="session")]

MANY = 10_000
LONGEST = 50  # ms
TRIES = 5
FILL = """
    INSERT INTO tasks (user_id, id, title, due_on, labels)
    SELECT 'local', number, 'Task ' || number || repeat(' with more words', number %% 5),
        current_date + (number / 40)::int, CASE number %% 3 WHEN 0 THEN ARRAY['home'] ELSE ARRAY[]::text[] END
    FROM generate_series(2, %s) AS number
"""
SCROLL = """async (distance) => {
    const rows = document.querySelector('.rows');
    for (const end = rows.scrollTop + distance; rows.scrollTop < end; rows.scrollTop += 150) {
        await new Promise(requestAnimationFrame);
    }
}"""
FRAME, TASK = "Commit", "ThreadControllerImpl::RunTask"
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]


async def test_scrolling_through_ten_thousand_stays_smooth(
    open_list: OpenList, stored: Stored, browser: Browser, database_url: str
) -> None:
    await stored.add("the first")
    with psycopg.connect(as_admin(database_url), autocommit=True) as database:
        database.execute(FILL, [MANY])
        database.execute("UPDATE people SET last_task_id = %s", [MANY])
    page = await open_list()
    await listed.see(page, "All")
    await expect(listed.region(page).locator(".total")).to_have_text("2,000+")
    await load_all(page)
    assert await page.locator(".rows [data-row]").count() < 100
    longest: list[float] = []
    while len(longest) < TRIES and min(longest, default=LONGEST + 1) > LONGEST:
        longest.append(await longest_frame(browser, page))
    assert min(longest) <= LONGEST, longest


async def load_all(page: Page) -> None:
    """Scroll to the end until there is no more to read."""
    more = page.locator(".rows .more")
    while await more.count():
        await page.evaluate("document.querySelector('.rows').scrollTop = 1e9")
        await page.wait_for_timeout(10)
    await screen.until(page, "document.querySelector('.rows').scrollHeight > 400000")


async def longest_frame(browser: Browser, page: Page) -> float:
    """While scrolling through a thousand rows from the middle on, the most of the processor's time that the page takes
    from one frame to the next, in ms: what others do on this machine is not counted."""
    await page.evaluate("document.querySelector('.rows').scrollTop = 200000")
    await page.wait_for_timeout(300)
    await browser.start_tracing(page=page, categories=CATEGORIES)
    await page.evaluate(SCROLL, 40_000)
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    begun = [event for event in events if event["name"] == FRAME]
    assert len(begun) > 100
    thread = Counter((event["pid"], event["tid"]) for event in begun).most_common(1)[0][0]
    starts = sorted(event["ts"] for event in begun if (event["pid"], event["tid"]) == thread)
    spent: Counter[int] = Counter()
    for event in events:
        if event["name"] == TASK and (event["pid"], event["tid"]) == thread:
            spent[bisect(starts, event["ts"])] += event.get("tdur", 0)
    return max(spent.values()) / 1000
