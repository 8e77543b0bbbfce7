"""An answer as it streams: shown, stopped, continued, failed, rated, copied and read."""

import asyncio
from random import Random
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, call, calls, endless_answer, pausing_answer, says
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

ARABIC = "شراء الحليب (2 لتر)"
COPYING = {"permissions": ["clipboard-read", "clipboard-write"]}
LIST_TASKS = calls(call("list_tasks"))
MARKDOWN = """# Plan

1. **milk** and ~~old~~ (~2000 lines)
2. `bread`

| a | b |
|---|---|
| 1 | 2 |

[more](https://example.org/x) 见 https://example.org/a。

```
code
```
"""


async def test_first_conversation(open_page: OpenPage, tasks: TaskApi) -> None:
    page = await open_page()
    await expect(page.get_by_text("What needs doing?")).to_be_visible()
    await screen.button(page, "Call the bank today and buy milk").click()
    await screen.answered(page)
    await expect(page.get_by_role("region", name="Tasks")).to_contain_text("Call the bank")
    assert await tasks.titles() == ["Call the bank", "buy milk"]
    await expect(screen.log(page).get_by_role("group", name="Card")).to_have_count(2)
    await expect(screen.message_box(page)).to_be_focused()

    await screen.say(page, "show all")
    milk = screen.task_list(page).get_by_role("checkbox", name="buy milk")
    await milk.check()
    await expect(screen.task_list(page)).to_contain_text("2 tasks, 1 done")
    await expect(milk).to_be_enabled()
    assert await tasks.titles("done") == ["buy milk"]

    shown = await screen.log(page).inner_text()
    await page.reload()
    await expect(screen.questions(page)).to_have_count(2)
    await expect(screen.log(page)).to_have_text(shown, use_inner_text=True)
    await expect(milk).to_be_checked()


async def _shown(page: Page) -> list[str]:
    parts = screen.log(page).locator("article, [role=group], details")
    return [text.strip() for text in await parts.all_inner_texts()]


async def test_markdown(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": MARKDOWN, "chunk_chars": 3})
    await screen.say(page, "hello")
    answer = screen.answers(page)
    await expect(answer.get_by_role("heading", name="Plan")).to_be_visible()
    await expect(answer.get_by_role("listitem")).to_have_count(2)
    await expect(answer.get_by_role("cell", name="2")).to_be_visible()
    await expect(answer.locator("del")).to_have_text(["old"])
    await expect(answer.locator("pre code")).to_have_text("code\n")
    await expect(answer.get_by_role("link")).to_have_text(["more", "https://example.org/a"])
    link = answer.get_by_role("link", name="more")
    assert await link.get_attribute("href") == "https://example.org/x"
    assert "noopener" in (await link.get_attribute("rel") or "")
    for number, marks in enumerate(([">", "> "], ["1. ", "2. "], ["- ", "* "]), 2):
        await model.script(says("".join(Random(1).choices(marks, k=2_000)) + "deep"))  # which does not repeat itself
        await screen.say(page, "hello")
        await expect(answer).to_have_count(number)
        await expect(answer.last).to_contain_text("deep")  # as text, since it nests too deeply


async def test_stop_keeps_the_text_and_continue_goes_on(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 1280, "height": 800})
    await model.script(endless_answer("one two three"))
    await screen.send(page, "count")
    await expect(screen.answers(page)).to_contain_text("three")
    await screen.button(page, "Stop").click()
    await page.reload()  # at once: the request to stop outlives the page
    await expect(screen.answers(page)).to_have_text("one two three", use_inner_text=True)
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()
    await model.script(says("Eleven."))
    await screen.button(page, "Continue").click()
    await expect(screen.answers(page).last).to_have_text("Eleven.", use_inner_text=True)
    await screen.answered(page)
    await expect(screen.button(page, "Continue")).to_have_count(0)

    # before anything is answered
    await screen.button(page, "New conversation").click()
    await model.script(endless_answer("one two three"))
    sending: list[asyncio.Task[Any]] = []

    async def answer_nothing(route: Route) -> None:
        if sending:
            return await route.fallback()
        return sending.append(asyncio.create_task(route.fetch()))  # the server has it, the page hears nothing

    await screen.on(page, "threads.create", answer_nothing)
    await screen.send(page, "count")
    await model.received_requests(3)
    await screen.button(page, "Stop").click()
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()
    await expect(screen.button(page, "Send")).to_be_visible()
    await asyncio.gather(*sending)  # it has an end
    await page.unroute_all()

    # by Escape
    await screen.button(page, "New conversation").click()
    await model.script(endless_answer("word"))
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    await page.keyboard.press("Escape")
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()
    await expect(screen.button(page, "Send")).to_be_visible()
    await screen.open_history(page)
    await page.keyboard.press("Escape")
    await expect(screen.history(page)).to_have_count(0)


