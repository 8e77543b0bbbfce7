"""What seldom happens: refusals, full storage, two troubles at once, and where the focus goes."""

import asyncio
import json

import pytest
from playwright.async_api import Route, expect

from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

REFUSAL = {"status": 429, "json": {"error": "Not now, please."}}
FULL = """
const set = Storage.prototype.setItem;
Storage.prototype.setItem = function (key, value) {
  if (value.length > 3) throw new DOMException('full', 'QuotaExceededError');
  set.call(this, key, value);
};
"""
GROW = """async () => {
  const { markdown, growing, load } = await import('/web/chat/markdown.js');
  await load();
  const block = 'Some **bold** text, [a link](https://example.org), `code`.\\n\\n- one\\n- two\\n\\n|a|\\n|-|\\n\\n';
  const text = block.repeat(30_000 / block.length);
  const timed = (work) => { const start = performance.now(); work(); return performance.now() - start; };
  timed(() => markdown(text));
  const whole = timed(() => markdown(text));
  return [whole, timed(() => { for (let end = 0; end <= text.length; end += 100) growing(text.slice(0, end)); })];
}"""
COMPARE = """async () => {
  const { markdown, growing, load } = await import('/web/chat/markdown.js');
  await load();
  const { render } = await import('/web/vendor/lit-html/lit-html.js');
  const shown = (drawn) => {
    const place = document.createElement('div');
    render(drawn, place);
    return place.innerHTML.replace(/<!--.*?-->/g, '');
  };
  const text = '# A\\n\\nb\\n===\\n\\n- c\\n\\n- d\\n\\n  e\\n\\n1. f\\n2. g\\n\\n> h\\ni\\n\\n```js\\n\\nj\\n```\\n'
    + '|k|l|\\n|-|-|\\n|m|n|\\n\\n* * *\\n\\n<b>o</b>\\n\\n    code\\n\\np\\nq  \\nr';
  const beginnings = [...text].map((_, at) => text.slice(0, at + 1));
  return beginnings.filter((part) => shown(growing(part)) !== shown(markdown(part)));
}"""
BLOCKED = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"


async def refuse(route: Route) -> None:
    await route.fulfill(**REFUSAL)


@pytest.mark.parametrize("script", [FULL, BLOCKED], ids=["full", "blocked"])
async def test_one_can_write_though_nothing_can_be_stored(open_page: OpenPage, script: str) -> None:
    page = await open_page(prepare=lambda page: page.add_init_script(script))
    await screen.message_box(page).press_sequentially("add milk")
    await expect(screen.message_box(page)).to_have_value("add milk")
    await screen.message_box(page).press("Enter")
    await screen.answered(page)
    await expect(screen.message_box(page)).to_have_value("")


async def test_writing_in_one_tab_does_not_change_what_is_written_in_the_other(open_page: OpenPage) -> None:
    first = await open_page()
    second = await first.context.new_page()
    await second.goto("/?ui=built-in")
    await screen.message_box(first).fill("in the first")
    await screen.message_box(second).fill("in the second")
    await screen.button(first, "Conversations").click()
    await expect(screen.message_box(first)).to_have_value("in the first")


