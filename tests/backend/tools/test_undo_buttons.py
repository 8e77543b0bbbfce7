"""The button that takes back what an answer has changed: where it is, what it says, and what becomes of it."""

import asyncio
import json
from typing import Any

from tests.backend.conftest import Backend, Rows
from tests.backend.tools.drawn import parts
from tests.backend.widgets import act, boxes, component, listed, replaced, tick, widgets_of
from tests.chatkit_client import Answer, ChatKit
from tests.scripted_model import ScriptedModel

TASKS = "SELECT title, status FROM tasks ORDER BY id"
Item = dict[str, Any]


def buttons(item: Item) -> list[str]:
    """The labels of those that take something back."""
    return [
        part["label"]
        for part in parts(item["widget"])
        if str(part.get("label")).startswith("Undo") and part["type"] == "Button"
    ]


def badge(item: Item) -> str:
    return component(item["widget"], "Badge")["label"]


async def undo(chat: ChatKit, item: Item) -> Answer:
    return await act(chat, item, component(item["widget"], "Button", buttons(item)[0])["onClickAction"])


async def called(chat: ChatKit, model: ScriptedModel, *steps: Item | list[Item], thread: str | None = None) -> Answer:
    """The answer of a turn that makes these calls, each or each list of them in a step of its own."""
    made = [step if isinstance(step, list) else [step] for step in steps]
    await model.script(*({"tool_calls": calls} for calls in made), {"text": "Done."})
    return await chat.say("go", thread)


def call(tool: str, **arguments: Any) -> Item:
    return {"name": tool, "arguments": arguments}


