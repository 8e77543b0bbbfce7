"""Text from the model or from a task's title never becomes markup or script."""

import json

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen, task_list
from tests.browser.attacks import ATTRIBUTES, CORPUS, ELEMENTS, MARKUP, arm
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

TITLES = [text for text in CORPUS if "\n" not in text and "\t" not in text and text.isprintable()]


async def check(page: Page) -> None:
    assert await page.evaluate("window.reached") == []
    assert await screen.log(page).locator(f"{ELEMENTS}, {ATTRIBUTES}").count() == 0
    links = await screen.log(page).get_by_role("link").evaluate_all("links => links.map(link => link.href)")
    assert [link for link in links if not link.startswith(("http://", "https://", "mailto:"))] == []


async def test_messages_titles_and_answers_stay_text(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(prepare=arm)
    parts = ["\n\n".join(CORPUS[start : start + 9]) for start in range(0, len(CORPUS), 9)]
    await model.script(*({"text": part, "chunk_chars": 3} for part in parts), {"text": "Well."})
    for number in range(len(parts)):
        await screen.say(page, f"say {number}")
        await check(page)
    said = await screen.log(page).inner_text()
    assert "<img src=x onerror=pwn()>" in said
    await page.reload()
    await screen.answered(page)
    await check(page)

    await screen.button(page, "New conversation").click()
    text = "\n".join(CORPUS)
    await screen.send(page, text)
    await screen.answered(page)
    await check(page)
    assert await page.get_by_role("article", name="You").inner_text() == text
    await screen.open_history(page)
    await expect(screen.history(page).locator(".title").first).to_contain_text(CORPUS[0])
    assert await screen.history(page).locator(f"{ELEMENTS}, {ATTRIBUTES}").count() == 0


APPLE = "https://\u0430\u0440\u0440\u04cf\u0435.example"  # Cyrillic
LINKS = {
    "[more](https://example.org/x)": "more (example.org)",
    "https://example.org/a": "https://example.org/a",
    "www.example.org": "www.example.org",
    "<mail@example.org>": "mail@example.org",
    "[mail](mailto:mail@example.org)": "mail (mail@example.org)",
    "[https://bank.example](https://evil.example)": "https://bank.example (evil.example)",
    "[https://bank.example](https://bank.example.evil.example/)": "https://bank.example (bank.example.evil.example)",
    "[bank.example](https://bank.example@evil.example)": "bank.example (evil.example)",
    "https://bank.example@evil.example": "https://bank.example@evil.example (evil.example)",
    f"[apple]({APPLE})": "apple (xn--80ak6aa92e.example)",
    f"<{APPLE}>": f"{APPLE} (xn--80ak6aa92e.example)",
    "[pay\u200bpal\u202e**x\u2066**](https://evil.example)": "pay[U+200B]pal[U+202E]x[U+2066] (evil.example)",
    "![image](https://evil.example/a.png)": "image (evil.example)",
    "[![image](https://one.example/a.png)](https://two.example)": "image (two.example)",
    "[](https://evil.example)": "evil.example",
    "[ ](https://evil.example/a)": "evil.example (evil.example)",
}


async def test_links_show_where_they_lead(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(prepare=arm)
    await model.script({"text": "\n\n".join(LINKS)})
    await screen.say(page, "links")
    answer = screen.answers(page)
    assert await answer.locator("p").all_inner_texts() == [*LINKS.values()]
    links = answer.get_by_role("link")
    assert await links.evaluate_all(
        "all => all.every(({rel, target}) => rel === 'noopener noreferrer nofollow' && target === '_blank')"
    )
    assert await links.count() == len(LINKS)
    await check(page)


async def test_task_cards_stay_text(open_page: OpenPage, model: ScriptedModel, tasks: TaskApi) -> None:
    await tasks.add_many(TITLES, description=MARKUP[4])
    page = await open_page(prepare=arm)
    await model.script(
        {"tool_calls": [{"name": "list_tasks", "arguments": {"limit": 100}}]},
        {"text": "There."},
        {"tool_calls": [{"name": "add_task", "arguments": json.dumps({"title": MARKUP[4]})}]},
        {"text": "Added."},
    )
    await screen.send(page, "list")
    await screen.answered(page)
    await screen.task_list(page).get_by_role("button", name="Show more").click()
    labels = await screen.task_list(page).get_by_role("checkbox").count()
    assert labels == len(TITLES)
    await check(page)
    await screen.send(page, "add")
    await expect(page.get_by_role("group", name="Card")).to_contain_text(MARKUP[4])
    await screen.answered(page)
    await screen.task_list(page).get_by_role("checkbox").first.check()
    await expect(screen.task_list(page)).to_contain_text("1 done")
    await page.reload()
    await screen.answered(page)
    await check(page)


async def check_list(page: Page) -> None:
    assert await page.evaluate("window.reached") == []
    found = task_list.region(page).locator(f"{ELEMENTS.replace('form:not(.widget form)', 'form form')}, {ATTRIBUTES}")
    others = "all => all.filter(one => !one.matches('.space, .rows ul, .rows li.missing, .row-menu')).length"
    assert await found.evaluate_all(others) == 0
    assert await task_list.region(page).get_by_role("link").count() == 0


async def test_task_list_stays_text(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many(TITLES, description=MARKUP[4], labels=[MARKUP[0][:40]])
    page = await open_list(prepare=arm)
    await task_list.see(page, "All")
    await expect(task_list.region(page).locator(".total")).to_have_text(str(len(TITLES)))
    for number, _ in enumerate(TITLES, 1):
        await page.evaluate("task => document.querySelector('todo-tasks').setPlace({ view: 'all', task })", number)
        await expect(page.locator(f"[data-row='{number}'] form")).to_be_visible()
    await check_list(page)
    await expect(page.get_by_role("textbox", name="Title")).to_have_value(TITLES[-1])
    await check_list(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("t")
    await check_list(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Delete")
    await expect(task_list.notice(page)).to_contain_text("Deleted")
    await check_list(page)
    for text in CORPUS:
        await task_list.adding(page).fill(f"{text} tomorrow #{text}")
    await check_list(page)
    new = f"{CORPUS[4]} that is new"
    await task_list.adding(page).fill(f"{new} today")
    await task_list.adding(page).press("Enter")
    await expect(task_list.notice(page)).to_contain_text(new)
    await check_list(page)
