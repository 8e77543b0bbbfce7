"""The page in Firefox: the list by pointer, finger and keys, answers that change it and that nest too deeply."""

import json
from random import Random

import pytest

from tests.browser.conftest import PAGE
from tests.browser.firefox import CONTROL, ESCAPE, TOUCH_SCREEN, Firefox, firefox
from tests.browser.task_list import TaskApi
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, pausing_answer
from tests.support.users import User

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.asyncio(loop_scope="session")]

BOX = "document.querySelector('.rows [aria-label=\"Done: %s\"]')"
ANSWER = "document.querySelector('todo-chat article.answer')"
DEEP = "".join(Random(1).choices((">", "> "), k=3_000)) + "> deep"  # which does not repeat itself
NOTICE = "document.querySelector('.notice-bar')"
UNDO = f"[...{NOTICE}.querySelectorAll('button')].find((button) => button.textContent.trim() === 'Undo')"


TITLES = "[...document.querySelectorAll('.rows .title')].map((title) => title.textContent.trim()).sort().join()"
LOADED = "document.querySelector('.rows[aria-busy=false]') && document.querySelector('todo-tasks dialog.move')"
FOCUS = "document.activeElement.ariaLabel"
SHEET = "document.querySelector('dialog[aria-label=\"Edit the task\"]')"
WIDTH = "Number(document.querySelector('[role=separator]').ariaValueNow)"
PHONE = 390, 844


async def open_page(browser: Firefox, user: User) -> None:
    await browser.open(f"{user.url}{PAGE}")
    session = "fetch('/session', {method: 'POST', headers: {Authorization: 'Bearer %s'}})"
    await browser.evaluate(f"void {session % user.token}.then(({{ ok }}) => {{ window.signedIn = ok; }})")
    await browser.until("window.signedIn")
    await browser.open(f"{user.url}{PAGE}")


def shows(*titles: str) -> str:
    """Whether the list has these tasks."""
    return f"{TITLES} === {json.dumps(','.join(titles))}"


def notice(text: str) -> str:
    return f"{NOTICE}?.textContent.includes({json.dumps(text)})"


async def test_list_and_chat_in_firefox(model: ScriptedModel, user: User) -> None:
    await model.script(
        add_task("bread", due="today"),
        pausing_answer("I have **added** it. ", "I have **added** it. " * 19),
        {"text": DEEP},
    )
    async with firefox() as browser:
        await open_page(browser, user)
        await browser.click("textbox", "Add a task")
        await browser.write("buy milk today #shop")
        await browser.click("checkbox", "Done: buy milk")
        await browser.until(f"{BOX % 'buy milk'}?.checked")
        # Before that, Undo takes back the addition; it is pressed at once, as the notice goes after some seconds.
        await browser.until(f"{NOTICE}?.textContent.includes('Completed') && !{UNDO}.click()")
        await browser.until(f"{BOX % 'buy milk'}?.checked === false")
        await browser.click("textbox", "Message")
        await browser.write("bread, please")
        await browser.until(f"{ANSWER}?.ariaBusy === 'true' && {ANSWER}.textContent.includes('added')")
        await browser.until(BOX % "bread")  # the list is told at once, while the answer goes on
        assert await browser.evaluate(f"{ANSWER}.ariaBusy") == "true"
        await model.release()
        await browser.until(f"{ANSWER}?.ariaBusy === 'false' && {ANSWER}.querySelectorAll('strong').length === 20")
        assert await browser.evaluate("document.querySelector('.widget [type=checkbox]').ariaLabel") == "bread"
        await browser.click("textbox", "Message")
        await browser.write("again")
        await browser.until("document.querySelector('todo-chat .log').textContent.includes('> deep')")
        await browser.click("button", "Answer again")
        assert browser.problems == []


async def test_keys_and_divider_in_firefox(user: User, tasks: TaskApi) -> None:
    for title in ("milk", "bread"):
        await tasks.add(title, due="today")
    async with firefox() as browser:
        await browser.resize(1440, 900)
        await open_page(browser, user)
        await browser.until(LOADED)
        await browser.evaluate("document.activeElement.blur()")
        await browser.press("q")
        await browser.until(f"{FOCUS} === 'Add a task'")
        await browser.write("tea today")
        await browser.until(shows("bread", "milk", "tea"))
        await browser.press(ESCAPE)
        await browser.press("/")
        await browser.until(f"{FOCUS} === 'Search tasks'")  # and not the search of Firefox
        assert await browser.evaluate("document.activeElement.value") == ""
        await browser.evaluate("document.activeElement.blur()")
        await browser.press("j", "e")
        await browser.until(notice("Completed: “milk”"))
        await tasks.until("done", ["milk"])
        await browser.press("z", holding=CONTROL)
        await browser.until(notice("Undone"))
        await browser.until(shows("bread", "milk", "tea"))
        assert await tasks.titles("done") == []
        await browser.press("x")
        await browser.until("document.querySelector('.selection')?.textContent.includes('1 selected')")
        await browser.press(ESCAPE)
        await browser.until("!document.querySelector('.selection')")

        width = await browser.evaluate(WIDTH)
        await browser.drag("separator", "Width of the assistant", -100)
        await browser.until(f"Math.abs({WIDTH} - {width} - 100) <= 2")
        assert browser.problems == []


async def test_list_on_a_phone_in_firefox(user: User, tasks: TaskApi) -> None:
    for title in ("bread", "milk", "tea"):
        await tasks.add(title, due="today")
    async with firefox(TOUCH_SCREEN) as browser:
        await browser.resize(*PHONE)
        await open_page(browser, user)
        await browser.until(LOADED)
        assert await browser.evaluate("matchMedia('(pointer: coarse)').matches")
        await browser.click("button", "milk")
        await browser.until(f"{SHEET}?.open")
        place = f"(({{ left, bottom, width }}) => [left, bottom, width])({SHEET}.getBoundingClientRect())"
        assert await browser.evaluate(place) == [0, PHONE[1], PHONE[0]]
        await browser.click("textbox", "Title")
        await browser.press("a", holding=CONTROL)
        await browser.write("oat milk")
        await browser.until(f"!{SHEET}?.open")
        await browser.until(shows("bread", "oat milk", "tea"))

        await browser.click("button", "More actions: oat milk")
        await browser.click("button", "High")
        await browser.until(notice("Changed: “oat milk”"))
        assert (await tasks.task("oat milk"))["priority"] == "high"

        await browser.drag("button", "bread", 60, pointer="touch")
        await browser.drag("button", "bread", 150, pointer="touch")
        await browser.until(notice("Completed: “bread”"))
        await tasks.until("done", ["bread"])
        await browser.drag("button", "tea", -150, pointer="touch")
        await browser.until(notice("Moved to Tomorrow: “tea”"))
        await tasks.until("upcoming", ["tea"])
        await browser.until(shows("oat milk"))
        assert not await browser.evaluate(f"Boolean({SHEET}?.open)")
        assert browser.problems == []
