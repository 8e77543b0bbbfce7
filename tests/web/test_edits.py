"""What is done in widgets besides ticking: what an answer did is taken back, and a task is changed in a form."""

import re
from typing import Any

import psycopg
import pytest
from playwright.async_api import Locator, Page, expect
from psycopg.rows import dict_row

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage, Violations

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

TITLES = "SELECT title, status FROM tasks ORDER BY id"
DENTIST = {"title": "Dentist", "due": "2099-11-27 15:00", "priority": "high", "labels": ["health"]}


@pytest.fixture
def stored(database_url: str) -> Any:
    """Reads rows of the database."""

    def read(statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(as_admin(database_url)) as connection:
            return connection.cursor(row_factory=dict_row).execute(statement.encode()).fetchall()

    return read


def cards(page: Page) -> Locator:
    return screen.log(page).get_by_role("group", name="Card")


def heard(page: Page) -> Locator:
    return page.locator("todo-chat > [aria-live=polite]")


async def called(page: Page, model: ScriptedModel, tool: str, **arguments: Any) -> None:
    await model.script({"tool_calls": [{"name": tool, "arguments": arguments}]}, {"text": "Done."})
    await screen.say(page, tool)


async def test_what_was_added_is_taken_back_once(open_page: OpenPage, stored: Any) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.button(cards(page), "Undo: milk").dblclick()
    await expect(cards(page)).to_contain_text("Undone")
    await expect(cards(page).get_by_role("checkbox")).to_be_focused()
    await expect(heard(page)).to_have_text("Undone; milk (deleted)")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(cards(page).get_by_role("button")).to_have_count(0)
    assert stored(TITLES) == []
    assert len(stored("SELECT 1 FROM task_calls WHERE operation = 'undo'")) == 1


async def test_what_was_completed_or_deleted_is_taken_back(
    open_page: OpenPage, model: ScriptedModel, stored: Any
) -> None:
    page = await open_page()
    await called(page, model, "add_task", title="milk", also=["bread", "eggs", "soap"])
    await called(page, model, "complete_task", task_id=1, also=[2])
    assert [row["status"] for row in stored(TITLES)] == ["completed", "completed", "pending", "pending"]
    await screen.button(cards(page).first, "Undo all: milk").click()
    await expect(cards(page).filter(has_text="Undone")).to_have_count(2)
    assert {row["status"] for row in stored(TITLES)} == {"pending"}
    await called(page, model, "delete_task", task_id=3)
    assert len(stored(TITLES)) == 3
    await screen.button(cards(page).last, "Undo: eggs (deleted)").click()
    await expect(cards(page).last).to_contain_text("Restored")
    await expect(screen.task_list(page).get_by_role("checkbox", name="eggs")).to_be_enabled()
    assert len(stored(TITLES)) == 4


async def test_a_refused_undo_is_told(open_page: OpenPage, model: ScriptedModel, stored: Any) -> None:
    page = await open_page()
    await called(page, model, "add_task", title="milk")
    await called(page, model, "update_task", task_id=1, title="oat milk")
    await screen.button(cards(page).first, "Undo: oat milk").click()
    await expect(page.get_by_role("alert")).to_contain_text("it was changed since: task 1 (oat milk)")
    assert stored(TITLES) == [{"title": "oat milk", "status": "pending"}]


async def test_a_task_is_changed_in_a_form(
    open_page: OpenPage, model: ScriptedModel, violations: Violations, stored: Any
) -> None:
    page = await open_page()
    await called(page, model, "add_task", **DENTIST)
    await screen.button(cards(page), "Edit task: Dentist").click()
    form = cards(page).locator("form")
    await expect(form.get_by_label("Title")).to_be_focused()
    shown = {"Title": "Dentist", "Due": "2099-11-27", "Time": "15:00", "Priority": "high", "Labels": "health"}
    for label, value in shown.items():
        await expect(form.get_by_label(label)).to_have_value(value)
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await violations(page) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await form.get_by_label("Title").fill("Dr. Lee")
    await form.get_by_label("Due").fill("2099-11-30")
    await form.get_by_label("Priority").select_option("Low")
    await form.get_by_label("Labels").fill("health, teeth")
    await screen.button(form, "Save").click()
    await expect(form).to_have_count(0)
    await expect(cards(page)).to_contain_text(
        re.compile("Dr. Lee.*Nov 30, 2099 3:00.PM.*Low.*#health #teeth", re.DOTALL)
    )
    changed = stored("SELECT title, due_on::text, due_time::text, priority, labels FROM tasks")
    details = {"due_on": "2099-11-30", "due_time": "15:00:00", "priority": 3, "labels": ["health", "teeth"]}
    assert changed == [{"title": "Dr. Lee", **details}]


async def test_a_form_is_filled_by_keyboard_and_cancelled(
    open_page: OpenPage, model: ScriptedModel, stored: Any
) -> None:
    page = await open_page()
    await called(page, model, "add_task", **DENTIST)
    await screen.button(cards(page), "Edit task: Dentist").focus()
    await page.keyboard.press("Enter")
    await expect(cards(page).get_by_label("Title")).to_be_focused()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("Dr. Lee")
    await page.keyboard.press("Enter")
    await expect(screen.button(cards(page), "Edit task: Dr. Lee")).to_be_visible()
    assert await page.evaluate("document.activeElement.closest('.widget') !== null"), "where one was"
    assert stored(TITLES) == [{"title": "Dr. Lee", "status": "pending"}]
    await screen.button(cards(page), "Edit task: Dr. Lee").press("Space")
    await expect(cards(page).get_by_label("Title")).to_be_focused()
    await page.keyboard.type("not this")
    await screen.button(cards(page), "Cancel").press("Enter")
    await expect(cards(page).locator("form")).to_have_count(0)
    await expect(cards(page)).to_contain_text("Dr. Lee")
    assert stored(TITLES) == [{"title": "Dr. Lee", "status": "pending"}]


async def test_what_is_written_outlasts_a_refusal_and_a_tick(
    open_page: OpenPage, model: ScriptedModel, stored: Any
) -> None:
    page = await open_page()
    await called(page, model, "add_task", title="milk", also=["bread", "eggs", "soap"])
    shown = screen.task_list(page)
    await screen.button(shown, "Edit task: bread").click()
    await shown.get_by_label("Title").fill("rye bread")
    await shown.get_by_label("Time").fill("15:00")
    await shown.get_by_role("checkbox", name="milk").check()
    await expect(screen.button(shown, "Undo")).to_have_count(0)
    await screen.button(shown, "Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("A time needs a day")
    await expect(shown.get_by_label("Title")).to_have_value("rye bread")
    await shown.get_by_label("Time").fill("")
    await screen.button(shown, "Save").click()
    await expect(shown.get_by_role("checkbox", name="rye bread")).to_be_visible()
    await screen.button(shown, "Edit task: eggs").click()
    await screen.button(shown, "Delete").click()
    await expect(shown.get_by_role("checkbox", name="eggs (deleted)")).to_be_visible()
    await screen.button(shown, "Undo: eggs (deleted)").click()
    await expect(screen.button(shown, "Edit task: eggs")).to_be_visible()
    assert [row["title"] for row in stored(TITLES)] == ["milk", "rye bread", "eggs", "soap"]