async def test_an_added_task_is_taken_back(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    answer = await chat.say("add milk")
    [card] = widgets_of(answer)
    assert (badge(card), buttons(card)) == ("Added", ["Undo"])
    [run] = rows("SELECT id FROM runs")
    assert component(card["widget"], "Button", "Undo")["onClickAction"]["payload"] == {"batch": run["id"]}
    after = replaced(await undo(chat, card))
    assert rows(TASKS) == []
    assert (badge(after), buttons(after), list(boxes(after))) == ("Undone", [], ["milk (deleted)"])
    assert (await chat.items(answer.thread_id))[1] == after
    again = await undo(chat, card)
    assert "nothing to take back here any more" in (again.error or {})["message"]
    assert len(rows("SELECT 1 FROM task_calls WHERE operation = 'undo' AND actor = 'person'")) == 1
    await chat.say("hello", answer.thread_id)
    assert "The person took back what was done" in json.dumps((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_button_takes_back_a_whole_answer_and_says_so(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread, shown = await listed(chat, "milk", "bread", "eggs")
    assert buttons(shown) == []
    done = await called(chat, model, [call("complete_task", task_id=1), call("delete_task", task_id=2)], thread=thread)
    first, second = widgets_of(done)
    assert buttons(first) == buttons(second) == ["Undo all"]
    await undo(chat, second)
    assert rows(TASKS) == [{"title": title, "status": "pending"} for title in ("milk", "bread", "eggs")]
    items = {item["id"]: item for item in await chat.items(thread)}
    assert [badge(items[card["id"]]) for card in (first, second)] == ["Undone", "Restored"]
    assert [buttons(items[card["id"]]) for card in (first, second)] == [[], []]
    assert items[shown["id"]]["widget"]["status"] == {"text": "3 tasks"}


async def test_a_button_that_is_shown_already_says_that_more_was_done(chat: ChatKit, model: ScriptedModel) -> None:
    answer = await called(
        chat, model, call("add_task", title="milk"), call("add_task", title="bread"), call("list_tasks")
    )
    milk, bread = widgets_of(answer)[:2]
    assert (buttons(milk), buttons(bread)) == (["Undo"], ["Undo all"])
    assert [item["id"] for item in (event["item"] for event in answer.of("thread.item.replaced"))] == [milk["id"]]
    stored = [item for item in await chat.items(answer.thread_id) if item["type"] == "widget"]
    assert [buttons(item) for item in stored] == [["Undo all"], ["Undo all"], []]


async def test_cards_of_one_call_are_taken_back_together(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    milk, bread = widgets_of(await called(chat, model, call("add_task", title="milk", also=["bread"])))
    assert (buttons(milk), buttons(bread)) == (["Undo all"], ["Undo all"])
    await undo(chat, milk)
    assert rows(TASKS) == []


async def test_a_list_of_many_is_taken_back_at_once(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread, _ = await listed(chat, "milk", "bread", "eggs", "soap")
    [shown] = widgets_of(await called(chat, model, call("complete_task", task_id=1, also=[2, 3, 4]), thread=thread))
    assert buttons(shown) == ["Undo"]
    assert component(shown["widget"]["children"][0], "Button")["label"] == "Undo", "above the tasks"
    after = replaced(await undo(chat, shown))
    assert after["widget"]["status"] == {"text": "Undone: 4 tasks completed"}
    assert buttons(after) == []
    assert {row["status"] for row in rows(TASKS)} == {"pending"}


async def test_what_was_changed_since_is_named_and_nothing_is_taken_back(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    [card] = widgets_of(await chat.say("add milk"))
    await called(chat, model, call("update_task", task_id=1, title="oat milk"))
    refused = await undo(chat, card)
    assert "it was changed since: task 1 (oat milk)" in (refused.error or {})["message"]
    assert rows(TASKS) == [{"title": "oat milk", "status": "pending"}]
    ticked = replaced(await tick(chat, card, "milk"))
    assert buttons(ticked) == [], "a button that could not do what it says is not shown"


async def test_only_what_the_widget_offers_is_taken_back_and_only_once(chat: ChatKit, rows: Rows) -> None:
    [milk] = widgets_of(await chat.say("add milk"))
    [bread] = widgets_of(await chat.say("add bread"))
    action = component(bread["widget"], "Button", "Undo")["onClickAction"]
    for payload in (action["payload"], {"batch": "run_1"}, {"batch": 1}, {}, None):
        assert (await act(chat, milk, {"type": "undo", "payload": payload})).error is not None
    answers = await asyncio.gather(*(undo(chat, bread) for _ in range(4)))
    assert sum(answer.error is None for answer in answers) == 1
    assert rows(TASKS) == [{"title": "milk", "status": "pending"}]


async def test_without_signed_calls_it_is_told_what_is_missing(backend: Backend, rows: Rows) -> None:
    async with backend(mcp_token_secret=None) as unsigned:
        [card] = widgets_of(await unsigned.say("add milk"))
        refused = await undo(unsigned, card)
    assert "MCP_TOKEN_SECRET" in (refused.error or {})["message"]
    assert rows(TASKS) == [{"title": "milk", "status": "pending"}]


async def test_a_synchronous_click_answers_with_the_widget(chat: ChatKit, rows: Rows) -> None:
    answer = await chat.say("add milk")
    [card] = widgets_of(answer)
    asked = component(card["widget"], "Button", "Undo")["onClickAction"]
    action = {"type": asked["type"], "payload": asked["payload"]}
    done = await chat.ask("threads.sync_custom_action", thread_id=answer.thread_id, item_id=card["id"], action=action)
    assert badge(done["updated_item"]) == "Undone"
    assert rows(TASKS) == []


async def test_what_was_deleted_by_hand_can_be_taken_back(chat: ChatKit, rows: Rows) -> None:
    _, item = await listed(chat, "milk", "bread")
    [row] = [row for row in item["widget"]["children"] if "milk" in boxes({"widget": row})]
    form = replaced(await act(chat, item, component(row, "Button")["onClickAction"]))
    gone = replaced(await act(chat, form, component(form["widget"], "Button", "Delete")["onClickAction"]))
    assert [row["title"] for row in rows(TASKS)] == ["bread"]
    assert (list(boxes(gone)), buttons(gone)) == (["bread", "milk (deleted)"], ["Undo"])
    assert replaced(await undo(chat, gone)) == item
    assert [row["title"] for row in rows(TASKS)] == ["milk", "bread"]


async def test_a_card_elsewhere_offers_what_can_still_be_taken_back(chat: ChatKit, model: ScriptedModel) -> None:
    added = (await chat.say("add milk and bread")).thread_id
    deleted = (await called(chat, model, call("delete_task", task_id=1))).thread_id
    milk, bread = [item for item in await chat.items(added) if item["type"] == "widget"]
    assert (list(boxes(milk)), buttons(milk)) == (["milk (deleted)"], [])
    assert buttons(bread) == ["Undo all"]
    await called(chat, model, call("update_task", task_id=1, undo=True))
    [back] = [item for item in await chat.items(deleted) if item["type"] == "widget"]
    assert (list(boxes(back)), buttons(back)) == (["milk"], [])
    undone = widgets_of(await called(chat, model, call("update_task", task_id=2, undo=True)))
    assert [buttons(item) for item in undone] == [[]], "of what was taken back"
