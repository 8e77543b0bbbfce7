"""What one reads: long lists, code, texts of either direction, and what is read out."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.scripted_model import ScriptedModel
from tests.web import screen
from tests.web.conftest import OpenPage

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

ARABIC = "شراء الحليب (2 لتر)"
COPYING = {"permissions": ["clipboard-read", "clipboard-write"]}


async def long_list(page: Page, model: ScriptedModel, count: int) -> None:
    """A conversation that ends with a list of so many tasks."""
    adding = [{"name": "add_task", "arguments": {"title": f"task {number}"}} for number in range(count)]
    await model.script({"tool_calls": adding}, {"text": "Added."})
    await screen.say(page, "many")
    await screen.button(page, "New conversation").click()
    await model.script({"tool_calls": [{"name": "list_tasks", "arguments": {"limit": count}}]}, {"text": "There."})
    await screen.say(page, "show all")
    await expect(screen.task_list(page)).to_contain_text(f"{count} tasks")


async def top_of(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["y"]


async def direction(element: Locator) -> str:
    return await element.evaluate("element => getComputedStyle(element).direction")


@pytest.mark.parametrize("by", ["click", "key"])
async def test_showing_more_of_a_list_leaves_the_reader_where_they_are(
    open_page: OpenPage, model: ScriptedModel, by: str
) -> None:
    page = await open_page(viewport={"width": 390, "height": 700})
    await long_list(page, model, 60)
    boxes = screen.task_list(page).get_by_role("checkbox")
    seen = boxes.nth(19)
    before = await top_of(seen)
    more = screen.button(page, "Show more")
    await (more.click() if by == "click" else more.press("Enter"))
    await expect(boxes).to_have_count(60)
    await page.wait_for_timeout(200)
    assert await top_of(seen) == pytest.approx(before, abs=2)
    await expect(boxes.nth(20)).to_be_focused()
    await expect(screen.button(page, "Newest")).to_be_visible()


async def test_unfolding_what_was_thought_leaves_the_reader_where_they_are(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page(viewport={"width": 390, "height": 600})
    await model.script({"reasoning": "A thought.\n\n" * 60, "text": "line\n\n" * 5})
    await screen.say(page, "hello")
    summary = screen.log(page).get_by_text("Thought for")
    before = await top_of(summary)
    await summary.click()
    await screen.message_box(page).fill("a draft")
    assert await top_of(summary) == pytest.approx(before, abs=2)


async def test_every_text_has_the_direction_of_its_language(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    add = {"tool_calls": [{"name": "add_task", "arguments": {"title": ARABIC, "description": ARABIC}}]}
    blocks = ["# {0}", "{0}", "1. {0}\n2. tea", "> {0}", "```\nif x:\n```", "English"]
    await model.script(add, {"text": "\n\n".join(blocks).format(ARABIC)})
    await screen.message_box(page).fill(ARABIC)
    assert await direction(screen.message_box(page)) == "rtl"
    await screen.say(page, ARABIC)
    answer = screen.answers(page)
    shown = [
        screen.questions(page).get_by_text(ARABIC),
        page.get_by_role("heading", name=ARABIC).first,
        answer.get_by_role("heading"),
        answer.locator("p").first,
        answer.get_by_role("listitem").first,
        answer.locator("blockquote"),
        screen.log(page).get_by_role("group", name="Card").get_by_text(ARABIC).first,
        screen.log(page).get_by_role("group", name="Card").get_by_text(ARABIC).last,
    ]
    assert [await direction(one) for one in shown] == ["rtl"] * len(shown)
    assert await direction(answer.locator("pre")) == "ltr"
    for english in (answer.get_by_text("English"), answer.get_by_role("listitem").last):
        assert await direction(english) == "ltr"
    await screen.open_history(page)
    assert await direction(screen.button(screen.history(page), ARABIC)) == "rtl"
    await screen.button(screen.history(page), f"Rename {ARABIC}").click()
    assert await direction(screen.history(page).get_by_role("textbox", name="Title")) == "rtl"


async def test_a_done_item_of_a_checklist_differs_by_more_than_its_colour(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await model.script({"text": "- [x] milk\n- [ ] bread\n\n  - [x] rye\n\nloose:\n\n- [x] eggs\n\n- [ ] salt"})
    await screen.say(page, "what is done?")
    for name, times in {"milk": 1, "bread": 0, "rye": 1, "salt": 0}.items():
        struck = screen.answers(page).locator("s").filter(has_text=name)
        await expect(struck).to_have_count(times)
        if times:
            await expect(struck).to_have_css("text-decoration-line", "line-through")
    await expect(screen.answers(page).get_by_role("img", name="Done", exact=True)).to_have_count(3)
    await expect(screen.answers(page).get_by_role("img", name="Not done")).to_have_count(2)
    await expect(screen.answers(page).get_by_role("listitem").filter(has_text="eggs")).to_have_css(
        "list-style-type", "none"
    )


async def test_code_is_copied_as_it_is(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(**COPYING)
    await model.script({"text": "So:\n\n```python\nif a < b:\n    print('é')\n```\n\nand\n\n    second\n"})
    await screen.say(page, "show me code")
    await screen.button(page, "Copy code").first.click()
    assert await page.evaluate("navigator.clipboard.readText()") == "if a < b:\n    print('é')"
    await screen.button(page, "Copy code").last.press("Enter")
    assert await page.evaluate("navigator.clipboard.readText()") == "second"
    await page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new DOMException()))")
    await screen.button(page, "Copy code").first.click()
    await expect(page.get_by_role("alert")).to_contain_text("not let")


async def test_the_buttons_of_an_answer_stand_below_all_of_it(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(**COPYING)
    await screen.say(page, "add milk")
    await model.script(
        {"text": "Your **list**:", "tool_calls": [{"name": "list_tasks", "arguments": {}}]}, {"text": "That is all."}
    )
    await screen.say(page, "show my list")
    first = ["You", "Buttons", "Card", "Assistant", "Buttons"]
    both = [*first, "You", "Buttons", "Assistant", "Assistant", "Task list", "Buttons"]
    assert await _order(page) == both
    await screen.button(page, "Copy").last.click()
    assert await page.evaluate("navigator.clipboard.readText()") == "Your **list**:\n\nThat is all.\n\n- [ ] milk"


async def _order(page: Page) -> list[Any]:
    return await screen.log(page).evaluate(
        "log => [...log.children].filter(one => one.ariaLabel || one.matches('.controls'))"
        ".map(one => one.ariaLabel ?? 'Buttons')"
    )
