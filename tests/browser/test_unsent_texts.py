"""What is typed in the chat and not sent: drafts, edits, titles, reasons and attached files survive a reload."""

import asyncio
import contextlib

import pytest
from playwright.async_api import Error, Locator, Page, Route, expect

from tests.browser import screen
from tests.browser.conftest import PAGE, OpenPage
from tests.browser.test_agents import choose
from tests.scripted_model import ScriptedModel
from tests.support.script import add_tasks, delete_tasks, endless_answer, says

pytestmark = [pytest.mark.long(seconds=4), pytest.mark.asyncio(loop_scope="session")]


def chips(page: Page) -> Locator:
    return page.locator(".chips")


async def test_two_tabs_have_drafts_of_their_own(open_page: OpenPage) -> None:
    first = await open_page()
    second = await first.context.new_page()
    await second.goto(PAGE)
    await screen.message_box(first).fill("in the first tab")
    await screen.message_box(second).fill("in the second tab")
    for page, text in ((first, "in the first tab"), (second, "in the second tab")):
        await page.reload()
        await expect(screen.message_box(page)).to_have_value(text)
    await screen.say(second, "in the second tab")
    await expect(screen.message_box(first)).to_have_value("in the first tab")
    await first.reload()
    await expect(screen.message_box(first)).to_have_value("in the first tab")


async def test_draft_of_an_earlier_version_is_taken_over_once(open_page: OpenPage) -> None:
    page = await open_page()
    await page.evaluate("localStorage.setItem('todo.draft.new', 'from before')")
    await page.reload()
    await expect(screen.message_box(page)).to_have_value("from before")
    assert await page.evaluate("localStorage.getItem('todo.draft.new')") is None
    await screen.message_box(page).fill("")
    await page.reload()
    await expect(screen.button(page, "Send")).to_be_visible()
    await expect(screen.message_box(page)).to_have_value("")


async def test_edit_and_title_survive_a_reload(open_page: OpenPage) -> None:
    page = await open_page(viewport={"width": 1280, "height": 800})
    await screen.say(page, "add milk")
    await screen.button(page, "Edit").click()
    field = page.get_by_role("textbox", name="Your message")
    await field.fill("add bread")
    await page.reload()
    await expect(field).to_have_value("add bread")
    await field.press("Enter")
    await expect(screen.answers(page).last).to_contain_text("bread")
    await screen.answered(page)
    await page.reload()
    await expect(screen.questions(page)).to_have_count(1)
    await expect(field).to_have_count(0)

    await screen.open_history(page)
    await screen.button(screen.history(page), "Rename add milk").click()
    title = screen.history(page).get_by_role("textbox", name="Title")
    await title.fill("Shopping")
    await page.reload()
    await screen.open_history(page)
    await expect(title).to_have_value("Shopping")
    await title.press("Enter")
    await expect(screen.button(screen.history(page), "Shopping")).to_be_visible()
    await page.reload()
    await screen.open_history(page)
    await expect(screen.button(screen.history(page), "Shopping")).to_be_visible()
    await expect(title).to_have_count(0)


async def test_edit_whose_response_was_lost_is_made_once(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")

    async def lose(route: Route) -> None:
        with contextlib.suppress(Error):
            await route.fetch()
            await route.abort()

    await screen.button(page, "Edit").click()
    await page.get_by_role("textbox", name="Your message").fill("add bread")
    await page.route("**/chatkit", lose, times=1)
    await page.keyboard.press("Enter")
    await expect(screen.answers(page).last).to_contain_text("bread")
    await screen.answered(page)
    await expect(page.get_by_text("2 of 2")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(1)


async def test_reason_in_a_card_survives_a_reload(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(add_tasks(12), says("Fine."), delete_tasks(*range(1, 13)), says("I leave them."))
    await screen.say(page, "add them")
    await screen.say(page, "delete all")
    reason = page.get_by_label("Reason (optional)")
    await reason.fill("not these")
    await page.reload()
    await expect(reason).to_have_value("not these")
    await screen.button(page, "Keep them: Delete 12 tasks?").click()
    await expect(screen.answers(page).last).to_have_text("I leave them.")
    await expect(screen.log(page)).to_contain_text("Reason: not these")


async def test_attached_files_survive_a_reload(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await choose(page, ("notes.txt", b"one two"))
    await expect(chips(page)).to_contain_text("notes.txt, 7 B")
    await expect(chips(page).get_by_role("progressbar")).to_have_count(0)
    uploading = asyncio.Event()

    async def hold(route: Route) -> None:
        uploading.set()
        with contextlib.suppress(Error):
            await asyncio.sleep(60)
            await route.abort()

    await page.route("**/files/late.txt", hold)
    await choose(page, ("late.txt", b"three"))
    await uploading.wait()
    await page.reload()  # before the route ends, which would let the upload go on
    await page.unroute_all(behavior="ignoreErrors")
    await expect(chips(page).get_by_role("listitem")).to_have_count(2)
    await expect(chips(page)).to_contain_text("notes.txt, 7 B")
    await expect(chips(page).get_by_role("alert")).to_have_text("The upload was cut off.")
    async with page.expect_file_chooser() as choosing:
        await screen.button(page, "Attach again").click()
    chosen = {"name": "late.txt", "mimeType": "text/plain", "buffer": b"three"}
    await (await choosing.value).set_files([chosen])  # type: ignore[list-item]
    await expect(chips(page).get_by_role("alert")).to_have_count(0)
    await expect(chips(page).get_by_role("progressbar")).to_have_count(0)
    await model.script(says("I looked."))
    await screen.button(page, "Send").click()
    await expect(screen.answers(page).last).to_have_text("I looked.")
    await expect(screen.questions(page).last).to_contain_text("Files: notes.txt (7 B), late.txt (5 B)")
    await page.reload()
    await expect(screen.questions(page)).to_have_count(1)
    await expect(chips(page)).to_have_count(0)


async def test_escape_stops_no_answer_while_the_user_writes(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await model.script(endless_answer("word"))
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    box = screen.message_box(page)
    await box.fill("the next message")
    await box.press("Escape")
    await expect(screen.button(page, "Stop")).to_be_visible()
    await expect(box).to_have_value("the next message")
    await expect(box).to_be_focused()
    await screen.log(page).focus()
    await page.keyboard.press("Escape")
    await expect(screen.log(page).get_by_text("You stopped this answer.")).to_be_visible()
    await expect(box).to_have_value("the next message")
