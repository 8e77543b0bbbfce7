"""Calls for several tasks, and undo, from the model to the widgets."""

from typing import Any

from tests.backend.tools.drawn import parts
from tests.backend.widgets import boxes, listed, widgets_of
from tests.chatkit_client import Answer, ChatKit
from tests.scripted_model import ScriptedModel


async def called(chat: ChatKit, model: ScriptedModel, tool: str, thread: str | None = None, **arguments: Any) -> Answer:
    """The answer of a turn that makes this one call."""
    await model.script({"tool_calls": [{"name": tool, "arguments": arguments}]}, {"text": "Done."})
    return await chat.say("go", thread)


def labels(card: dict[str, Any]) -> list[str]:
    """What a card says: its task's title, and what became of it."""
    [title] = boxes(card)
    return [
        title,
        *(part["label"] for part in parts(card["widget"]) if part["type"] == "Badge" and part["variant"] == "soft"),
    ]


async def test_many_completed_at_once_are_one_list_and_tick_the_list_above(chat: ChatKit, model: ScriptedModel) -> None:
    thread, above = await listed(chat, "milk", "bread", "eggs", "soap", "rice")
    answer = await called(chat, model, "complete_task", thread, task_id=1, also=[2, 3, 4, 99])
    [shown] = widgets_of(answer)
    assert shown["widget"]["status"] == {"text": "4 tasks completed"}
    assert all(box["defaultChecked"] for box in boxes(shown).values())
    assert [event["text"] for event in answer.of("progress_update")] == ["Completing 5 tasks…", "Completed 4 tasks"]
    [now] = [item for item in await chat.items(thread) if item["id"] == above["id"]]
    assert now["widget"]["status"] == {"text": "5 tasks, 4 done"}


async def test_a_few_have_a_card_each(chat: ChatKit, model: ScriptedModel) -> None:
    added = await called(chat, model, "add_task", title="milk", also=["bread"], due="2099-11-27", labels=["shop"])
    assert [labels(card) for card in widgets_of(added)] == [["milk", "Added"], ["bread", "Added"]]
    assert [card["copy_text"] for card in widgets_of(added)] == [
        "- [ ] milk (Fri 27 Nov 2099)",
        "- [ ] bread (Fri 27 Nov 2099)",
    ]
    deleted = await called(chat, model, "delete_task", added.thread_id, task_id=1, also=[2])
    gone = [["milk (deleted)", "Deleted"], ["bread (deleted)", "Deleted"]]
    assert [labels(card) for card in widgets_of(deleted)] == gone
    stored = [item for item in await chat.items(added.thread_id) if item["type"] == "widget"]
    assert [labels(card)[0] for card in stored] == ["milk (deleted)", "bread (deleted)"] * 2


async def test_what_is_undone_is_shown_as_it_is_again(chat: ChatKit, model: ScriptedModel) -> None:
    thread, _ = await listed(chat, "milk", "bread")
    await called(chat, model, "delete_task", thread, task_id=1)
    [back] = widgets_of(await called(chat, model, "update_task", thread, task_id=1, undo=True))
    assert labels(back) == ["milk", "Undone"]
    [never] = widgets_of(await called(chat, model, "update_task", thread, task_id=1, undo=True))
    assert labels(never) == ["milk (deleted)", "Undone"]
    await called(chat, model, "complete_task", thread, task_id=2)
    [open_again] = widgets_of(await called(chat, model, "update_task", thread, task_id=2, status="pending"))
    assert labels(open_again) == ["bread", "Reopened"]
