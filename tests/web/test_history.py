"""Earlier conversations: opened, renamed, deleted, read back page by page."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from playwright.async_api import Route, expect
from psycopg.types.json import Jsonb

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.waiting import until
from tests.web import screen
from tests.web.conftest import BUILT_IN, OpenPage

pytestmark = [pytest.mark.long(seconds=9), pytest.mark.asyncio(loop_scope="session")]

Rows = Callable[..., list[Any]]


@pytest.fixture
def rows(database_url: str) -> Rows:
    def query(statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    return query


async def test_conversations_are_opened_renamed_and_deleted(open_page: OpenPage, rows: Rows) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.button(page, "New conversation").click()
    await expect(screen.questions(page)).to_have_count(0)
    await screen.say(page, "add bread")
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)

    await screen.open_history(page)
    await screen.button(screen.history(page), "Rename add milk").click()
    title = screen.history(page).get_by_role("textbox", name="Title")
    await title.fill("   ")
    await title.press("Enter")
    await screen.button(screen.history(page), "Rename add milk").click()
    await title.fill("Dairy")
    await title.press("Enter")
    await expect(screen.button(screen.history(page), "Dairy")).to_be_visible()
    assert sorted(rows("SELECT title FROM conversations")) == [("Dairy",), ("add bread",)]

    await screen.button(screen.history(page), "Delete Dairy").click()
    await expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(screen.button(screen.history(page), "Dairy")).to_be_visible()
    await screen.button(screen.history(page), "Delete Dairy").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(screen.button(screen.history(page), "Dairy")).to_have_count(0)
    await expect(screen.questions(page)).to_have_count(0)
    assert rows("SELECT title FROM conversations") == [("add bread",)]


async def test_a_click_elsewhere_ends_renaming_and_keeps_what_was_written(open_page: OpenPage, rows: Rows) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.open_history(page)
    await screen.button(screen.history(page), "Rename add milk").click()
    title = screen.history(page).get_by_role("textbox", name="Title")
    await title.fill("Dairy")
    await screen.log(page).click()
    await expect(title).to_have_count(0)
    await expect(screen.button(screen.history(page), "Dairy")).to_be_visible()
    assert rows("SELECT title FROM conversations") == [("Dairy",)]
    await screen.button(screen.history(page), "Rename Dairy").click()
    await title.fill("Something else")
    await title.press("Escape")
    await expect(screen.button(screen.history(page), "Dairy")).to_be_focused()
    await screen.button(screen.history(page), "Rename Dairy").click()
    await screen.message_box(page).click()
    await expect(title).to_have_count(0)
    await expect(screen.message_box(page)).to_be_focused()


async def test_escape_closes_the_list_after_it_stopped_what_runs(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 1280, "height": 800})
    await screen.open_history(page)
    await model.script({"text": "word " * 500, "token_delay": 0.05})
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    await page.keyboard.press("Escape")
    await expect(screen.button(page, "Send")).to_be_visible()
    await expect(screen.history(page)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(screen.history(page)).to_have_count(0)
    await expect(screen.message_box(page)).to_be_focused()
    await screen.open_history(page)
    await screen.button(screen.history(page), "Close").focus()
    await page.keyboard.press("Escape")
    await expect(screen.button(page, "Conversations")).to_be_focused()


async def test_conversations_are_by_day_in_the_reader_s_zone(open_page: OpenPage, rows: Rows) -> None:
    now = datetime(2026, 11, 25, 1, tzinfo=UTC)  # a Wednesday; still Tuesday in New York
    created = {
        "This morning": "2026-11-24 14:00+00",
        "Last night": "2026-11-24 04:59+00",
        "On Sunday": "2026-11-22 15:00+00",
        "On Friday": "2026-11-20 12:00+00",
        "In May": "2026-05-04 12:00+00",
        "Long ago": "2024-05-04 12:00+00",
    }
    for number, (title, moment) in enumerate(created.items()):
        old_conversation(rows, f"thr_{9 - number}", title, moment)
    page = await open_page("about:blank", timezone_id="America/New_York", locale="en-US")
    await page.clock.set_fixed_time(now)
    await page.goto(BUILT_IN)
    await screen.open_history(page)
    await expect(screen.history(page).get_by_role("heading", level=3)).to_have_text(
        ["Today", "Yesterday", "This week", "November", "May", "May 2024"]
    )
    shown = await screen.history(page).locator("h3, .title").all_inner_texts()
    assert shown[:4] == ["Today", "This morning", "Yesterday", "Last night"]


async def test_months_are_named_as_the_reader_s_language_does(open_page: OpenPage, rows: Rows) -> None:
    old_conversation(rows, "thr_1", "Old", "2019-05-04 12:00+00")
    page = await open_page(locale="de-DE")
    await screen.open_history(page)
    await expect(screen.history(page).get_by_role("heading", level=3)).to_have_text(["Mai 2019"])


def old_conversation(rows: Rows, thread: str, title: str, created: str) -> None:
    rows(
        "INSERT INTO conversations (id, user_id, title, status, created_at) "
        "VALUES (%s, 'local', %s, '{\"type\": \"active\"}', %s)",
        thread,
        title,
        created,
    )


async def test_conversations_are_found_by_their_titles(open_page: OpenPage, rows: Rows) -> None:
    forty_five_conversations(rows)
    page = await open_page()
    await screen.open_history(page)
    field = page.get_by_role("searchbox", name="Search conversations")
    await field.fill("talk 3")
    titles = screen.history(page).locator(".title")
    await expect(titles).to_have_count(11)  # one that no page has loaded yet among them
    await expect(screen.button(screen.history(page), "Talk 3")).to_be_visible()
    await field.fill("100%")
    await expect(page.get_by_text("No conversation has this in its title.")).to_be_visible()
    await field.press("Escape")
    await expect(screen.history(page)).to_be_visible()
    await expect(titles).to_have_count(20)
    await field.fill("Talk 7")
    await expect(titles).to_have_count(1)
    await screen.button(screen.history(page), "Close").click()
    await screen.open_history(page)
    await expect(titles).to_have_count(20)


async def test_a_slow_reply_does_not_undo_a_later_search(open_page: OpenPage, rows: Rows) -> None:
    forty_five_conversations(rows)
    page = await open_page()
    await screen.open_history(page)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        if "Talk 4" in (route.request.post_data or ""):
            held.append(route)
        else:
            await route.fallback()

    await screen.on(page, "threads.list", hold)
    field = page.get_by_role("searchbox", name="Search conversations")
    await field.fill("Talk 4")
    await until(lambda: held)
    await field.fill("Talk 7")
    titles = screen.history(page).locator(".title")
    await expect(titles).to_have_text(["Talk 7"])
    async with page.expect_response("**/chatkit"):
        await held[0].continue_()
    await expect(titles).to_have_text(["Talk 7"])


async def test_what_is_being_answered_is_marked(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page(viewport={"width": 1280, "height": 800})
    await model.script({"text": "word " * 500, "token_delay": 0.05})
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    mark = screen.history(page).get_by_role("img", name="Being answered")
    await screen.button(page, "New conversation").click()
    await screen.open_history(page)
    await expect(mark).to_have_count(1)
    elsewhere = await page.context.new_page()
    await elsewhere.goto(BUILT_IN)
    await screen.open_history(elsewhere)
    await expect(screen.history(elsewhere).get_by_role("img", name="Being answered")).to_have_count(1)
    await screen.button(screen.history(page), "go on").click()
    await screen.button(page, "Stop").click()
    await expect(mark).to_have_count(0)
    await expect(screen.history(elsewhere).get_by_role("img", name="Being answered")).to_have_count(0)


async def test_what_another_device_is_answered_is_marked_until_its_end(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    page = await open_page()
    await model.script({"text": "word " * 500, "token_delay": 0.05})
    await screen.send(page, "go on")
    await expect(screen.answers(page)).to_contain_text("word")
    other = await open_page()  # a browser of its own
    await screen.open_history(other)
    mark = screen.history(other).get_by_role("img", name="Being answered")
    await expect(mark).to_have_count(1)
    await screen.button(page, "Stop").click()
    await expect(screen.button(page, "Continue")).to_be_visible()
    await expect(mark).to_have_count(0)


def forty_five_conversations(rows: Rows) -> None:
    rows(
        "INSERT INTO conversations (id, user_id, title, status) "
        "SELECT 'thr_' || lpad(n::text, 3, '0'), 'local', 'Talk ' || n, '{\"type\": \"active\"}' "
        "FROM generate_series(1, 45) n"
    )


async def test_many_conversations_come_in_pages(open_page: OpenPage, rows: Rows) -> None:
    forty_five_conversations(rows)
    page = await open_page()
    await screen.open_history(page)
    await expect(screen.button(screen.history(page), "Talk 45")).to_be_visible()
    for oldest in ("Talk 6", "Talk 1"):
        await screen.button(screen.history(page), "Show more").click()
        await expect(screen.button(screen.history(page), oldest)).to_be_visible()
    await expect(screen.button(screen.history(page), "Show more")).to_have_count(0)


async def test_asking_twice_for_more_conversations_is_asking_once(open_page: OpenPage, rows: Rows) -> None:
    forty_five_conversations(rows)
    page = await open_page()
    await screen.open_history(page)
    more = screen.button(screen.history(page), "Show more")
    await more.wait_for()
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await screen.on(page, "threads.list", hold)
    await more.click()
    await more.click()
    await until(lambda: held)
    await held[0].continue_()
    await expect(screen.button(screen.history(page), "Talk 6")).to_be_visible()
    assert len(held) == 1


async def test_a_long_conversation_is_read_back_page_by_page(open_page: OpenPage, rows: Rows) -> None:
    page = await open_page()
    await screen.say(page, "hello")
    ((thread,),) = rows("SELECT id FROM conversations")
    for number in range(40):
        _add_message(rows, thread, number)
    await page.reload()
    await expect(screen.questions(page).last).to_contain_text("message 39")
    await expect(screen.log(page).get_by_text("message 39")).to_be_in_viewport()
    assert await screen.questions(page).count() == 20
    await screen.questions(page).first.scroll_into_view_if_needed()
    await expect(screen.questions(page).filter(has_text="message 0")).to_have_count(1)
    await expect(screen.log(page).get_by_text("message 20", exact=True)).to_be_in_viewport()  # the place is kept
    await screen.button(page, "Show older").or_(screen.questions(page).first).first.scroll_into_view_if_needed()
    await expect(screen.answers(page)).to_have_count(1)
    await expect(screen.button(page, "Show older")).to_have_count(0)
    texts = [text.strip() for text in await screen.questions(page).all_inner_texts()]
    assert texts == ["hello", *(f"message {number}" for number in range(40))]


def _add_message(rows: Rows, thread: str, number: int) -> None:
    item = {
        "type": "user_message",
        "id": f"msg_{number:03}",
        "thread_id": thread,
        "created_at": "2026-01-01T00:00:00Z",
        "content": [{"type": "input_text", "text": f"message {number}"}],
        "attachments": [],
        "inference_options": {},
    }
    rows(
        "INSERT INTO messages (conversation_id, id, user_id, role, kind, item) "
        "VALUES (%s, %s, 'local', 'user', 'user_message', %s)",
        thread,
        item["id"],
        Jsonb(item),
    )


async def test_an_answer_goes_on_while_another_conversation_is_open(open_page: OpenPage, model: ScriptedModel) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await model.script({"text": "slow " * 40 + "end", "token_delay": 0.05})
    await screen.button(page, "New conversation").click()
    await screen.send(page, "slowly please")
    await expect(screen.answers(page)).to_contain_text("slow")
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(screen.questions(page)).to_have_text(["add milk"], use_inner_text=True)
    await screen.open_history(page)
    await screen.button(screen.history(page), "slowly please").click()
    await screen.answered(page)
    await expect(screen.answers(page)).to_contain_text("end")


async def test_each_conversation_has_its_own_draft(open_page: OpenPage) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.message_box(page).fill("about milk")
    await screen.button(page, "New conversation").click()
    await expect(screen.message_box(page)).to_have_value("")
    await screen.open_history(page)
    await screen.button(screen.history(page), "add milk").click()
    await expect(screen.message_box(page)).to_have_value("about milk")


async def test_a_conversation_that_is_gone_is_told_and_a_new_one_begun(open_page: OpenPage, rows: Rows) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    rows("DELETE FROM conversations")
    await page.goto(BUILT_IN)
    await expect(page.get_by_role("status").filter(has_text="not there any more")).to_be_visible()
    await expect(screen.questions(page)).to_have_count(0)
    await screen.say(page, "add bread")
