"""The built-in chat: a first conversation, and what one does with its answers."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from playwright.async_api import expect

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

Tasks = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def tasks(database_url: str) -> Tasks:
    def read() -> list[tuple[str, str]]:
        with psycopg.connect(as_admin(database_url)) as connection:
            return connection.execute("SELECT title, status FROM tasks ORDER BY title").fetchall()

    return read


async def test_arrow_up_recalls_the_last_message_into_the_empty_composer(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.message_box(page).press("ArrowUp")
    await expect(screen.message_box(page)).to_have_value("")
    await screen.say(page, "add milk")
    await screen.message_box(page).press("ArrowUp")
    await expect(screen.message_box(page)).to_have_value("add milk")
    await page.keyboard.type(" and bread")
    await expect(screen.message_box(page)).to_have_value("add milk and bread")
    await screen.message_box(page).press("ArrowUp")
    await expect(screen.message_box(page)).to_have_value("add milk and bread")


async def test_a_first_conversation(open_page: OpenPage, tasks: Tasks) -> None:
    page = await open_page()
    await expect(page.get_by_role("heading", name="To-do assistant")).to_be_visible()
    await expect(page.get_by_text("What is there to do?")).to_be_visible()
    about = await screen.open_about(page)
    await expect(about).to_contain_text("The offline model answers")
    await expect(about).to_contain_text("Nobody is checked here")
    await expect(about).to_contain_text("Built-in chat")
    await page.keyboard.press("Escape")
    await screen.button(page, "Add call the bank today and buy milk").click()
    await screen.answered(page)
    await expect(page.get_by_role("region", name="Tasks")).to_contain_text("call the bank")
    assert tasks() == [("buy milk", "pending"), ("call the bank", "pending")]
    await expect(screen.log(page).get_by_role("group", name="Card")).to_have_count(2)
    await expect(screen.message_box(page)).to_be_focused()

    await screen.say(page, "show all")
    await screen.task_list(page).get_by_role("checkbox", name="buy milk").check()
    await expect(screen.task_list(page)).to_contain_text("2 tasks, 1 done")
    await expect(screen.task_list(page).get_by_role("checkbox", name="buy milk")).to_be_enabled()
    assert ("buy milk", "completed") in tasks()

    seen = await screen.log(page).inner_text()
    await page.reload()
    await expect(screen.questions(page)).to_have_count(2)
    assert await screen.log(page).inner_text() == seen
    await expect(screen.task_list(page).get_by_role("checkbox", name="buy milk")).to_be_checked()
    await expect(page.get_by_role("log").get_by_text("HiddenContext")).to_have_count(0)


async def test_stop_in_mid_answer_keeps_what_was_said(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "one two three four five six seven eight nine ten " * 20, "token_delay": 0.05})
    await screen.send(page, "count")
    await expect(screen.answers(page)).to_contain_text("three")
    await screen.button(page, "Stop").click()
    await expect(screen.button(page, "Send")).to_be_visible()
    await expect(screen.answers(page)).to_contain_text("three")
    await page.reload()
    await expect(screen.answers(page)).to_contain_text("one two three")
    await expect(screen.answers(page)).not_to_contain_text("one two three four five six seven eight nine ten " * 19)
    await expect(screen.log(page).get_by_text("This answer was stopped before its end.")).to_be_visible()
    await model.script({"text": "Eleven."})
    await screen.button(page, "Continue").click()
    await expect(screen.answers(page).last).to_have_text("Eleven.", use_inner_text=True)
    await expect(screen.questions(page).last).to_contain_text("Continue")
    await screen.answered(page)
    await expect(screen.log(page).get_by_text("This answer was stopped before its end.")).to_be_visible()
    await expect(screen.button(page, "Continue")).to_have_count(0)


async def test_a_running_answer_goes_on_over_a_reload(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "slow " * 100 + "end", "token_delay": 0.05, "chunk_chars": 5})
    await screen.send(page, "slowly")
    await expect(screen.answers(page)).to_contain_text("slow slow")
    await page.reload()
    await expect(screen.answers(page)).to_contain_text("slow slow")
    await expect(screen.button(page, "Stop")).to_be_visible()
    other = await open_page()
    await screen.open_history(other)
    await screen.button(screen.history(other), "slowly").click()
    for shown in (page, other):
        await screen.answered(shown)
        await expect(screen.answers(shown)).to_have_text(["slow " * 100 + "end"], use_inner_text=True)
        await expect(screen.questions(shown)).to_have_count(1)
    await screen.say(page, "add milk")


async def test_an_answer_that_is_followed_can_be_stopped(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "slow " * 500, "token_delay": 0.05})
    await screen.send(page, "slowly")
    await expect(screen.answers(page)).to_contain_text("slow slow")
    await page.reload()
    await screen.button(page, "Stop").click()
    await expect(screen.log(page).get_by_text("This answer was stopped before its end.")).to_be_visible()
    await expect(screen.button(page, "Send")).to_be_visible()
    await expect(screen.answers(page)).to_contain_text("slow")


async def test_escape_stops_too(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "word " * 500, "token_delay": 0.05})
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    await screen.message_box(page).press("Escape")
    await expect(screen.button(page, "Send")).to_be_visible()


async def test_an_answer_can_be_given_again(open_page: OpenPage, model: ScriptedModel, tasks: Tasks) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await model.script({"text": "Another answer."})
    await screen.button(page, "Answer again").click()
    await expect(screen.answers(page)).to_have_text(["Another answer."], use_inner_text=True)
    await screen.answered(page)
    assert tasks() == [("milk", "pending")]
    await page.reload()
    await expect(screen.answers(page)).to_have_text(["Another answer."], use_inner_text=True)
    await expect(screen.questions(page)).to_have_count(1)


async def test_a_failed_answer_says_so_and_can_be_tried_again(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"status": 401}, {"text": "Now it works."})
    await screen.send(page, "hello")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("model is not set up correctly")
    await model.reset()
    await model.script({"text": "Half an answer, then", "eof_after": 3}, {"text": "Now it works."})
    await screen.send(page, "hello again")
    await expect(alert).to_contain_text("cut off")
    await page.reload()
    await expect(screen.log(page).get_by_text("cut off")).to_have_count(1)
    await screen.button(page, "Try again").click()
    await expect(screen.answers(page).last).to_contain_text("Now it works.")
    await screen.answered(page)
    await expect(screen.log(page).get_by_text("cut off")).to_have_count(0)


async def test_feedback_and_copy(open_page: OpenPage, database_url: str, model: ScriptedModel) -> None:
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await model.script({"text": "**Bold** advice."})
    await screen.say(page, "hello")
    await screen.button(page, "Good answer").click()
    await expect(screen.button(page, "Good answer")).to_have_attribute("aria-pressed", "true")
    await screen.button(page, "Copy").click()
    assert await page.evaluate("navigator.clipboard.readText()") == "**Bold** advice."
    assert await _stored_feedback(database_url) == "positive"
    await page.reload()
    await expect(screen.button(page, "Good answer")).to_have_attribute("aria-pressed", "true")
    await screen.button(page, "Poor answer").click()
    await expect(screen.button(page, "Good answer")).to_have_attribute("aria-pressed", "false")
    assert await _stored_feedback(database_url) == "negative"
    await screen.button(page, "Poor answer").click()
    await expect(screen.button(page, "Poor answer")).to_have_attribute("aria-pressed", "false")
    assert await _stored_feedback(database_url) is None
    await page.reload()
    await expect(screen.button(page, "Poor answer")).to_have_attribute("aria-pressed", "false")


async def _stored_feedback(database_url: str) -> str | None:
    async with await psycopg.AsyncConnection.connect(as_admin(database_url)) as connection:
        cursor = await connection.execute("SELECT feedback FROM messages WHERE kind = 'assistant_message'")
        ((feedback,),) = await cursor.fetchall()
        return feedback


async def test_markdown_is_rendered_as_it_streams(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    text = "# Plan\n\n1. **milk**\n2. `bread`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[more](https://example.org/x)\n\n```\ncode\n```\n"
    await model.script({"text": text, "token_delay": 0.005})
    await screen.say(page, "hello")
    answer = screen.answers(page)
    await expect(answer.get_by_role("heading", name="Plan")).to_be_visible()
    await expect(answer.get_by_role("listitem")).to_have_count(2)
    await expect(answer.get_by_role("cell", name="2")).to_be_visible()
    link = answer.get_by_role("link", name="more")
    assert await link.get_attribute("href") == "https://example.org/x"
    assert "noopener" in (await link.get_attribute("rel") or "")
    await expect(answer.locator("pre code")).to_have_text("code\n")


async def test_progress_is_told_and_then_gone(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}, {"text": "Done.", "delay": 1.0}
    )
    await screen.send(page, "add milk")
    await expect(screen.log(page).get_by_text("Added “milk”")).to_be_visible()
    await screen.answered(page)
    await expect(screen.log(page).get_by_text("Added “milk”")).to_have_count(0)


async def test_reasoning_is_folded_away(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"reasoning": "They want milk.", "text": "Yes."})
    await screen.say(page, "hello")
    await expect(screen.log(page).get_by_text("They want milk.")).to_be_hidden()
    await screen.log(page).get_by_text("Thought for").click()
    await expect(screen.log(page).get_by_text("They want milk.")).to_be_visible()


async def test_the_draft_outlives_a_reload(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.message_box(page).fill("remind me of")
    await page.reload()
    await expect(screen.message_box(page)).to_have_value("remind me of")
    await screen.message_box(page).press("Shift+Enter")
    await expect(screen.message_box(page)).to_have_value("remind me of\n")
    await expect(screen.questions(page)).to_have_count(0)


async def test_a_message_that_is_too_long_is_not_sent(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.send(page, "x" * 8001)
    await expect(page.get_by_text("8,000")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(0)
    await expect(screen.message_box(page)).to_have_value("x" * 8001)


async def test_a_tick_works_while_an_answer_streams_and_a_lost_task_is_told(
    open_page: OpenPage, model: ScriptedModel, database_url: str
) -> None:
    page = await open_page()
    await screen.say(page, "add milk and bread")
    await screen.say(page, "show my list")
    await model.script({"text": "word " * 100, "token_delay": 0.05})
    await screen.send(page, "talk to me")
    await expect(screen.answers(page).last).to_contain_text("word")
    await screen.task_list(page).get_by_role("checkbox", name="milk").check()
    await expect(screen.task_list(page)).to_contain_text("2 tasks, 1 done")
    await expect(screen.button(page, "Stop")).to_be_visible()
    with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
        connection.execute("DELETE FROM tasks WHERE title = 'bread'")
    bread = screen.task_list(page).get_by_role("checkbox", name="bread")
    await bread.click()
    await expect(page.get_by_role("alert")).to_contain_text("Ask for the list")
    await expect(bread).not_to_be_checked()
    await expect(bread).to_be_enabled()


async def test_live_and_after_a_reload_the_same_is_shown(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(
        {"reasoning": "Hm.", "text": "Let me see.", "tool_calls": [{"name": "add_task", "arguments": {"title": "a"}}]},
        {"tool_calls": [{"name": "list_tasks", "arguments": {}}]},
        {"text": "There it is."},
    )
    await screen.say(page, "add a and show it")
    live = await _shown(page)
    await page.reload()
    await screen.answered(page)
    assert await _shown(page) == live
    assert len(live) == 6


async def _shown(page: Any) -> list[str]:
    return [text.strip() for text in await screen.log(page).locator("article, [role=group], details").all_inner_texts()]
