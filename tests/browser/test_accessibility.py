"""The chat for everybody: axe on every state in both themes, the keyboard, and what is announced."""

import pytest
from playwright.async_api import Page, expect

from tests.browser import screen
from tests.browser.conftest import OpenPage, Violations
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, endless_answer, says

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]

NAME = "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()"
LISTEN = """() => {
    window.spoken = [];
    new MutationObserver((records) => {
        for (const { target } of records) {
            const element = target.nodeType === 1 ? target : target.parentElement;
            const region = element?.closest('[aria-live], [role=status], [role=alert], [role=log]');
            if (!region || region.ariaLive === 'off' || !region.textContent.includes('said')) continue;
            window.spoken.push(region.textContent);
        }
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


async def test_every_state_is_accessible(open_page: OpenPage, violations: Violations, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    await expect(screen.message_box(page)).to_be_visible()
    assert await violations(page) == []
    about = await screen.open_about(page)
    await about.get_by_text("Add an AI model").click()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await screen.button(page, "Menu").click()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await screen.show_assistant(page)
    await screen.say(page, "add milk and bread")
    await screen.say(page, "show my list")
    await screen.task_list(page).get_by_role("checkbox", name="milk").check()
    await model.script(
        {"reasoning": "Hm.", "text": "# A\n\n- **b** [c](https://example.org)\n\n`d`\n\n> e\n\n| f |\n|---|\n| g |\n"},
        endless_answer("```js\nh\n```\n\n- [x] i\n- [ ] j\n\n" + "k " * 20),
    )
    await screen.say(page, "hello")
    await screen.log(page).get_by_text("Thought for").click()
    await screen.send(page, "stop me")
    await expect(screen.answers(page).last).to_contain_text("k k")
    await screen.button(page, "Stop").click()
    await expect(screen.button(page, "Continue")).to_be_visible()
    assert await violations(page) == []
    await model.script({"status": 401})
    await screen.message_box(page).fill("fail")
    await screen.message_box(page).press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await screen.button(page, "Conversations").click()
    assert await violations(page) == []
    await page.get_by_role("searchbox", name="Search conversations").fill("no such title")
    await expect(page.get_by_text("No conversation title matches.")).to_be_visible()
    assert await violations(page) == []
    await page.get_by_role("searchbox", name="Search conversations").fill("")
    await page.get_by_role("button", name="Delete add milk").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await violations(page) == []


async def test_chat_by_keyboard(open_page: OpenPage) -> None:
    page = await open_page()
    await expect(screen.message_box(page)).to_be_visible()
    assert await page.evaluate("document.activeElement === document.body"), "where the keys of the page count"
    await page.keyboard.press("c")
    await expect(screen.message_box(page)).to_be_focused()
    await page.keyboard.type("add milk")
    await page.keyboard.press("Enter")
    await screen.answered(page)
    await page.keyboard.type("show my list")
    await page.keyboard.press("Enter")
    await expect(screen.task_list(page)).to_be_visible()
    await screen.answered(page)
    await _tab_to(
        page, "Newest list's box", "document.activeElement.matches('[aria-label=\"Task list\"] input')", back=True
    )
    await page.keyboard.press("Space")
    await expect(screen.task_list(page)).to_contain_text("1 task, 1 done")
    await _tab_to(page, "Conversations", f"{NAME} === 'Conversations'", back=True)
    await page.keyboard.press("Enter")
    history = screen.history(page)
    await expect(history).to_be_visible()
    await _tab_to(page, "Delete", f"{NAME} === 'Delete add milk'")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(screen.questions(page)).to_have_count(0)
    await expect(history.get_by_role("button", name="Delete add milk")).to_have_count(0)


async def _tab_to(page: Page, what: str, reached: str, *, back: bool = False) -> None:
    for _ in range(40):
        await page.keyboard.press("Shift+Tab" if back else "Tab")
        if await page.evaluate(f"Boolean({reached})"):
            return
    raise AssertionError(f"{what} cannot be reached by keyboard")


async def test_focus_is_never_lost(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 1000, "height": 600})
    for _ in range(2):
        await screen.say(page, "add " + ", ".join(f"t{number}" for number in range(12)))
    await model.script(calls(call("list_tasks")), says("line\n\n" * 40))
    await screen.say(page, "all")
    lost = "document.activeElement === document.body || document.activeElement.matches(':disabled')"
    tasks = screen.task_list(page).last
    await screen.button(page, "Show more").press("Enter")
    await expect(tasks.get_by_role("checkbox")).to_have_count(24)
    assert not await page.evaluate(lost)
    await tasks.get_by_role("checkbox").first.press("Space")
    await expect(tasks).to_contain_text("1 done")
    assert not await page.evaluate(lost)
    await screen.button(page, "Newest messages").press("Enter")
    await expect(screen.button(page, "Newest messages")).to_have_count(0)
    assert not await page.evaluate(lost)
    await model.script(says("Once more."))
    await screen.button(page, "Answer again").press("Enter")
    await expect(screen.answers(page).last).to_contain_text("Once more.")
    await screen.answered(page)
    assert not await page.evaluate(lost)


async def test_announcements_with_reduced_motion(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(reduced_motion="reduce")
    heard = page.locator("todo-chat > [aria-live=polite]")
    await page.evaluate(LISTEN)
    await model.script(says("words that are said " * 10))
    await screen.say(page, "hello")
    await screen.until(page, "window.spoken.length")
    spoken = await page.evaluate("window.spoken")
    assert len(set(spoken)) == 1, "one announcement for a whole answer, none for its tokens"
    await model.script({"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}, {"text": "**Noted.**"})
    await screen.say(page, "add milk")
    await expect(heard).to_have_text("Assistant: Added: milk. Noted. Added 1.")
    await model.script(
        {"text": "Here:", "tool_calls": [{"name": "list_tasks", "arguments": {}}]}, {"text": "That is all."}
    )
    await screen.say(page, "show my list")
    await expect(heard).to_have_text("Assistant: Here: That is all. 1 task: milk.")
    await screen.task_list(page).get_by_role("checkbox", name="milk").check()
    await expect(heard).to_have_text("milk: done. 1 task, 1 done")
    await screen.task_list(page).get_by_role("checkbox", name="milk").uncheck()
    await expect(heard).to_have_text("milk: reopened. 1 task")
    await model.script(endless_answer("word"))
    await screen.send(page, "go on")
    await expect(screen.answers(page).last).to_contain_text("word")
    await screen.button(page, "Stop").click()
    await expect(heard).to_have_text("You stopped this answer.")
    await screen.answered(page)
    assert await page.evaluate("document.getAnimations().filter(one => one.playState === 'running').length") == 0


async def test_nothing_is_cut_off_at_the_side(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 320, "height": 700})
    await model.script(says(f"{'long' * 100}\n\n```\n{'code ' * 60}\n```\n\n| {'cell | ' * 20}\n|{'---|' * 20}\n"))
    await screen.say(page, "word" * 100)
    await screen.open_about(page)
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 700})
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await screen.show_assistant(page)
    for element in (screen.message_box(page), *(screen.button(page, name) for name in ("Send", "New conversation"))):
        await expect(element).to_be_in_viewport(ratio=1)
