"""Tasks as widgets: what is shown of tool results, and what a tick does."""

import asyncio
import json

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.now import without_now
from tests.backend.widgets import act, boxes, listed, replaced, tick, widgets_of
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.stored_tasks import ADD_TASK


async def test_a_list_that_was_asked_for_is_shown_with_boxes(chat: ChatKit) -> None:
    thread, item = await listed(chat, "milk", "bread")
    assert item["widget"]["type"] == "ListView"
    assert item["widget"]["status"] == {"text": "2 tasks"}
    assert {title: box["defaultChecked"] for title, box in boxes(item).items()} == {"milk": False, "bread": False}
    assert item["copy_text"] == "- [ ] milk\n- [ ] bread"
    assert (await chat.items(thread))[-1] == item


async def test_added_and_renamed_tasks_are_shown_on_cards(chat: ChatKit, rows: Rows) -> None:
    first = await chat.say("add milk and bread")
    assert [list(boxes(card)) for card in widgets_of(first)] == [["milk"], ["bread"]]
    assert {card["widget"]["type"] for card in widgets_of(first)} == {"Card"}
    second = await chat.say("rename milk to oat milk", first.thread_id)
    (card,) = widgets_of(second)
    assert "Changed" in json.dumps(card)
    assert list(boxes(card)) == ["oat milk"]
    kinds = [row["kind"] for row in rows("SELECT kind FROM messages ORDER BY seq")]
    assert kinds[:4] == ["note", "user_message", "tool_calls", "tool_output"]
    assert kinds.count("widget") == 3


async def test_cards_of_one_step_keep_their_order(chat: ChatKit, model: ScriptedModel) -> None:
    calls = [{"name": "add_task", "arguments": {"title": f"task {number}"}} for number in range(10)]
    for _ in range(2):
        await model.script({"tool_calls": calls}, {"text": "Added."})
        answer = await chat.say("add them")
        shown = [item["id"] for item in widgets_of(answer)]
        stored = [item["id"] for item in await chat.items(answer.thread_id) if item["type"] == "widget"]
        assert len(shown) == 10
        assert shown == stored


async def test_a_list_read_only_to_find_a_task_is_not_shown(chat: ChatKit) -> None:
    first = await chat.say("add milk")
    second = await chat.say("I bought the milk", first.thread_id)
    assert second.of("progress_update")[0]["text"] == "Looking at your list…"
    assert [one["widget"]["type"] for one in widgets_of(second)] == ["Card"]


async def test_a_search_shows_what_it_found(chat: ChatKit, rows: Rows) -> None:
    for title in ("water the garden", "milk", "garden chairs", "Milk for the cat"):
        rows(ADD_TASK, "local", title, "")
    first = await chat.say("find milk")
    (item,) = widgets_of(first)
    assert sorted(boxes(item)) == ["Milk for the cat", "milk"]
    assert item["widget"]["status"] == {"text": "2 tasks"}
    assert widgets_of(await chat.say("find orchids", first.thread_id)) == []
    assert widgets_of(await chat.say("complete orchids", first.thread_id)) == []
    (asked_about,) = widgets_of(await chat.say("delete garden", first.thread_id))
    assert sorted(boxes(asked_about)) == ["garden chairs", "water the garden"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("You have three tasks.", ["call Al", "milk", "milk & honey"]),
        ("Call Al first: it is the oldest.", ["call Al", "milk", "milk & honey"]),
        ("Two:\n\n- **2** milk\n* [ ] Call Al: oldest", ["call Al", "milk"]),
        ("1. **milk & honey**: two jars", ["milk & honey"]),
    ],
)
async def test_below_an_answer_that_lists_tasks_stand_those(
    chat: ChatKit, model: ScriptedModel, rows: Rows, words: str, shown: list[str]
) -> None:
    for title in ("milk", "call Al", "milk & honey"):
        rows(ADD_TASK, "local", title, "")
    await model.script({"tool_calls": [{"name": "list_tasks", "arguments": {}}]}, {"text": words})
    (item,) = widgets_of(await chat.say("which?"))
    assert sorted(boxes(item)) == shown


