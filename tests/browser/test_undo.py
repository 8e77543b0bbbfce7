"""Ctrl+Z and Ctrl+Shift+Z: the last changes, also those of the assistant and of other tabs."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser import screen, task_list
from tests.browser.conftest import OpenPage
from tests.browser.task_list import API, TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

UNDO, REDO = "ControlOrMeta+z", "ControlOrMeta+Shift+z"


async def press(page: Page, key: str, said: str) -> None:
    """Outside text fields, and waits until the notice says this."""
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press(key)
    await expect(task_list.notice(page)).to_contain_text(said)


async def test_several_changes_are_undone_and_redone(open_list: OpenPage, tasks: TaskApi) -> None:
    for title in ("milk", "bread"):
        await tasks.add(title, due="today")
    page = await open_list()
    await task_list.tick(page, "milk").click()
    await tasks.until("done", ["milk"])
    await task_list.title_of(page, "bread").focus()
    await page.keyboard.press("Delete")
    await tasks.until("deleted", ["bread"])
    await screen.button(task_list.notice(page), "Dismiss").click()
    await press(page, UNDO, "Undone: “bread”")
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await press(page, UNDO, "Undone: “milk”")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])
    assert await tasks.titles("done") == await tasks.titles("deleted") == []
    await press(page, REDO, "Redone: “milk”")
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await press(page, REDO, "Redone: “bread”")
    await expect(task_list.titles(page)).to_have_count(0)
    await press(page, REDO, "nothing to redo")
    await press(page, UNDO, "Undone: “bread”")
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await screen.button(task_list.notice(page), "Redo").click()
    await expect(task_list.titles(page)).to_have_count(0)
    await press(page, UNDO, "Undone: “bread”")
    await tasks.add("tea", due="today")
    await press(page, REDO, "nothing to redo")
    await expect(task_list.titles(page)).to_have_text(["bread", "tea"])


async def test_changes_of_the_assistant_and_of_another_tab_are_undone(
    open_list: OpenPage, tasks: TaskApi, model: ScriptedModel
) -> None:
    page = await open_list()
    await model.script(calls(call("add_task", title="milk", due="2026-01-01", also=["bread"])), says("Fine."))
    await screen.say(page, "do it")
    await expect(task_list.titles(page)).to_have_count(2)
    other = await page.context.new_page()
    await other.goto("/today")
    await task_list.tick(other, "milk").click()
    await tasks.until("done", ["milk"])
    await press(page, UNDO, "Undone: “milk”")
    await tasks.until("done", [])
    await press(page, UNDO, "Undone: “milk”, “bread”")
    await expect(task_list.titles(page)).to_have_count(0)
    assert await tasks.titles() == []
    await press(page, REDO, "Redone: “milk”, “bread”")
    await expect(task_list.titles(page)).to_have_count(2)


async def test_undo_in_a_text_field_is_the_fields_own(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.tick(page, "milk").click()
    await tasks.until("done", ["milk"])
    await task_list.adding(page).focus()
    await page.keyboard.type("bread")
    await page.keyboard.press(UNDO)
    await expect(task_list.adding(page)).to_have_value("")
    await page.keyboard.press(UNDO)
    assert await tasks.titles("done") == ["milk"]


async def test_in_a_field_in_which_nothing_was_typed_it_undoes_the_last_change(
    open_list: OpenPage, tasks: TaskApi
) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await task_list.tick(page, "milk").click()
    await tasks.until("done", ["milk"])
    await page.keyboard.press("q")
    await expect(task_list.adding(page)).to_be_focused()
    await page.keyboard.press(UNDO)
    await expect(task_list.notice(page)).to_contain_text("Undone: “milk”")
    await page.keyboard.press(REDO)
    await expect(task_list.notice(page)).to_contain_text("Redone: “milk”")
    await page.keyboard.press("/")
    await page.keyboard.press("Backspace")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("searchbox", name="Search tasks")).to_be_focused()
    await page.keyboard.press(UNDO)
    await expect(task_list.notice(page)).to_contain_text("Undone: “milk”")
    await task_list.adding(page).fill("bread")
    await page.keyboard.press("Enter")
    await expect(task_list.titles(page)).to_have_count(2)
    await tasks.until("today", ["milk", "bread"])
    await page.keyboard.press(UNDO)
    await expect(task_list.notice(page)).to_contain_text("Undone: “bread”")
    await expect(task_list.adding(page)).to_have_value("")
    assert await tasks.titles() == ["milk"]


async def test_pressed_often_it_undoes_one_after_the_other(open_list: OpenPage, tasks: TaskApi) -> None:
    for title in ("milk", "bread", "tea"):
        await tasks.add(title, due="today")
    page = await open_list()
    for title in ("milk", "bread", "tea"):
        await task_list.tick(page, title).click()
    await page.evaluate("document.activeElement.blur()")
    for _ in range(3):
        await page.keyboard.press(UNDO)
    await expect(task_list.notice(page)).to_contain_text("Undone: “milk”")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread", "tea"])
    assert await tasks.titles("done") == []


async def test_unsent_change_is_withdrawn_and_nothing_is_undone_offline(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    page = await open_list()
    await page.route(API, lambda route: route.abort())
    await expect(page.get_by_text("Cannot reach the server.")).to_be_visible()
    await task_list.tick(page, "milk").click()
    await expect(task_list.tick(page, "milk")).to_be_checked()
    await press(page, UNDO, "Undone: Completed: “milk”")
    await expect(task_list.tick(page, "milk")).not_to_be_checked()
    await press(page, UNDO, "The server cannot be reached")
    await page.unroute_all()
    await expect(page.get_by_text("Cannot reach the server.")).to_have_count(0)
    assert await tasks.titles("done") == []


async def test_late_answer_to_an_older_change_leaves_the_notice(open_list: OpenPage, tasks: TaskApi) -> None:
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    page = await open_list()
    answered = asyncio.Event()

    async def late(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    await page.route(re.compile(r"/tasks/\d+$"), late)
    await task_list.tick(page, "milk").click()
    await task_list.tick(page, "bread").click()  # not sent before the other one is answered
    await press(page, UNDO, "Undone: Completed: “bread”")
    answered.set()
    await tasks.until("done", ["milk"])
    await expect(task_list.titles(page)).to_have_text(["bread"])
    await expect(task_list.notice(page)).to_contain_text("Undone: Completed: “bread”")


async def test_what_cannot_be_undone_says_why_and_the_one_before_is_next(open_list: OpenPage, tasks: TaskApi) -> None:
    page = await open_list()
    await press(page, UNDO, "There is nothing left to undo")
    await tasks.add("milk", due="today")
    await tasks.add("bread", due="today")
    await expect(task_list.titles(page)).to_have_text(["milk", "bread"])

    async def reject(route: Route) -> None:
        await route.fulfill(status=409, json={"error": "It was changed since."})

    await page.route("**/tasks/undo", reject)
    await press(page, UNDO, "It was changed since. Undo again to undo the change before it.")
    await page.unroute_all()
    await press(page, UNDO, "Undone: “milk”")
    await expect(task_list.titles(page)).to_have_text(["bread"])
