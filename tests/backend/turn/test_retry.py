from typing import Any

import pytest

from backend.conversation.model_input import history
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.now import without_now
from tests.chatkit_client import Answer, ChatKit, text_of
from tests.scripted_model import ScriptedModel


async def retry(chat: ChatKit, answer: Answer) -> Answer:
    return await chat.stream("threads.retry_after_item", thread_id=answer.thread_id, item_id=answer.user_item_id)


async def test_a_retry_replaces_the_answer_and_adds_no_task_twice(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    first = await chat.say("add milk and bread")
    second = await retry(chat, first)
    assert second.error is None
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY title")] == ["bread", "milk"]
    assert len(rows("SELECT 1 FROM task_changes")) == 2
    shown_by = rows("SELECT DISTINCT run_id FROM messages WHERE superseded_by IS NULL AND kind = 'widget'")
    assert rows("SELECT DISTINCT batch AS run_id FROM task_calls") == shown_by, "the answer that shows them"
    items = await chat.items(first.thread_id)
    assert [item["type"] for item in items] == ["user_message", "widget", "widget", "assistant_message"]
    assert items[0]["id"] == first.user_item_id
    assert [item["id"] for item in items[1:]] == [item["id"] for item in second.items]
    assert {item["id"] for item in items[1:]}.isdisjoint(item["id"] for item in first.items)


async def test_nothing_is_deleted_and_the_replaced_rows_name_the_run(chat: ChatKit, rows: Rows) -> None:
    first = await chat.say("add milk")
    before = {row["id"] for row in rows("SELECT id FROM messages")}
    await retry(chat, first)
    stored = rows("SELECT id, superseded_by FROM messages")
    assert before <= {row["id"] for row in stored}
    retried = rows("SELECT id FROM runs ORDER BY started_at")[-1]["id"]
    assert {row["superseded_by"] for row in stored if row["id"] in before} == {None, retried}


async def test_the_model_is_told_what_the_dropped_attempt_did(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]},
        {"text": "half an ans", "cut_after": 2},
        {"text": "Milk is on your list."},
    )
    first = await chat.say("add milk")
    assert first.error is not None
    second = await retry(chat, first)
    assert second.text == "Milk is on your list."
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    assert [message["role"] for message in without_now(messages)] == ["system", "user", "user"]
    assert 'add_task({"title": "milk"})' in messages[-1]["content"]
    assert '"id":1' in messages[-1]["content"]
    assert "half an ans" not in str(messages)


async def test_the_same_call_in_other_words_of_json_is_the_same_call(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": '{"title": "milk", "description": "two"}'}]},
        {"text": "a"},
        {"tool_calls": [{"name": "add_task", "arguments": '{ "description":"two","title":"milk" }'}]},
        {"text": "b"},
    )
    await retry(chat, await chat.say("add milk"))
    assert len(rows("SELECT 1 FROM tasks")) == 1


async def test_the_same_call_twice_in_one_attempt_is_two_tasks_and_stays_two(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    twice = {"tool_calls": [{"name": "add_task", "arguments": {"title": "knock"}}] * 2}
    await model.script(twice, {"text": "a"}, twice, {"text": "b"})
    first = await chat.say("add knock, twice")
    assert len(rows("SELECT 1 FROM tasks")) == 2
    await retry(chat, first)
    assert len(rows("SELECT 1 FROM tasks")) == 2


async def test_retrying_an_earlier_message_replaces_all_that_followed(chat: ChatKit, rows: Rows) -> None:
    first = await chat.say("add milk")
    await chat.say("add bread", first.thread_id)
    await retry(chat, first)
    items = await chat.items(first.thread_id)
    assert [text_of(item) for item in items if item["type"] == "user_message"] == ["add milk"]
    left = await chat.say("what is left?", first.thread_id)
    assert len(left.listed) == 2, "tasks are the person's, not the thread's"


async def test_a_retry_can_be_retried(chat: ChatKit, rows: Rows) -> None:
    first = await chat.say("add milk")
    for _ in range(3):
        assert (await retry(chat, first)).error is None
    assert len(rows("SELECT 1 FROM tasks")) == 1
    assert len(await chat.items(first.thread_id)) == 3


async def test_a_third_attempt_knows_what_the_first_one_did(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(
        {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]},
        {"text": "Milk is on your list."},
        {"status": 401},
        {"text": "Milk is on your list."},
    )
    first = await chat.say("add milk")
    assert (await retry(chat, first)).error is not None
    assert (await retry(chat, first)).error is None
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    assert str(messages).count("add_task(") == 1
    assert 'add_task({"title": "milk"})' in messages[-1]["content"]
    told = "SELECT 1 FROM messages WHERE item->'content' ? 'attempted' AND superseded_by IS NULL"
    assert len(rows(told)) == 1


async def test_a_retry_of_an_old_message_reads_what_was_done_last_and_no_more_than_a_page(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    first = await chat.say("add milk")
    rows(
        "INSERT INTO messages (user_id, conversation_id, id, role, kind, item) "
        "SELECT 'local', %s, 'old_' || n, 'app', 'tool_output', jsonb_build_object('content', jsonb_build_object("
        "'kind', 'tool_output', 'output', jsonb_build_object('call_id', 'old', 'output', repeat('x', 10000)))) "
        "FROM generate_series(1, 1000) AS n",
        first.thread_id,
    )
    await chat.say("add bread", first.thread_id)
    kept: list[int] = []
    noted = history.abandoned_attempt

    def counted(dropped: Any, **options: Any) -> Any:
        kept.append(len(dropped))
        return noted(dropped, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "abandoned_attempt", counted)
        assert (await retry(chat, first)).error is None
    assert 10 < kept[0] < 60, "of a thousand rows of ten kilobytes"
    told = [
        message["content"] for request in await model.finished_requests() for message in request["body"]["messages"]
    ]
    assert any('add_task({"title": "bread"})' in str(content) for content in told)