async def test_a_long_list_goes_on_when_asked(chat: ChatKit, rows: Rows) -> None:
    for number in range(230):
        rows(ADD_TASK, "local", f"errand {number:03}", "two lines of words about this one, as people write them")
    first = await chat.say("what is on my list?")
    answer = await chat.say("show the rest", first.thread_id)
    (item,) = widgets_of(answer)
    assert sorted(boxes(item)) == [f"errand {number:03}" for number in range(200, 230)]


async def test_a_question_about_a_long_list_is_answered(chat: ChatKit, rows: Rows) -> None:
    for title in ["call Ann", "call Bob", *(f"errand {number:03}" for number in range(480))]:
        rows(ADD_TASK, "local", title, "two lines of words about this one, as people write them")
    thread = (await chat.say("find errand 007")).thread_id
    asked = await chat.say("complete call", thread)
    assert asked.text.startswith("Which task do you mean")
    assert (await chat.say("2", thread)).text == 'Completed "call Bob".'


async def test_an_empty_list_and_a_failed_call_show_no_widget(chat: ChatKit, model: ScriptedModel) -> None:
    assert widgets_of(await chat.say("show my list")) == []
    await model.script(
        {"tool_calls": [{"name": "update_task", "arguments": {"task_id": 99, "title": "x"}}]}, {"text": "It is gone."}
    )
    answer = await chat.say("rename 99 to x")
    assert widgets_of(answer) == []
    assert not [event for event in answer.of("progress_update") if event.get("icon") == "check"]