async def test_answer_that_ends_while_its_conversation_is_loaded(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(endless_answer("one two three"))
    await screen.send(page, "count")
    await expect(screen.answers(page)).to_contain_text("three")
    read, ended = asyncio.Event(), asyncio.Event()

    async def answer_late(route: Route) -> None:
        response = await route.fetch()  # the items while the answer is written
        read.set()
        await ended.wait()
        await route.fulfill(response=response)

    async def find_late(route: Route) -> None:
        await ended.wait()
        await route.continue_()

    await screen.on(page, "items.list", answer_late)
    await page.route("**/chats/*?limit=0", find_late)
    other = await open_page(f"/c/{(await page.evaluate('location.pathname')).rpartition('/')[2]}")  # of another browser
    await expect(screen.button(other, "Stop")).to_be_visible()
    await page.reload()
    await asyncio.wait_for(read.wait(), 10)
    await page.unroute("**/chatkit")
    await screen.button(other, "Stop").click()
    await expect(screen.log(other).get_by_text("You stopped this answer.")).to_be_visible()
    ended.set()
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()


async def test_failed_answer_can_be_tried_again(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"status": 401})
    await screen.send(page, "hello")
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(screen.button(page, "Send")).to_be_visible()  # until then, a message would wait for the answer
    await model.script({"text": "Half an answer, then", "eof_after": 3})
    await screen.send(page, "hello again")
    await expect(screen.button(page, "Try again")).to_be_visible()
    await page.reload()
    await model.script(says("Now it works."))
    await screen.button(page, "Try again").click()
    await expect(screen.answers(page).last).to_contain_text("Now it works.")
    await screen.answered(page)
    await expect(screen.button(page, "Try again")).to_have_count(0)


@pytest.mark.parametrize("zone", ["'Etc/Unknown'", "'+03:00'", "undefined"])
async def test_browser_that_does_not_know_its_zone(zone: str, open_page: OpenPage, model: ScriptedModel) -> None:
    async def forget_zone(page: Page) -> None:
        named = f"Object.defineProperty(resolved.call(this), 'timeZone', {{ value: {zone} }})"
        await page.add_init_script(
            "const { resolvedOptions: resolved } = Intl.DateTimeFormat.prototype;"
            f"Intl.DateTimeFormat.prototype.resolvedOptions = function () {{ return {named}; }};"
        )

    page = await open_page(prepare=forget_zone)
    await model.script(says("Hello."))
    await screen.send(page, "hello")
    await screen.answered(page)
    assert "Europe/Berlin" in str((await model.finished_requests())[0]["body"]["messages"]), "the server's zone"


