"""The server gone and back, and two tabs."""

import asyncio
import signal

import psycopg
import pytest
from playwright.async_api import Route, expect

from tests.page.conftest import (
    BUILT_IN,
    OpenPage,
    answered,
    answers,
    button,
    log,
    message_box,
    questions,
    say,
    send,
    task_list,
    watch,
)
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="session")]


async def restart(site: ServiceProcess) -> None:
    site.start()
    await asyncio.to_thread(site.wait_until_ready)


async def test_a_message_that_never_arrived_is_given_back(
    open_page: OpenPage, site: ServiceProcess, database_url: str
) -> None:
    page = await open_page()
    await say(page, "add milk")
    site.end(signal.SIGKILL)
    try:
        await send(page, "add bread")
        await expect(page.get_by_text("Connection lost. Trying again…")).to_be_visible()
    finally:
        await restart(site)
    await expect(page.get_by_text("This message was not sent.")).to_be_visible(timeout=15_000)
    await expect(message_box(page)).to_have_value("add bread")
    await message_box(page).press("Enter")
    await expect(questions(page)).to_have_count(2)
    await answered(page)
    with psycopg.connect(database_url) as database:
        assert database.execute("SELECT title FROM tasks ORDER BY title").fetchall() == [("bread",), ("milk",)]


async def test_an_answer_that_broke_off_is_kept_and_can_be_tried_again(
    open_page: OpenPage, site: ServiceProcess, model: ScriptedModel, database_url: str
) -> None:
    page = await open_page()
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]},
        {"text": "slowly " * 200, "token_delay": 0.05},
    )
    await send(page, "add milk")
    await expect(answers(page)).to_contain_text("slowly")
    site.end(signal.SIGKILL)
    try:
        await expect(page.get_by_text("Connection lost. Trying again…")).to_be_visible()
        await model.reset()
        await model.script({"text": "Milk is on your list."})
    finally:
        await restart(site)
    await expect(page.get_by_text("Connected again.")).to_be_visible(timeout=15_000)
    await expect(questions(page)).to_have_count(1)
    await page.wait_for_timeout(2_500)  # the lease of the killed process runs out
    await button(page, "Try again").or_(button(page, "Answer again")).first.click()
    await expect(answers(page).last).to_contain_text("Milk is on your list.", timeout=10_000)
    with psycopg.connect(database_url) as database:
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
    await send(page, "add milk")
    await expect(page.get_by_text("Connected again.")).to_be_visible(timeout=15_000)
    await expect(questions(page)).to_have_count(1)
    await expect(message_box(page)).to_have_value("")
    with psycopg.connect(database_url) as database:
        assert database.execute("SELECT title FROM tasks").fetchall() == [("milk",)]
        assert database.execute("SELECT count(*) FROM conversations").fetchone() == (1,)


async def test_a_tick_while_the_server_is_away_goes_back(open_page: OpenPage, site: ServiceProcess) -> None:
    page = await open_page()
    await say(page, "add milk")
    await say(page, "show my list")
    box = task_list(page).get_by_role("checkbox", name="milk")
    site.end(signal.SIGKILL)
    try:
        await box.click()
        await expect(page.get_by_text("Connection lost. Trying again…")).to_be_visible()
        await expect(box).not_to_be_checked()
    finally:
        await restart(site)
    await expect(page.get_by_text("Connected again.")).to_be_visible(timeout=15_000)
    await task_list(page).get_by_role("checkbox", name="milk").check()
    await expect(task_list(page)).to_contain_text("1 task, 1 done")


async def test_two_tabs_show_the_same(open_page: OpenPage) -> None:
    first = await open_page()
    await say(first, "add milk")
    second = await first.context.new_page()
    watch(second, problems := [])
    await second.goto(BUILT_IN)
    await expect(questions(second)).to_have_count(1)
    await say(first, "show my list")
    await expect(task_list(second)).to_be_visible()
    await task_list(second).get_by_role("checkbox", name="milk").check()
    await expect(task_list(first).get_by_role("checkbox", name="milk")).to_be_checked()
    assert problems == []


async def test_a_second_tab_cannot_disturb_a_running_answer(open_page: OpenPage, model: ScriptedModel) -> None:
    first = await open_page()
    await say(first, "add milk")
    second = await first.context.new_page()
    await second.goto(BUILT_IN)
    await expect(questions(second)).to_have_count(1)
    await model.script({"text": "slow " * 60 + "end", "token_delay": 0.05})
    await send(first, "slowly")
    await expect(answers(first).last).to_contain_text("slow")
    await send(second, "me too")
    await expect(second.get_by_role("alert")).to_contain_text("still answering")
    await expect(message_box(second)).to_have_value("me too")
    await answered(first)
    await expect(log(first)).to_contain_text("end")
    await expect(questions(second).last).to_contain_text("slowly")
    await message_box(second).press("Enter")
    await expect(questions(first).last).to_contain_text("me too")
