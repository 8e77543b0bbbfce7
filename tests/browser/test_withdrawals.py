"""A text that claims a change which was not made leaves the chat in mid-answer: nothing jumps, and it is said why."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

CORRECTING = "Correcting this answer…"
LOADING = {"status": 503, "body": {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}}
COPYING = {"permissions": ["clipboard-read", "clipboard-write"]}
CLAIM = "I've added milk to your list.\n\n"
# From now on `stream(event)` sends the events of the next answer.
STREAM = """() => {
    const send = window.fetch;
    const encoder = new TextEncoder();
    window.fetch = (url, init) => {
        if (!String(init?.body).includes("threads.add_user_message")) return send(url, init);
        const body = new ReadableStream({start: (controller) => {
            window.stream = (event) => event
                ? controller.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\\n\\n`))
                : controller.close();
        }});
        return Promise.resolve(new Response(body, {headers: {"Content-Type": "text/event-stream"}}));
    };
}"""


def heard(page: Page) -> Locator:
    return page.locator("todo-chat > [aria-live=polite]")


def progress(page: Page) -> Locator:
    return screen.log(page).locator(".progress")


async def stream(page: Page, *events: dict[str, Any] | None) -> None:
    for event in events:
        await page.evaluate(f"void stream({json.dumps(event)})")


def grown(item_id: str, text: str) -> list[dict[str, Any]]:
    item = {"id": item_id, "type": "assistant_message", "created_at": "2026-11-25T08:00:00Z", "content": []}
    content = {"type": "output_text", "text": text, "annotations": []}
    update = {"type": "assistant_message.content_part.added", "content_index": 0, "content": content}
    return [
        {"type": "thread.item.added", "item": item},
        {"type": "thread.item.updated", "item_id": item_id, "update": update},
    ]


async def claimed(page: Page, claim: str) -> None:
    """An answer of which the claim has come."""
    await screen.send(page, "add milk")
    question = {"id": "msg_2", "type": "user_message", "content": [{"type": "input_text", "text": "add milk"}]}
    await screen.until(page, "window.stream")
    await stream(page, {"type": "client_effect", "name": "todo.interaction", "data": {"interaction_id": "run_2"}})
    await stream(page, {"type": "thread.item.done", "item": {**question, "inference_options": {}}})
    await stream(page, *grown("msg_3", claim))
    await expect(screen.answers(page).last).to_contain_text("added milk")


async def top(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["y"]


async def test_withdrawn_text_goes_without_a_jump(
    open_page: OpenPage, model: ScriptedModel, violations: Violations
) -> None:
    page = await open_page(viewport={"width": 1000, "height": 640})
    await model.script(says("line\n\n" * 30))
    await screen.say(page, "hello")
    await page.evaluate(STREAM)
    question = screen.questions(page).last
    await claimed(page, CLAIM * 5)
    before, text = await top(question), await top(screen.answers(page).last)
    await stream(page, {"type": "thread.item.removed", "item_id": "msg_3"})
    await expect(progress(page)).to_have_text(CORRECTING)
    await expect(heard(page)).to_have_text(CORRECTING)
    await expect(screen.log(page).get_by_text("added milk")).to_have_count(0)
    assert await top(question) == pytest.approx(before, abs=2)
    assert await top(progress(page)) == pytest.approx(text, abs=2)
    assert await violations(page) == []
    second = "Nothing was changed."
    await stream(page, *grown("msg_4", second))
    await expect(screen.answers(page).last).to_have_text(second, use_inner_text=True)
    await expect(progress(page)).to_have_count(0)
    assert await top(question) == pytest.approx(before, abs=2)
    done = {
        **grown("msg_4", second)[0]["item"],
        "content": [{"type": "output_text", "text": second, "annotations": []}],
    }
    await stream(page, {"type": "thread.item.done", "item": done}, None)
    await screen.answered(page)
    await expect(heard(page)).to_have_text(f"Assistant: {second}")
    assert await top(question) == pytest.approx(before, abs=2)


@pytest.mark.parametrize("up", [0, 900], ids=["at the end", "above"])
async def test_long_withdrawn_text_leaves_the_question_in_sight(up: int, open_page: OpenPage) -> None:
    page = await open_page(viewport={"width": 390, "height": 640})
    await screen.say(page, "hello")
    await page.evaluate(STREAM)
    await claimed(page, CLAIM * 650)  # 20,000 characters
    await screen.log(page).evaluate(f"log => (log.scrollTop -= {up})")
    await stream(page, {"type": "thread.item.removed", "item_id": "msg_3"})
    await expect(progress(page)).to_be_in_viewport()
    await expect(screen.questions(page).last).to_be_in_viewport()
    await stream(page, *grown("msg_4", "Nothing was changed."), {"type": "error", "message": "It failed."}, None)
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(progress(page)).to_have_count(0)
    assert await screen.log(page).evaluate("log => log.scrollHeight") < 3000


async def test_progress_that_lasts_has_a_clock(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "hello")
    await page.evaluate(STREAM)
    await page.clock.install()
    await claimed(page, CLAIM)
    await stream(page, {"type": "thread.item.removed", "item_id": "msg_3"})
    loading = {"type": "progress_update", "text": "The model is loading…"}
    await stream(page, loading)
    await expect(progress(page)).to_have_text("The model is loading…")
    await expect(page.get_by_role("timer")).to_have_count(0)
    await page.clock.run_for(60_000)
    await stream(page, loading)  # said again, it is the same
    await page.clock.run_for(62_500)
    await expect(progress(page).get_by_text("The model is loading…")).to_be_visible()
    await expect(page.get_by_role("timer")).to_have_text(re.compile(r"^2:\d\d$"))  # it runs on meanwhile
    await stream(page, *grown("msg_4", "Now."))
    await expect(progress(page)).to_have_count(0)


async def test_progress_while_the_model_loads(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(*[LOADING] * 12, says("Hello."))
    await screen.send(page, "hello")
    await expect(progress(page)).to_have_text("The model is loading…")
    await expect(progress(page)).to_contain_text("The model is loading, ")
    await expect(page.get_by_role("timer")).to_have_count(0)  # the server says it already
    await screen.answered(page)
    await expect(screen.answers(page)).to_have_text("Hello.", use_inner_text=True)
    await expect(progress(page)).to_have_count(0)


async def test_nothing_of_a_withdrawn_text_comes_back(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(**COPYING)
    await model.script(says("I've added milk to your list."), {**says("Nothing was changed."), "hold_after": 0})
    await screen.send(page, "add milk")
    await expect(progress(page)).to_have_text(CORRECTING)
    await expect(heard(page)).to_have_text(CORRECTING)
    await expect(screen.answers(page)).to_have_count(0)
    await page.reload()  # its reader joins in the middle
    await expect(screen.questions(page)).to_be_visible()
    await model.release()
    await screen.answered(page)
    await expect(screen.answers(page)).to_have_text(["Nothing was changed."], use_inner_text=True)
    await screen.button(page, "Copy").click()
    await until(lambda: page.evaluate("navigator.clipboard.readText().then((text) => text === 'Nothing was changed.')"))
    await page.reload()
    await expect(screen.answers(page)).to_have_text(["Nothing was changed."], use_inner_text=True)
    assert "I've added" not in await page.content()
    assert "added" not in await page.title()
    await screen.open_history(page)
    await page.get_by_role("searchbox", name="Search conversations").fill("I've added")
    await expect(page.get_by_text("No conversation title matches.")).to_be_visible()


async def test_second_claim_has_a_notice(
    open_page: OpenPage, model: ScriptedModel, tasks: TaskApi, violations: Violations
) -> None:
    page = await open_page(viewport={"width": 390, "height": 800})
    await model.script(says("I've added milk to your list."), says("I've added milk, as you asked."))
    await screen.say(page, "add milk")
    await expect(screen.answers(page)).to_have_text(["I've added milk, as you asked."], use_inner_text=True)
    notice = screen.log(page).get_by_text("Nothing was changed. Say it again")
    await expect(notice).to_have_count(1)
    assert await violations(page) == []
    await page.reload()
    await expect(notice).to_have_count(1)
    await expect(screen.button(page, "Continue")).to_have_count(0)  # nothing was cut off
    assert await violations(page) == []
    await model.script(calls(call("add_task", title="milk")), says("Added."))
    await screen.button(page, "Try again").click()
    await expect(screen.log(page).get_by_text("Added 1", exact=True)).to_be_visible()
    assert await tasks.titles() == ["milk"]