async def test_pages_of_one_list_are_shown_as_one(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    for n in range(1, 6):
        rows(ADD_TASK, "local", f"task {n}", "")
    await model.script({"tool_calls": [{"name": "list_tasks", "arguments": {"limit": 2}}]}, {"text": "Two."})
    first = await chat.say("list")
    (item,) = widgets_of(first)
    assert len(boxes(item)) == 2
    assert "There are more" in json.dumps(item["widget"])
    assert item["widget"]["status"] == {"text": "The first 2 tasks"}
    outputs = rows("SELECT item FROM messages WHERE kind = 'tool_output'")
    cursor = json.loads(outputs[0]["item"]["content"]["output"]["output"][0]["text"])["next_cursor"]
    await model.script(
        {"tool_calls": [{"name": "list_tasks", "arguments": {"limit": 2}}]},
        {"tool_calls": [{"name": "list_tasks", "arguments": {"limit": 50, "cursor": cursor}}]},
        {"text": "All."},
    )
    (whole,) = widgets_of(await chat.say("list all", first.thread_id))
    assert list(whole["copy_text"].splitlines()) == [f"- [ ] task {number}" for number in range(1, 6)]
    assert "There are more" not in json.dumps(whole["widget"])
    assert whole["widget"]["status"] == {"text": "5 tasks"}
    await tick(chat, item, "task 1")
    shown = {known["id"]: known for known in await chat.items(first.thread_id)}
    assert shown[item["id"]]["widget"]["status"] == {"text": "The first 2 tasks, 1 done"}


async def test_progress_tells_when_a_step_is_done(chat: ChatKit) -> None:
    answer = await chat.say("add milk")
    assert [(event.get("icon"), event["text"]) for event in answer.of("progress_update")] == [
        (None, "Adding “milk”…"),
        ("check", "Added “milk”"),
    ]


async def test_a_tick_completes_the_task_without_the_model(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    asked = len(await model.finished_requests())
    after = replaced(await tick(chat, item, "milk"))
    assert len(await model.finished_requests()) == asked
    assert after["id"] == item["id"]
    assert boxes(after)["milk"]["defaultChecked"] is True
    assert "disabled" not in boxes(after)["milk"]
    assert boxes(after)["bread"] == boxes(item)["bread"]
    assert after["widget"]["status"] == {"text": "2 tasks, 1 done"}
    assert (await chat.items(thread))[-1] == after
    assert rows("SELECT title FROM tasks WHERE status = 'completed'") == [{"title": "milk"}]
    assert rows("SELECT actor FROM task_calls WHERE operation = 'complete'") == [{"actor": "person"}]


async def test_the_model_learns_of_a_tick_by_a_hidden_note(chat: ChatKit, model: ScriptedModel) -> None:
    thread, item = await listed(chat, 'milk "fresh"', "bread")
    await tick(chat, item, 'milk "fresh"')
    await chat.say("hello", thread)
    messages = without_now((await model.finished_requests())[-1]["body"]["messages"])
    assert [message["role"] for message in messages[-3:]] == ["assistant", "user", "user"]
    assert ', "milk \\"fresh\\"": it is completed.' in messages[-2]["content"]
    assert "HiddenContext" in messages[-2]["content"]
    assert "HiddenContext" not in json.dumps(await chat.items(thread))


async def test_a_change_by_words_or_by_a_tick_shows_in_the_widgets_above(chat: ChatKit) -> None:
    thread, item = await listed(chat, "milk", "bread", "eggs")
    second = await chat.say("I bought the milk", thread)
    assert boxes(replaced(second))["milk"]["defaultChecked"] is True
    await chat.say("rename bread to rye bread", thread)
    await chat.say("delete eggs", thread)
    shown = next(one for one in await chat.items(thread) if one["id"] == item["id"])
    assert set(boxes(shown)) == {"eggs (deleted)", "rye bread", "milk"}
    assert "onChangeAction" not in boxes(shown)["eggs (deleted)"]
    assert shown["widget"]["status"] == {"text": "2 tasks, 1 done"}
    await tick(chat, shown, "rye bread")
    cards = [one for one in await chat.items(thread) if one["type"] == "widget" and "rye bread" in boxes(one)]
    assert len(cards) == 3
    assert all(boxes(one)["rye bread"]["defaultChecked"] for one in cards)


async def test_an_old_widget_can_be_ticked_however_many_came_after_it(chat: ChatKit, rows: Rows) -> None:
    _, item = await listed(chat, "milk", "bread")
    rows(
        "INSERT INTO messages (conversation_id, id, user_id, role, kind, item) "
        "SELECT conversation_id, copy, user_id, role, kind, jsonb_set(item, '{id}', to_jsonb(copy)) "
        "FROM messages, generate_series(1, 30) n, LATERAL (SELECT 'wid_' || n AS copy) WHERE id = %s",
        item["id"],
    )
    answer = await tick(chat, item, "milk")
    assert len(answer.of("thread.item.replaced")) == 21
    assert answer.of("thread.item.replaced")[0]["item"]["id"] == item["id"]


async def test_a_card_can_be_ticked_too(chat: ChatKit) -> None:
    (card,) = widgets_of(await chat.say("add milk"))
    assert boxes(replaced(await tick(chat, card, "milk")))["milk"]["defaultChecked"] is True


async def test_the_same_tick_sent_twice_is_one(chat: ChatKit, rows: Rows) -> None:
    _, item = await listed(chat, "milk", "bread")
    first, second = await tick(chat, item, "milk"), await tick(chat, item, "milk")
    assert first.of("thread.item.replaced") == second.of("thread.item.replaced")
    completed = "SELECT 1 FROM task_changes WHERE after->>'status' = 'completed' AND before IS DISTINCT FROM after"
    assert len(rows(completed)) == 1


async def test_ticks_at_once_are_all_kept(chat: ChatKit, rows: Rows) -> None:
    titles = ["milk", "bread", "eggs", "soap", "rice"]
    thread, item = await listed(chat, *titles)
    await asyncio.gather(*(tick(chat, item, title) for title in titles))
    assert all(box["defaultChecked"] for box in boxes((await chat.items(thread))[-1]).values())
    assert len(rows("SELECT 1 FROM tasks WHERE status = 'completed'")) == 5


async def test_a_tick_may_come_while_an_answer_streams(chat: ChatKit, model: ScriptedModel) -> None:
    thread, item = await listed(chat, "milk", "bread")
    await model.script({"text": "a long answer of many words", "token_delay": 0.05})
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(chat.say("talk", thread))
        await model.received_requests(len(await model.requests()) + 1)
        ticked = group.create_task(tick(chat, item, "milk"))
    assert answering.result().error is None
    assert boxes(replaced(ticked.result()))["milk"]["defaultChecked"] is True


async def test_a_synchronous_action_answers_with_the_item(chat: ChatKit) -> None:
    thread, item = await listed(chat, "milk", "bread")
    action = {"type": "complete_task", "payload": boxes(item)["milk"]["onChangeAction"]["payload"]}
    answer = await chat.ask("threads.sync_custom_action", thread_id=thread, item_id=item["id"], action=action)
    assert boxes(answer["updated_item"])["milk"]["defaultChecked"] is True


async def test_what_was_ticked_holds_through_a_retry(chat: ChatKit, model: ScriptedModel) -> None:
    thread, item = await listed(chat, "milk", "bread")
    await tick(chat, item, "milk")
    asked = [one["id"] for one in await chat.items(thread) if one["type"] == "user_message"][-1]
    answer = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=asked)
    assert answer.error is None
    assert item["id"] not in [one["id"] for one in await chat.items(thread)]
    assert boxes(widgets_of(answer)[0])["milk"]["defaultChecked"] is True
    assert "The person ticked task" in json.dumps((await model.finished_requests())[-1]["body"]["messages"])


OTHER_PAYLOADS = [None, [], "1", 1, {}, {"task_id": None}, {"task_id": "1"}, {"task_id": 1.0}, {"task_id": True}]
OTHER_NUMBERS = [{"task_id": -1}, {"task_id": 3}, {"task_id": 2**70}, {"task_id": [1]}, {"payload": {"task_id": 1}}]


@pytest.mark.parametrize("kind", ["threads.custom_action", "threads.sync_custom_action"])
async def test_a_payload_that_the_widget_does_not_offer_changes_nothing(chat: ChatKit, rows: Rows, kind: str) -> None:
    thread, item = await listed(chat, "milk", "bread")
    rows(ADD_TASK, "somebody else", "theirs", "")
    before = rows("SELECT count(*) FROM messages")
    for payload in (*OTHER_PAYLOADS, *OTHER_NUMBERS):
        action = {"type": "complete_task", "payload": payload}
        if kind == "threads.custom_action":
            sentence = ((await act(chat, item, action)).error or {})["message"]
        else:
            response = await chat.post(kind, thread_id=thread, item_id=item["id"], action=action)
            assert response.status_code == 400
            sentence = response.json()["error"]
        assert "ask for the list again" in sentence, payload
    assert rows("SELECT 1 FROM tasks WHERE status = 'completed'") == []
    assert rows("SELECT count(*) FROM messages") == before


async def test_a_deleted_task_cannot_be_ticked_any_more(chat: ChatKit, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    rows("DELETE FROM tasks WHERE title = 'milk'")
    answer = await tick(chat, item, "milk")
    assert answer.error is not None
    assert "Ask for the list" in answer.error["message"]
    assert list(boxes((await chat.items(thread))[-1])) == ["bread", "milk (deleted)"]


async def test_a_tick_while_the_tools_are_away_is_told_and_can_be_repeated(chat: ChatKit, backend: Backend) -> None:
    _, item = await listed(chat, "milk", "bread")
    async with backend(mcp_internal_url="http://127.0.0.1:9/mcp", mcp_resend_seconds=0.1) as without_tools:
        answer = await tick(without_tools, item, "milk")
        assert answer.error is not None
        assert "task service cannot be reached" in answer.error["message"]
    assert boxes(replaced(await tick(chat, item, "milk")))["milk"]["defaultChecked"] is True
