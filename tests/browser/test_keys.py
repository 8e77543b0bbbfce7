"""The keys of the page: one table, its sheet and document, and what each key does where."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi, today
from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.support.script import says
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

DOCUMENT = ROOT / "docs" / "page.md"


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def leave_fields(page: Page) -> None:
    await page.evaluate("document.activeElement.blur()")


def documented(path: Path) -> list[list[str]]:
    """The rows of the document's table."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")][2:]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")] for line in lines]


async def test_sheet_and_document_have_the_same_keys(open_list: OpenPage, violations: Violations) -> None:
    page = await open_list()
    await leave_fields(page)
    await press(page, "?")
    sheet = page.get_by_role("dialog", name="Keys", exact=True)
    await expect(sheet).to_be_visible()
    assert await violations(page) == []
    rows = await sheet.locator("tbody tr").all()
    shown = [[" ".join((await cell.inner_text()).split()) for cell in await row.locator("td").all()] for row in rows]
    assert shown == documented(DOCUMENT)
    assert len(shown) > 20
    await press(page, "q")
    await expect(sheet).to_be_visible()
    await press(page, "Escape")
    await expect(sheet).to_have_count(0)


async def test_keys_do_what_a_task_needs(open_list: OpenPage, tasks: TaskApi) -> None:
    for title in ("milk", "bread", "tea"):
        await tasks.add(title, due="today")
    page = await open_list()
    await leave_fields(page)
    await press(page, "j")
    await expect(task_list.title_of(page, "milk")).to_be_focused()
    await press(page, "j", "ArrowDown", "k")
    await expect(task_list.title_of(page, "bread")).to_be_focused()

    async def priority() -> str | None:
        return (await tasks.task("bread"))["priority"]

    async def labels_of() -> list[str]:
        return (await tasks.task("bread"))["labels"]

    for key, expected in (("1", "high"), ("2", "medium"), ("3", "low"), ("4", None)):
        await press(page, key)
        await until(lambda expected=expected: _equals(priority, expected))
    await press(page, "l")
    labels = page.get_by_role("dialog", name="Labels of “bread”")
    await labels.get_by_role("textbox", name="Labels").fill("home, food")
    await press(page, "Enter")
    await expect(task_list.row(page, "bread")).to_contain_text("food")
    await until(lambda: _equals(labels_of, ["food", "home"]))
    await press(page, "l")
    await labels.get_by_role("textbox", name="Labels").fill("")
    await press(page, "Enter")
    await expect(task_list.row(page, "bread")).not_to_contain_text("food")
    await press(page, "t")
    await page.get_by_role("textbox", name="Type a date").fill("tomorrow")
    await press(page, "Enter")
    await expect(task_list.titles(page)).to_have_text(["milk", "tea"])
    await tasks.until("upcoming", ["bread"])
    await task_list.title_of(page, "milk").focus()
    await press(page, "Enter")
    field = task_list.rows(page).locator("form textarea[name=title]")
    await expect(field).to_be_focused()
    await page.keyboard.type(" etc 1")
    await expect(field).to_have_value("milk etc 1")
    await press(page, "Escape")
    await expect(field).to_have_count(0)
    await expect(task_list.title_of(page, "milk")).to_be_focused()
    await press(page, "Space")
    await expect(task_list.titles(page)).to_have_text(["tea"])
    await tasks.until("done", ["milk"])
    await expect(field).to_have_count(0)
    await task_list.title_of(page, "tea").focus()
    await press(page, "e")
    await tasks.until("done", ["tea", "milk"])