async def test_progress_date_of_the_browsers_zone_and_the_same_answer_after_a_reload(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page(timezone_id="Pacific/Pago_Pago")
    await model.script(add_task("milk"), {**says("Fine."), "hold_after": 0})
    await screen.send(page, "add milk")
    progress = screen.log(page).get_by_text("Added “milk”")
    await expect(progress).to_be_visible()
    await model.release()
    await screen.answered(page)
    await expect(progress).to_have_count(0)
    sent = str((await model.finished_requests())[0]["body"]["messages"])
    assert "2026-11-24" in sent, "the services' clock began at 08:00 UTC on November 25"
    assert "Pacific/Pago_Pago" in sent

    await screen.button(page, "New conversation").click()
    await model.script(
        {**calls(call("add_task", title="a"), text="**Let** me see.", reasoning="Hm."), "chunk_chars": 3},
        LIST_TASKS,
        says("There it is."),
    )
    await screen.say(page, "add a and show it")
    await expect(screen.task_list(page)).to_be_visible()
    live = await _shown(page)
    await page.reload()
    await screen.answered(page)
    assert await _shown(page) == live
    assert len(live) == 7


async def test_thoughts_and_long_lists_unfold_below_the_eyes(
    open_page: OpenPage, model: ScriptedModel, tasks: TaskApi
) -> None:
    await tasks.add_many([f"task {number}" for number in range(60)])
    page = await open_page(viewport={"width": 390, "height": 600})
    await model.script({"reasoning": "A thought.\n\n" * 60, "text": "line\n\n" * 5})
    await screen.say(page, "hello")
    summary = screen.log(page).get_by_text("Thought for")
    await expect(screen.log(page).get_by_text("A thought.").first).to_be_hidden()
    before = await _top(summary)
    await summary.click()
    await expect(screen.log(page).get_by_text("A thought.").first).to_be_visible()
    await screen.message_box(page).fill("a draft")
    assert await _top(summary) == pytest.approx(before, abs=2)
    await model.script(calls(call("list_tasks", limit=60)), says("There."))
    await screen.say(page, "show all")
    boxes = screen.task_list(page).get_by_role("checkbox")
    before = await _top(boxes.nth(19))
    await screen.button(page, "Show more").click()
    await expect(boxes).to_have_count(60)
    await expect(boxes.nth(20)).to_be_focused()
    assert await _top(boxes.nth(19)) == pytest.approx(before, abs=2)
    await expect(screen.button(page, "Newest messages")).to_be_visible()


async def _top(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["y"]


async def test_reader_is_not_moved_by_what_comes_and_all_is_printed(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 800, "height": 500})
    growing = {**pausing_answer("moving\n\n" * 3, "moving\n\n" * 60), "reasoning": "why", "hold_after": 3}
    await model.script(says("line\n\n" * 60), pausing_answer("more\n\n" * 3, "more\n\n" * 60), growing)
    await screen.say(page, "long")
    await screen.send(page, "again")
    await expect(screen.answers(page).last).to_contain_text("more")
    await screen.questions(page).first.scroll_into_view_if_needed()
    await expect(screen.button(page, "Newest messages")).to_be_visible()
    await model.release()
    await screen.answered(page)
    await expect(screen.questions(page).first).to_be_in_viewport()
    log = screen.log(page)
    near_end = await log.evaluate("log => (log.scrollTop = log.scrollHeight - log.clientHeight - 50)")
    await expect(screen.button(page, "Newest messages")).to_be_hidden()
    assert await log.evaluate("log => log.scrollTop") == pytest.approx(near_end, abs=1)
    await log.evaluate("log => (log.scrollTop = 0)")
    await screen.button(page, "Newest messages").click()
    await expect(screen.button(page, "Answer again")).to_be_in_viewport()

    # what is clicked near the end
    await screen.send(page, "and again")
    await expect(screen.answers(page).last).to_contain_text("moving")
    thought = log.locator(".workflow")
    await thought.locator("summary").hover()
    await page.mouse.down()
    before = await _top(thought)
    await model.release()
    await screen.answered(page)
    assert await _top(thought) == before
    await page.mouse.up()
    await expect(thought.get_by_text("why")).to_be_visible()

    await page.set_viewport_size({"width": 600, "height": 500})  # where the conversation is open alone
    await expect(page.get_by_role("region", name="Tasks")).to_be_hidden()
    await page.emulate_media(media="print")
    assert await page.evaluate("document.documentElement.scrollHeight") > 1500
    await expect(screen.message_box(page)).to_be_hidden()


async def test_tasks_are_ticked_while_an_answer_streams(
    open_page: OpenPage, model: ScriptedModel, tasks: TaskApi
) -> None:
    page = await open_page()
    await screen.say(page, "add milk and bread")
    await screen.say(page, "show my list")
    await model.script(pausing_answer("word ", "end"))
    await screen.send(page, "talk to me")
    await expect(screen.answers(page).last).to_contain_text("word")
    await screen.task_list(page).get_by_role("checkbox", name="milk").check()
    await expect(screen.task_list(page)).to_contain_text("2 tasks, 1 done")
    await expect(screen.button(page, "Stop")).to_be_visible()
    await tasks.delete(2)
    bread = screen.task_list(page).get_by_role("checkbox", name="bread")
    await bread.click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(bread).not_to_be_checked()
    # Another look at the list may have found out meanwhile that the task was deleted.
    usable = page.locator("input:not([aria-disabled=true]), input[aria-label$='(deleted)']")
    await expect(bread.and_(usable)).to_have_count(1)


async def test_feedback_is_kept_and_answers_and_code_are_copied(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(**COPYING)
    await model.script(says("Advice."))
    await screen.say(page, "hello")
    good, poor = screen.button(page, "Good answer"), screen.button(page, "Poor answer")
    for clicked, pressed in ((good, ("true", "false")), (poor, ("false", "true")), (poor, ("false", "false"))):
        async with page.expect_response("**/chatkit"):
            await clicked.click()
        await page.reload()
        await expect(good).to_have_attribute("aria-pressed", pressed[0])
        await expect(poor).to_have_attribute("aria-pressed", pressed[1])

    await screen.button(page, "New conversation").click()
    code = "So:\n\n```python\nif a < b:\n    é\n```"
    await model.script(calls(call("list_tasks"), text="Your **list**:"), says(code))
    await screen.say(page, "show my list")
    await screen.button(page, "Copy").last.click()
    await _copied(page, f"Your **list**:\n\n{code}")
    await screen.button(page, "Copy code").click()
    await _copied(page, "if a < b:\n    é")
    await page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new DOMException()))")
    await screen.button(page, "Copy code").click()
    await expect(page.get_by_role("alert")).to_be_visible()


