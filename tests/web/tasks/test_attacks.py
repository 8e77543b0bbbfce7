"""Titles, descriptions and labels of tasks never become markup or script in the list."""

import psycopg
import pytest
from playwright.async_api import Page, expect

from tests.logins import as_admin
from tests.stored_tasks import ADD_TASK
from tests.web.attacks import ATTRIBUTES, CORPUS, ELEMENTS, arm
from tests.web.tasks import listed
from tests.web.tasks.conftest import OpenList

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def check(page: Page) -> None:
    assert await page.evaluate("window.reached") == []
    found = listed.region(page).locator(f"{ELEMENTS.replace('form:not(.widget form)', 'form form')}, {ATTRIBUTES}")
    assert await found.evaluate_all("all => all.filter(one => !one.matches('.space, .rows ul')).length") == 0
    assert await listed.region(page).get_by_role("link").count() == 0


async def test_what_a_task_says_stays_text(open_list: OpenList, database_url: str) -> None:
    with psycopg.connect(as_admin(database_url), autocommit=True) as database:
        for text in CORPUS:
            database.execute(ADD_TASK.encode(), ("local", text, text))
            database.execute("UPDATE tasks SET labels = ARRAY[left(lower(title), 40)] WHERE title = %s", [text])
    page = await open_list(prepare=arm)
    await listed.see(page, "All")
    await expect(listed.region(page).locator(".total")).to_have_text(str(len(CORPUS)))
    for text in CORPUS:
        await page.evaluate("id => document.querySelector('todo-tasks').show(id)", CORPUS.index(text) + 1)
        await expect(page.locator(f"[data-row='{CORPUS.index(text) + 1}'] .title")).to_be_focused()
    await check(page)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Title")).to_have_value(CORPUS[-1])
    await check(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("d")
    await check(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Delete")
    await expect(listed.notice(page)).to_contain_text("Deleted")
    await check(page)


async def test_what_is_written_to_be_added_stays_text(open_list: OpenList) -> None:
    page = await open_list(prepare=arm)
    for text in CORPUS:
        await listed.adding(page).fill(f"{text} tomorrow #{text}")
    await check(page)
    await listed.adding(page).fill(f"{CORPUS[4]} today")
    await listed.adding(page).press("Enter")
    await expect(listed.title_of(page, CORPUS[4])).to_be_visible()
    await check(page)
