"""The server gone and back, and two tabs."""

import asyncio
import contextlib
import signal

import psycopg
import pytest
from playwright.async_api import Error, Route, expect

from tests.logins import as_admin
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.web import ended, screen
from tests.web.conftest import BUILT_IN, OpenPage

pytestmark = [pytest.mark.long(seconds=10), pytest.mark.asyncio(loop_scope="session")]


async def restart(site: ServiceProcess) -> None:
    site.start()
    await asyncio.to_thread(site.wait_until_ready)


async def test_a_message_that_never_arrived_is_given_back(
    open_page: OpenPage, site: ServiceProcess, database_url: str
) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    site.end(signal.SIGKILL)
    try:
        await screen.send(page, "add bread")
        await expect(page.get_by_text("Connection lost. Trying again…")).to_be_visible()
    finally:
        await restart(site)
    await expect(page.get_by_text("This message was not sent.")).to_be_visible(timeout=15_000)
    await expect(screen.message_box(page)).to_have_value("add bread")
    await screen.message_box(page).press("Enter")
    await expect(screen.questions(page)).to_have_count(2)
    await screen.answered(page)
    with psycopg.connect(as_admin(database_url)) as database:
        assert database.execute("SELECT title FROM tasks ORDER BY title").fetchall() == [("bread",), ("milk",)]


async def test_an_answer_that_broke_off_is_kept_and_can_be_tried_again(
    open_page: OpenPage, site: ServiceProcess, model: ScriptedModel, database_url: str
) -> None:
    page = await open_page()
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]},
        {"text": "slowly " * 200, "token_delay": 0.05},
    )
    await screen.send(page, "add milk")
    await expect(screen.answers(page)).to_contain_text("slowly")
    site.end(signal.SIGKILL)
    try:
        await expect(page.get_by_text("Connection lost. Trying again…")).to_be_visible()
        await model.reset()
        await model.script({"text": "Milk is on your list."})
    finally:
        await restart(site)
    await expect(page.get_by_text("Connected again.")).to_be_visible(timeout=15_000)
    await expect(screen.questions(page)).to_have_count(1)
    await ended.all_turns(database_url)  # the lease of the killed process has run out
    await screen.button(page, "Try again").or_(screen.button(page, "Answer again")).first.click()
    await expect(screen.answers(page).last).to_contain_text("Milk is on your list.", timeout=10_000)
    with psycopg.connect(as_admin(database_url)) as database:
        assert database.execute("SELECT title FROM tasks").fetchall() == [("milk",)]