async def test_tasks_are_completed_one_after_the_other(open_list: OpenPage, tasks: TaskApi) -> None:
    for title in ("milk", "bread", "tea"):
        await tasks.add(title, due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").focus()
    await press(page, "e", "Space")
    await expect(task_list.title_of(page, "tea")).to_be_focused()
    await expect(task_list.titles(page)).to_have_text(["tea"])
    await page.keyboard.down("e")
    await page.keyboard.down("e")  # is repeated while it is held down
    await page.keyboard.up("e")
    await expect(task_list.titles(page)).to_have_count(0)
    await tasks.until("done", ["tea", "bread", "milk"])
    await leave_fields(page)  # without tasks, the field that adds them has the focus, and its own undo
    await press(page, "ControlOrMeta+z", "ControlOrMeta+z")
    await expect(task_list.titles(page)).to_have_text(["bread", "tea"])
    await task_list.title_of(page, "bread").focus()
    await press(page, "Delete", "Delete")
    await expect(task_list.titles(page)).to_have_count(0)
    await tasks.until("deleted", ["tea", "bread"])


async def test_labels_are_chosen_from_the_existing_ones(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    for title in ("bread", "tea"):
        await tasks.add(title, labels=["food"], due="2031-01-01")
    await tasks.add("rake", labels=["garden"], due="2031-01-01")
    page = await open_list()
    await task_list.title_of(page, "milk").focus()
    await press(page, "l")
    dialog = page.get_by_role("dialog", name="Labels of “milk”")
    field, known = dialog.get_by_role("textbox", name="Labels"), dialog.get_by_role("group", name="Your labels")
    await expect(known.get_by_role("button")).to_have_text([re.compile(r"#food\s*2"), re.compile(r"#garden\s*1")])
    await known.get_by_role("button", name="#food").click()
    await expect(field).to_have_value("food")
    await expect(known.get_by_role("button", name="#food")).to_have_attribute("aria-pressed", "true")
    await field.press("End")
    await field.press_sequentially(", ga")
    await expect(known.get_by_role("button")).to_have_text([re.compile("#garden")])
    await known.get_by_role("button", name="#garden").click()
    await expect(field).to_have_value("food, garden")
    await expect(field).to_be_focused()
    await known.get_by_role("button", name="#food").click()
    await expect(field).to_have_value("garden")
    await field.press("Enter")

    async def labels_of() -> list[str]:
        return (await tasks.task("milk"))["labels"]

    await until(lambda: _equals(labels_of, ["garden"]))


async def _equals(read: Callable[[], Awaitable[Any]], expected: Any) -> bool:
    return await read() == expected


async def test_keys_go_places(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="tomorrow")
    page = await open_list()
    await leave_fields(page)
    for key, path in (("u", "/upcoming"), ("a", "/all"), ("d", "/done"), ("t", "/today")):
        await press(page, "g", key)
        await until(lambda path=path: _at(page, path))
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await press(page, "g", "d")
    await until(lambda: _at(page, "/done"))
    await press(page, "q")
    await expect(task_list.adding(page)).to_be_focused()
    await page.keyboard.type("q/?jk")
    await expect(task_list.adding(page)).to_have_value("q/?jk")
    search = page.get_by_role("searchbox", name="Search tasks")
    await press(page, "ControlOrMeta+k")
    await expect(search).to_be_focused()
    await leave_fields(page)
    await press(page, "/")
    await expect(search).to_be_focused()
    await expect(search).to_have_value("")
    await leave_fields(page)
    await press(page, "c")
    await expect(screen.message_box(page)).to_be_focused()
    await page.keyboard.type("c")
    await expect(screen.message_box(page)).to_have_value("c")


async def _at(page: Page, path: str) -> bool:
    return await page.evaluate("location.pathname") == path


async def test_keys_act_on_the_selected_and_select_all_of_the_view(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add_many([f"task {number:03}" for number in range(120)], due=str(today()))
    page = await open_list()
    await task_list.title_of(page, "task 000").focus()
    await press(page, "x", "j", "x")
    await expect(task_list.region(page).get_by_text("2 selected")).to_be_visible()
    await press(page, "1")
    await expect(task_list.notice(page)).to_contain_text("2 tasks")
    await press(page, "Escape")
    await expect(task_list.region(page).get_by_text("2 selected")).to_have_count(0)
    await expect(task_list.notice(page)).to_be_visible()
    await press(page, "Escape")
    await expect(task_list.notice(page)).to_have_count(0)
    await press(page, "ControlOrMeta+a")
    await expect(task_list.region(page).get_by_text("120 selected").first).to_be_visible()
    await press(page, "Delete")
    await expect(task_list.titles(page)).to_have_count(0)
    await until(lambda: _equals(tasks.titles, []))


async def test_keys_without_a_chosen_task_change_nothing(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await leave_fields(page)
    await press(page, "e")
    await expect(task_list.title_of(page, "milk")).to_be_focused()
    assert await tasks.titles("done") == []


async def test_single_keys_can_be_switched_off(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    add = page.locator("#add")
    await expect(add).to_have_attribute("title", "Add a task (Q)")
    await expect(add).to_have_attribute("aria-keyshortcuts", "q")
    await screen.open_menu(page)
    switch = screen.button(page, "Keys of a single character")
    await expect(switch).to_have_attribute("aria-pressed", "true")
    await switch.click()
    await expect(switch).to_have_attribute("aria-pressed", "false")
    await press(page, "Escape")
    await expect(add).to_have_attribute("title", "Add a task")
    await page.reload()
    await task_list.title_of(page, "milk").focus()
    await press(page, "e", "g", "u", "q", "1")
    await expect(task_list.title_of(page, "milk")).to_be_focused()
    assert (await tasks.task("milk"))["priority"] is None
    await press(page, "ControlOrMeta+k")
    await expect(page.get_by_role("searchbox", name="Search tasks")).to_be_focused()
    await screen.from_menu(page, "Keys")
    await page.get_by_role("dialog", name="Keys", exact=True).get_by_role("checkbox").check()
    await press(page, "Escape")
    await expect(add).to_have_attribute("title", re.compile(r"\(Q\)"))


async def test_keys_leave_composed_text_and_modified_keys_alone(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").focus()
    for init in (
        "isComposing: true",
        "keyCode: 229",
        "ctrlKey: true",
        "altKey: true",
        "metaKey: true",
        "shiftKey: true",
    ):
        await page.evaluate(
            f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: 'E', bubbles: true, {init}}}))"
        )
    await expect(task_list.tick(page, "milk")).not_to_be_checked()
    await page.evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'e', bubbles: true}))")
    await tasks.until("done", ["milk"])