async def _copied(page: Page, text: str) -> None:
    async def is_copied() -> bool:
        return await page.evaluate("navigator.clipboard.readText()") == text

    await until(is_copied)


async def test_texts_have_the_direction_of_their_language(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    blocks = ["# {0}", "{0}", "1. {0}\n2. tea", "> {0}", "```\nif x:\n```", "English"]
    await model.script(add_task(ARABIC, description=ARABIC), says("\n\n".join(blocks).format(ARABIC)))
    await screen.message_box(page).fill(ARABIC)
    assert await _direction(screen.message_box(page)) == "rtl"
    await screen.say(page, ARABIC)
    answer = screen.answers(page)
    card = screen.log(page).get_by_role("group", name="Card").get_by_text(ARABIC)
    for shown in (
        screen.questions(page).get_by_text(ARABIC),
        page.get_by_role("heading", name=ARABIC).first,
        answer.get_by_role("heading"),
        answer.locator("p").first,
        answer.get_by_role("listitem").first,
        answer.locator("blockquote"),
        card.first,
        card.last,
    ):
        assert await _direction(shown) == "rtl"
    for shown in (answer.locator("pre"), answer.get_by_text("English"), answer.get_by_role("listitem").last):
        assert await _direction(shown) == "ltr"
    await screen.open_history(page)
    assert await _direction(screen.button(screen.history(page), ARABIC)) == "rtl"


async def _direction(element: Locator) -> Any:
    return await element.evaluate("element => getComputedStyle(element).direction")