async def test_a_refused_retry_keeps_the_answer(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script({"text": "The first answer."})
    await screen.say(page, "hello")
    await screen.on(page, "threads.retry_after_item", refuse)
    await screen.button(page, "Answer again").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    await expect(screen.answers(page)).to_contain_text("The first answer.")


async def test_a_refused_rename_or_delete_changes_nothing(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.message_box(page).fill("a draft")
    await screen.on(page, "threads.update", refuse)
    await screen.on(page, "threads.delete", refuse)
    await screen.open_history(page)
    await screen.button(screen.history(page), "Rename add milk").click()
    await screen.history(page).get_by_role("textbox", name="Title").fill("Dairy")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    await expect(page.get_by_role("heading", name="add milk")).to_be_visible()
    await screen.button(page, "Dismiss").click()
    await screen.button(screen.history(page), "Delete add milk").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("a draft")


async def test_a_message_lost_while_another_conversation_is_open_is_given_back(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    left = asyncio.Event()

    async def lose(route: Route) -> None:
        await left.wait()
        await route.abort()

    await screen.on(page, "threads.add_user_message", lose)
    await screen.send(page, "add bread")
    await expect(screen.questions(page)).to_have_count(2)
    await screen.button(page, "New conversation").click()
    left.set()
    await expect(page.get_by_text("Connected again.")).to_be_visible()
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(screen.message_box(page)).to_have_value("add bread")


async def test_a_message_whose_fate_cannot_be_asked_for_is_given_back(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.on(page, "threads.add_user_message", lambda route: route.abort())
    await screen.on(page, "items.list", refuse)
    await screen.send(page, "add bread")
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    await expect(screen.message_box(page)).to_have_value("add bread")
    await expect(screen.button(page, "Send")).to_be_enabled()


async def test_a_lost_answer_is_noticed_though_a_tick_failed_meanwhile(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.say(page, "show my list")
    ticked = asyncio.Event()

    async def end_early(route: Route) -> None:
        await ticked.wait()
        frame = {"type": "stream_options", "stream_options": {"allow_cancel": True}}
        await route.fulfill(content_type="text/event-stream", body=f"data: {json.dumps(frame)}\n\n")

    await screen.on(page, "threads.add_user_message", end_early)
    await screen.on(page, "threads.custom_action", refuse)
    await screen.send(page, "hello")
    await screen.task_list(page).get_by_role("checkbox", name="milk").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not now")
    ticked.set()
    await expect(page.get_by_text("Connected again.")).to_be_visible()
    await expect(screen.message_box(page)).to_have_value("hello")


async def test_a_late_reply_does_not_undo_what_is_newer(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.say(page, "show my list")
    ticked = asyncio.Event()

    async def reply_late(route: Route) -> None:
        response = await route.fetch()
        await ticked.wait()
        await route.fulfill(response=response)

    await screen.on(page, "items.list", reply_late)
    await page.evaluate("void (window.updated = document.querySelector('todo-chat').fetchUpdates())")
    box = screen.task_list(page).get_by_role("checkbox", name="milk")
    await box.check()
    await expect(screen.task_list(page)).to_contain_text("1 done")
    ticked.set()
    await page.evaluate("window.updated")
    await expect(box).to_be_checked()


async def test_a_refused_clipboard_is_told(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new DOMException()))")
    await screen.button(page, "Copy").click()
    await expect(page.get_by_role("alert")).to_contain_text("not let")


@pytest.mark.parametrize("text", [">" * 3000 + " deep", "1. " * 1500 + "deep", "- " * 1500 + "deep"])
async def test_deeply_nested_markdown_is_shown_as_text(open_page: OpenPage, model: ScriptedModel, text: str) -> None:
    page = await open_page()
    await model.script({"text": text})
    await screen.say(page, "hello")
    await expect(screen.answers(page)).to_contain_text("deep")
    await screen.say(page, "add milk")


async def test_a_long_answer_costs_little_more_while_it_streams(open_page: OpenPage) -> None:
    page = await open_page()
    whole, growing = await page.evaluate(f"({GROW})()")
    assert growing < 25 * max(whole, 10), "300 drawings of a growing text must not each read all of it again"


async def test_a_growing_answer_looks_like_the_whole_one(open_page: OpenPage) -> None:
    page = await open_page()
    assert await page.evaluate(f"({COMPARE})()") == []


async def test_the_focus_is_never_lost(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 1000, "height": 600})
    for _ in range(2):
        await screen.say(page, "add " + ", ".join(f"t{number}" for number in range(12)))
    await model.script({"tool_calls": [{"name": "list_tasks", "arguments": {}}]}, {"text": "line\n\n" * 40})
    await screen.say(page, "all")
    lost = "document.activeElement === document.body || document.activeElement.matches(':disabled')"
    tasks = screen.task_list(page).last
    await screen.button(page, "Show more").press("Enter")
    await expect(tasks.get_by_role("checkbox")).to_have_count(24)
    assert not await page.evaluate(lost)
    await tasks.get_by_role("checkbox").first.press("Space")
    await expect(tasks).to_contain_text("1 done")
    assert not await page.evaluate(lost)
    await screen.button(page, "Newest").press("Enter")
    await expect(screen.button(page, "Newest")).to_have_count(0)
    assert not await page.evaluate(lost)
    await screen.button(page, "Answer again").press("Enter")
    await screen.answered(page)
    assert not await page.evaluate(lost)


async def test_an_answer_is_copied_as_a_whole(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk and bread")
    await expect(screen.log(page).get_by_role("group", name="Card")).to_have_count(2)
    await expect(screen.button(page, "Copy")).to_have_count(1)
    await screen.say(page, "show my list")
    await expect(screen.button(page, "Copy")).to_have_count(2)


async def test_a_printed_conversation_is_all_there(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 800, "height": 500})
    await model.script({"text": "line\n\n" * 60})
    await screen.say(page, "long")
    await page.emulate_media(media="print")
    assert await page.evaluate("document.documentElement.scrollHeight") > 1500
    await expect(screen.message_box(page)).to_be_hidden()


async def test_a_small_screen_says_plainly_that_it_is_no_ai(open_page: OpenPage) -> None:
    page = await open_page(viewport={"width": 390, "height": 800})
    await expect(page.get_by_text("No AI", exact=True)).to_be_visible()
    await expect(page.get_by_text("LLM_API_KEY=")).to_be_hidden()
    about = await screen.open_about(page)
    await about.get_by_text("Set up a model").click()
    await expect(page.get_by_text("LLM_API_KEY=")).to_be_visible()