async def test_escape_leaves_the_field_for_a_new_task_and_keeps_its_text(open_list: OpenPage) -> None:
    page = await open_list()
    await press(page, "q")
    await page.keyboard.type("milk")
    await press(page, "Enter")
    await expect(task_list.notice(page)).to_contain_text("Added")
    await page.keyboard.type("bread")
    await press(page, "Escape")
    await expect(task_list.notice(page)).to_be_visible()
    await press(page, "?")
    await expect(page.get_by_role("dialog", name="Keys", exact=True)).to_be_visible()
    await press(page, "Escape")
    await expect(task_list.adding(page)).to_have_value("bread")


async def test_escape_closes_one_thing_at_a_time_and_stops_no_answer_while_typing(
    open_list: OpenPage, tasks: TaskApi, model: ScriptedModel
) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.title_of(page, "milk").focus()
    await press(page, "x")
    await task_list.tick(page, "milk").count()
    await screen.open_menu(page)
    await press(page, "Escape")
    await expect(page.get_by_role("dialog", name="Menu")).to_have_count(0)
    await expect(task_list.region(page).get_by_text("1 selected")).to_be_visible()
    await leave_fields(page)
    await press(page, "Escape")
    await expect(task_list.region(page).get_by_text("1 selected")).to_have_count(0)
    await model.script(says("Fine."))
    await screen.say(page, "hello")
    await expect(screen.answers(page)).to_have_count(1)
