"""What is done by hand in a widget besides ticking: a box is unticked, again and again, and by several at once."""

import asyncio
import json

from tests.backend.conftest import Rows
from tests.backend.widgets import act, boxes, listed, replaced, tick, widgets_of
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel

OPEN_TITLES = "SELECT title FROM tasks WHERE status = 'pending'"


async def test_a_box_is_unticked_without_the_model(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    done = replaced(await tick(chat, item, "milk"))
    asked = len(await model.finished_requests())
    after = replaced(await tick(chat, done, "milk"))
    assert len(await model.finished_requests()) == asked
    assert after["widget"] == item["widget"]
    assert after["copy_text"] == "- [ ] milk\n- [ ] bread"
    assert len(rows(OPEN_TITLES)) == 2
    assert rows("SELECT actor FROM task_calls WHERE operation = 'update'") == [{"actor": "person"}]
    batches = rows("SELECT operation, batch FROM task_calls ORDER BY id")
    assert len({row["batch"] for row in batches}) == 3, "one of the turn that added both, one of each click"
    await chat.say("hello", thread)
    told = json.dumps((await model.finished_requests())[-1]["body"]["messages"])
    assert "it is completed" in told
    assert "The person unticked task 1" in told


async def test_a_box_can_be_ticked_and_unticked_as_often_as_one_likes(chat: ChatKit, rows: Rows) -> None:
    _, item = await listed(chat, "milk", "bread")
    for number in range(1, 6):
        item = replaced(await tick(chat, item, "milk"))
        assert boxes(item)["milk"]["defaultChecked"] is (number % 2 == 1)
        assert len(rows(OPEN_TITLES)) == 2 - number % 2


async def test_a_click_in_a_page_that_shows_an_older_state_does_what_it_says(chat: ChatKit, rows: Rows) -> None:
    _, old = await listed(chat, "milk", "bread")
    done = replaced(await tick(chat, old, "milk"))
    reopened = replaced(await tick(chat, done, "milk"))
    assert boxes(replaced(await tick(chat, done, "milk"))) == boxes(reopened), "it was open already"
    assert boxes(replaced(await tick(chat, old, "milk"))) == boxes(done)
    assert rows(OPEN_TITLES) == [{"title": "bread"}]


async def test_clicks_at_once_leave_the_widgets_as_the_task_is(chat: ChatKit, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    done = replaced(await tick(chat, item, "milk"))
    await asyncio.gather(*(tick(chat, one, "milk") for one in (done, item) * 4))
    [stored] = rows("SELECT status FROM tasks WHERE title = 'milk'")
    shown = boxes((await chat.items(thread))[-1])["milk"]
    assert shown["defaultChecked"] is (stored["status"] == "completed")


async def test_a_synchronous_action_unticks_too(chat: ChatKit) -> None:
    thread, item = await listed(chat, "milk", "bread")
    await tick(chat, item, "milk")
    action = {"type": "reopen_task", "payload": {"task_id": 1}}
    answer = await chat.ask("threads.sync_custom_action", thread_id=thread, item_id=item["id"], action=action)
    assert boxes(answer["updated_item"])["milk"]["defaultChecked"] is False


async def test_unticking_what_is_not_there_changes_nothing(chat: ChatKit, rows: Rows) -> None:
    _, item = await listed(chat, "milk", "bread")
    for action in (
        {"type": "delete_task", "payload": {"task_id": 1}},
        {"type": "reopen_task", "payload": {"task_id": 3}},
    ):
        assert (await act(chat, item, action)).error is not None
    done = replaced(await tick(chat, item, "milk"))
    rows("DELETE FROM tasks WHERE title = 'milk'")
    error = (await tick(chat, done, "milk")).error
    assert error is not None
    assert "could not be opened again" in error["message"]


async def test_a_repeat_whose_next_task_is_open_is_not_opened_again(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    arguments = {"title": "milk", "due": "2099-11-27", "repeat": "FREQ=DAILY"}
    await model.script({"tool_calls": [{"name": "add_task", "arguments": arguments}]}, {"text": "Added."})
    [card] = widgets_of(await chat.say("milk every day"))
    done = replaced(await tick(chat, card, "milk"))
    assert "next on Sat 28 Nov" in json.dumps(done)
    error = (await tick(chat, done, "milk")).error
    assert error is not None
    assert "the next one is open" in error["message"]
    assert len(rows(OPEN_TITLES)) == 1


async def test_what_was_done_elsewhere_shows_when_a_conversation_is_opened(chat: ChatKit, model: ScriptedModel) -> None:
    thread, item = await listed(chat, "milk", "bread")
    done = replaced(await tick(chat, item, "milk"))
    changes = {"task_id": 1, "status": "pending", "due": "2099-11-27 15:00", "priority": "high"}
    await model.script({"tool_calls": [{"name": "update_task", "arguments": changes}]}, {"text": "Reopened."})
    [card] = widgets_of(await chat.say("not yet"))
    assert "Reopened" in json.dumps(card)
    now = (await chat.items(thread))[-1]
    assert now["id"] == done["id"]
    assert now["copy_text"] == "- [ ] milk (Fri 27 Nov 2099 15:00)\n- [ ] bread"
    assert boxes(now)["milk"]["defaultChecked"] is False