async def test_a_first_message_whose_answer_never_came_is_not_sent_twice(
    open_page: OpenPage, model: ScriptedModel, database_url: str
) -> None:
    """The request arrives, its response is lost."""
    page = await open_page()

    async def lose_the_response(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/chatkit", lose_the_response, times=1)
    await screen.send(page, "add milk")
    await expect(page.get_by_text("Connected again.")).to_be_visible(timeout=15_000)
    await expect(screen.questions(page)).to_have_count(1)
    await expect(screen.message_box(page)).to_have_value("")
    with psycopg.connect(as_admin(database_url)) as database:
        assert database.execute("SELECT title FROM tasks").fetchall() == [("milk",)]
        assert database.execute("SELECT count(*) FROM conversations").fetchone() == (1,)


async def test_a_tick_while_the_server_is_away_goes_back(open_page: OpenPage, site: ServiceProcess) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    await screen.say(page, "show my list")
    box = screen.task_list(page).get_by_role("checkbox", name="milk")
    site.end(signal.SIGKILL)
    try:
        await box.click()
        await expect(page.get_by_text("Connection lost. Trying again…")).to_be_visible()
        await expect(box).not_to_be_checked()
    finally:
        await restart(site)
    await expect(page.get_by_text("Connected again.")).to_be_visible(timeout=15_000)
    await screen.task_list(page).get_by_role("checkbox", name="milk").check()
    await expect(screen.task_list(page)).to_contain_text("1 task, 1 done")


async def test_two_tabs_show_the_same(open_page: OpenPage) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await first.context.new_page()
    screen.watch(second, problems := [])
    await second.goto(BUILT_IN)
    await expect(screen.questions(second)).to_have_count(1)
    await screen.say(first, "show my list")
    await expect(screen.task_list(second)).to_be_visible()
    await screen.task_list(second).get_by_role("checkbox", name="milk").check()
    await expect(screen.task_list(first).get_by_role("checkbox", name="milk")).to_be_checked()
    assert problems == []


async def test_a_second_tab_waits_for_the_answer_of_the_first(open_page: OpenPage, model: ScriptedModel) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await first.context.new_page()
    await second.goto(BUILT_IN)
    await expect(screen.questions(second)).to_have_count(1)
    await model.script({"text": "slow " * 60 + "end", "token_delay": 0.05})
    await screen.send(first, "slowly")
    await expect(screen.answers(first).last).to_contain_text("slow")
    await expect(second.get_by_text("Being answered in another tab…")).to_be_visible()
    await screen.send(second, "me too")
    await expect(screen.button(second, "Send")).to_be_disabled()
    third = await first.context.new_page()
    await third.goto(BUILT_IN)
    await expect(third.get_by_text("Being answered in another tab…")).to_be_visible()
    await expect(screen.message_box(second)).to_have_value("me too")
    await screen.answered(first)
    await expect(screen.log(first)).to_contain_text("end")
    await expect(screen.answers(second).last).to_contain_text("end")
    await expect(screen.button(second, "Send")).to_be_enabled()
    await screen.message_box(second).press("Enter")
    await expect(screen.questions(first).last).to_contain_text("me too")


async def test_what_was_answered_until_stop_comes_to_the_other_tab_when_it_is_stored(
    open_page: OpenPage, model: ScriptedModel, database_url: str
) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await first.context.new_page()
    await second.goto(BUILT_IN)
    await model.script({"text": "slow " * 200, "token_delay": 0.05})
    await screen.send(first, "slowly")
    await expect(screen.answers(first).last).to_contain_text("slow")
    await expect(second.get_by_text("Being answered in another tab…")).to_be_visible()
    with psycopg.connect(as_admin(database_url)) as database:
        database.execute("LOCK TABLE messages IN SHARE MODE")  # it can be read, and what was shown cannot be stored
        async with second.expect_response(lambda response: "items.list" in (response.request.post_data or "")):
            await screen.button(first, "Stop").click()
    await expect(screen.answers(second).last).to_contain_text("slow", timeout=12_000)
    await expect(second.get_by_text("This message has no answer.")).to_have_count(0)


async def test_the_answer_of_a_tab_that_dies_goes_on_in_another(open_page: OpenPage, model: ScriptedModel) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await first.context.new_page()
    await second.goto(BUILT_IN)
    await model.script({"text": "slow " * 100 + "end", "token_delay": 0.05, "chunk_chars": 5})
    await screen.send(first, "slowly")
    await expect(second.get_by_text("Being answered in another tab…")).to_be_visible()
    await screen.message_box(second).fill("me too")
    session = await first.context.new_cdp_session(first)
    with contextlib.suppress(Error, TimeoutError):  # it does not answer any more
        await asyncio.wait_for(session.send("Page.crash"), 1)
    await expect(screen.button(second, "Stop")).to_be_visible()
    await expect(screen.answers(second).last).to_contain_text("end")
    await expect(screen.button(second, "Send")).to_be_enabled()


async def test_another_browser_is_told_of_a_running_answer_until_it_came(
    open_page: OpenPage, model: ScriptedModel
) -> None:
    first = await open_page()
    await screen.say(first, "add milk")
    second = await open_page()
    await screen.open_history(second)
    await screen.button(screen.history(second), "add milk").click()
    await expect(screen.questions(second)).to_have_count(1)
    await model.script({"text": "slow " * 80 + "end", "token_delay": 0.05})
    await screen.send(first, "slowly")
    await expect(screen.answers(first).last).to_contain_text("slow")
    await screen.send(second, "me too")
    await expect(second.get_by_role("alert")).to_contain_text("still answering")
    await expect(screen.message_box(second)).to_have_value("me too")
    await screen.answered(first)
    await expect(screen.answers(second).last).to_contain_text("end", timeout=12_000)
    await expect(second.get_by_role("alert")).to_have_count(0)
    await screen.message_box(second).press("Enter")
    await expect(screen.questions(second).last).to_contain_text("me too")


@pytest.mark.parametrize("kind", ["threads.add_user_message", "items.list"], ids=["answer", "conversation"])
async def test_a_server_that_does_not_answer_is_said_to_take_longer(open_page: OpenPage, kind: str) -> None:
    page = await open_page()
    await screen.say(page, "add milk")
    thawed = asyncio.Event()

    async def frozen(route: Route) -> None:
        await thawed.wait()
        await route.fallback()

    await screen.on(page, kind, frozen)
    if kind == "items.list":
        await page.reload()
    else:
        await screen.send(page, "add bread")
    slow = page.locator(".progress, .connection").get_by_text("This is taking longer than usual…")
    await expect(slow).to_be_visible(timeout=8_000)
    await expect(page.locator("todo-chat > [aria-live=polite]")).to_have_text("This is taking longer than usual…")
    thawed.set()
    await expect(slow).to_have_count(0)
    await screen.answered(page)
