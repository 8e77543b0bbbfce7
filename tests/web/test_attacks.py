"""Text from the model or from a task's title never becomes markup or script."""

import json

import psycopg
import pytest
from playwright.async_api import Page, expect

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.stored_tasks import ADD_TASK
from tests.web import screen
from tests.web.attacks import ATTRIBUTES, CORPUS, ELEMENTS, arm
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def check(page: Page) -> None:
    assert await page.evaluate("window.reached") == []
    assert await screen.log(page).locator(f"{ELEMENTS}, {ATTRIBUTES}").count() == 0
    links = await screen.log(page).get_by_role("link").evaluate_all("links => links.map(link => link.href)")
    assert [link for link in links if not link.startswith(("http://", "https://", "mailto:"))] == []


async def test_what_the_model_says_stays_text(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(prepare=arm)
    for start in range(0, len(CORPUS), 9):
        parts = CORPUS[start : start + 9]
        await model.reset()
        await model.script(*({"text": text, "chunk_chars": 3} for text in parts))
        for text in parts:
            await screen.send(page, f"say {CORPUS.index(text)}")
            await expect(page.get_by_role("article", name="You").last).to_contain_text(f"say {CORPUS.index(text)}")
            await screen.answered(page)
            await check(page)
    said = await screen.log(page).inner_text()
    assert "<img src=x onerror=pwn()>" in said
    await page.reload()
    await screen.answered(page)
    await check(page)


async def test_what_a_person_says_stays_text(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(prepare=arm)
    await model.script({"text": "Well."})
    text = "\n".join(CORPUS)
    await screen.send(page, text)
    await screen.answered(page)
    await check(page)
    assert await page.get_by_role("article", name="You").inner_text() == text


async def test_what_a_task_is_called_stays_text(open_page: OpenPage, model: ScriptedModel, database_url: str) -> None:
    with psycopg.connect(as_admin(database_url), autocommit=True) as database:
        for text in CORPUS:
            database.execute(ADD_TASK.encode(), ("local", text, text))
    page = await open_page(prepare=arm)
    await model.script(
        {"tool_calls": [{"name": "list_tasks", "arguments": {"limit": 100}}]},
        {"text": "There."},
        {"tool_calls": [{"name": "add_task", "arguments": json.dumps({"title": CORPUS[4]})}]},
        {"text": "Added."},
    )
    await screen.send(page, "list")
    await screen.answered(page)
    await screen.task_list(page).get_by_role("button", name="Show more").click()
    labels = await screen.task_list(page).get_by_role("checkbox").count()
    assert labels == len(CORPUS)
    await check(page)
    await screen.send(page, "add")
    await expect(page.get_by_role("group", name="Card")).to_contain_text(CORPUS[4])
    await screen.answered(page)
    await screen.task_list(page).get_by_role("checkbox").first.check()
    await expect(screen.task_list(page)).to_contain_text("1 done")
    await screen.task_list(page).get_by_role("button", name="Edit task").first.click()
    await expect(screen.task_list(page).get_by_role("textbox", name="Title")).to_have_value(CORPUS[0])
    await check(page)
    await page.reload()
    await screen.answered(page)
    await check(page)


async def test_a_title_of_a_conversation_stays_text(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(prepare=arm)
    await model.script({"text": "Well."})
    await screen.send(page, "<img src=x onerror=pwn()> <b>bold</b>")
    await screen.answered(page)
    await page.get_by_role("button", name="Conversations", exact=True).click()
    await expect(page.get_by_role("navigation", name="Conversations")).to_contain_text("<img src=x onerror=pwn()>")
    assert await page.evaluate("window.reached") == []
    assert await page.locator("img, b").count() == 0
