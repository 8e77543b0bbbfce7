"""Talking about tasks: named by "@" in a message, selected in the list, and opened from the chat."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen, task_list
from tests.browser.attacks import ATTRIBUTES, CORPUS, ELEMENTS, arm
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.long]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def field(page: Page) -> Locator:
    return page.locator(".composer textarea")


def options(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Tasks").get_by_role("option")


def tags(page: Page) -> Locator:
    return screen.questions(page).last.locator(".tag")


async def test_mention_by_keyboard(open_page: OpenPage, tasks: TaskApi, violations: Violations) -> None:
    for title, due in (("Buy milk", "tomorrow"), ("Buy stamps", ""), ("Call the bank", "")):
        await tasks.add(title, **({"due": due} if due else {}))
    page = await open_page()
    await field(page).focus()
    await page.keyboard.type("complete @bu")
    await expect(options(page)).to_have_count(2)
    combobox = page.get_by_role("combobox", name="Message")
    await expect(combobox).to_have_attribute("aria-activedescendant", "tag-option-0")
    assert await violations(page) == []
    await page.keyboard.press("ArrowDown")
    await expect(options(page).nth(1)).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Tab")
    await expect(screen.message_box(page)).to_have_value("complete @Buy stamps ")
    await expect(page.locator(".behind mark")).to_have_text("@Buy stamps")
    await page.keyboard.type("and @call")
    await expect(options(page)).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(options(page)).to_have_count(0)
    await page.keyboard.press("Control+A")
    await page.keyboard.press("Delete")
    await expect(page.locator(".behind")).to_have_count(0)
    await page.keyboard.press("Control+Z")
    await expect(screen.message_box(page)).to_have_value("complete @Buy stamps and @call")
    await page.keyboard.press("Control+End")
    for _ in range(len("and @call")):
        await page.keyboard.press("Backspace")
    await page.reload()
    await expect(page.locator(".behind mark")).to_have_text("@Buy stamps")
    await field(page).press("Enter")
    await screen.answered(page)
    assert await tasks.titles() == ["Buy milk", "Call the bank"]
    await expect(tags(page)).to_have_text("@Buy stamps")
    assert await violations(page) == []

    # It is recalled and edited as the same tag.
    await field(page).press("ArrowUp")
    await expect(page.locator(".behind mark")).to_have_text("@Buy stamps")
    await field(page).fill("")
    await screen.button(page, "Edit").click()
    await page.get_by_role("textbox", name="Your message").fill("reopen @Buy stamps")
    await page.keyboard.press("Enter")
    await screen.answered(page)
    await expect(tags(page)).to_have_text(["@Buy stamps"])
    await tasks.until("all", ["Buy milk", "Buy stamps", "Call the bank"])

    # The sent tag opens the task in the list.
    await tags(page).click()
    await expect(page.get_by_role("textbox", name="Title")).to_have_value("Buy stamps")


async def test_selected_tasks_go_with_a_message(open_page: OpenPage, tasks: TaskApi, violations: Violations) -> None:
    for number in range(7):
        await tasks.add(f"errand {number}")
    page = await open_page()
    await task_list.see(page, "All")
    await screen.button(task_list.region(page), "Select tasks").click()
    for number in range(7):
        await task_list.box(page, f"errand {number}").check()
    await expect(page.locator(".going-along")).to_contain_text("7 tasks selected")
    assert await violations(page) == []
    await screen.button(page, "Send without them").click()
    await expect(page.locator(".going-along")).to_have_count(0)
    await screen.button(task_list.region(page), "Select tasks").click()
    for number in range(6):
        await task_list.box(page, f"errand {number}").check()
    await screen.send(page, "move these to tomorrow")
    await screen.answered(page)
    await expect(page.locator(".going-along")).to_have_count(0)
    tomorrow = task_list.today(1).isoformat()
    assert sorted(task["due"] == tomorrow for task in await tasks.view()) == [False] + 6 * [True]
    await screen.questions(page).last.get_by_text("6 tasks").click()
    await expect(tags(page)).to_have_count(6)
    assert await violations(page) == []


async def test_card_opens_its_task(open_page: OpenPage, tasks: TaskApi, violations: Violations) -> None:
    await tasks.add_many([f"errand {number:03}" for number in range(110)])
    page = await open_page(**PHONE)
    await screen.say(page, "add water the plants")
    await screen.say(page, "add fix the roof")
    asked: list[str] = []
    page.on(
        "request",
        lambda request: asked.append(request.url.rpartition("/tasks")[2]) if "/tasks" in request.url else None,
    )
    await screen.log(page).get_by_role("button", name="water the plants", exact=True).click()
    title = page.get_by_role("textbox", name="Title")
    await expect(title).to_have_value("water the plants")
    assert re.fullmatch(r"/\d+", next(one for one in asked if not one.startswith("/changes")))
    assert not [one for one in asked if "cursor=" in one], "no page after page"
    await expect(task_list.region(page).locator("[data-shown]")).to_have_count(0)  # its row is no longer pointed out
    assert await violations(page) == []
    for change, view in ((tasks.change(112, status="completed"), "Done"), (tasks.delete(112), "Deleted")):
        await page.keyboard.press("Escape")
        await expect(title).to_have_count(0)
        await change
        await screen.show_assistant(page)
        await screen.log(page).get_by_role("button", name="fix the roof", exact=True).last.click()
        await expect(task_list.region(page).get_by_role("heading", name=view, exact=True)).to_be_attached()
        await expect(task_list.row(page, "fix the roof")).to_be_visible()
    await page.evaluate("document.querySelector('todo-tasks').setPlace({ task: 999 })")
    await expect(task_list.rows(page)).to_contain_text("There is no task 999.")


async def test_mentioned_titles_stay_text(open_page: OpenPage, tasks: TaskApi) -> None:
    titles = [text for text in CORPUS if len(text) < 100 and text == " ".join(text.split())][:12]
    for title in titles:
        await tasks.add(title)
    page = await open_page(prepare=arm)
    await field(page).focus()
    await page.keyboard.type("what is @")
    await expect(options(page)).to_have_count(8)
    assert (await options(page).nth(0).locator("span").inner_text()) == titles[0]
    await page.keyboard.press("Enter")
    await expect(page.locator(".behind mark")).to_have_text(f"@{titles[0]}")
    await task_list.see(page, "All")
    await screen.button(task_list.region(page), "Select tasks").click()
    for title in titles:
        await task_list.box(page, title).check()
    await field(page).press("End")
    await field(page).press("Enter")
    await screen.answered(page)
    await screen.questions(page).last.locator("summary").click()
    await expect(tags(page)).to_have_text([f"@{title}" for title in [titles[0], *titles]])
    assert await page.evaluate("window.reached") == []
    assert await screen.log(page).locator(f"{ELEMENTS}, {ATTRIBUTES}").count() == 0
