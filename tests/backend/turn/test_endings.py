"""What tells of an answer that did not come to its end, for whoever reads the conversation later."""

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, adding, leave_running, read_text
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until


async def ending(chat: ChatKit, thread: str) -> tuple[str, str] | None:
    """The icon and the sentence of the conversation's last item, if it says how an answer ended."""
    last = (await chat.items(thread))[-1]
    return (last["task"]["icon"], last["task"]["title"]) if last["type"] == "task" else None


async def ended_thread(rows: Rows) -> str:
    [run] = await until(lambda: rows("SELECT conversation_id FROM runs WHERE status = 'ended'"))
    return run["conversation_id"]


async def test_a_stopped_answer_says_so_after_its_text(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=8)
    thread = await ended_thread(rows)
    assert await ending(chat, thread) == ("play", "This answer was stopped before its end.")
    assert [item["type"] for item in await chat.items(thread)] == ["user_message", "assistant_message", "task"]
    await chat.say("go on", thread)
    assert "before its end" not in str((await model.finished_requests())[-1]["body"]), "it is for people"
    assert await ending(chat, thread) is None


async def test_an_answer_stopped_at_its_tool_says_so(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    async with adding(chat, model, rows, "milk"):
        pass
    rows("COMMIT")
    assert await ending(chat, await ended_thread(rows)) == ("play", "This answer was stopped before its end.")


async def test_an_answer_that_the_server_ended_says_so(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with backend() as chat:
        async with chat.open("threads.create", input=user_input("count")) as events:
            await read_text(events, at_least=4)
            chat.app.state.parts.turns.shut_down()  # pyright: ignore[reportAttributeAccessIssue]
            assert [event async for event in events][-1]["type"] == "error"
        icon, sentence = await ending(chat, await ended_thread(rows)) or ("", "")
    assert icon == "play"
    assert "The server had to end this answer" in sentence


@pytest.mark.parametrize(("status", "icon"), [(500, "reload"), (401, "info")])
async def test_a_failure_is_told_after_a_reload_too(
    chat: ChatKit, model: ScriptedModel, status: int, icon: str
) -> None:
    await model.script(*[{"status": status}] * 4)
    answer = await chat.say("hello")
    assert answer.error is not None
    assert await ending(chat, answer.thread_id) == (icon, answer.error["message"])
    await model.reset()
    await chat.stream("threads.retry_after_item", thread_id=answer.thread_id, item_id=answer.user_item_id)
    assert await ending(chat, answer.thread_id) is None


async def test_a_notice_is_shown_after_a_reload_too(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "one two", "finish_reason": "length"})
    answer = await chat.say("count")
    [notice] = answer.of("notice")
    assert await ending(chat, answer.thread_id) == ("play", notice["message"])


async def test_who_takes_a_conversation_over_tells_of_the_answer_before(backend: Backend, rows: Rows) -> None:
    async with backend(lease_seconds=60) as chat:  # so that no sweep comes first
        thread = (await chat.say("hello")).thread_id
        leave_running(rows, thread, silent="2 s", lease=1)
        assert (await chat.say("are you there?", thread)).error is None
        items = await chat.items(thread)
    kinds = ["user_message", "assistant_message", "task", "user_message", "assistant_message"]
    assert [item["type"] for item in items] == kinds
    assert "The server had to end this answer" in items[2]["task"]["title"]


async def test_a_turn_whose_end_cannot_be_told_ends_all_the_same(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        rows("REVOKE INSERT ON messages FROM todo_app")
    try:
        await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
    finally:
        rows("GRANT INSERT ON messages TO todo_app")
