"""The form in which a task is changed by hand: what it shows, what of it is sent on, and what is refused."""

import json
from functools import partial
from typing import Any

import pytest

from backend.conversation.errors import InvalidRequest
from backend.conversation.items import Json
from backend.tools import edit_form, widgets
from backend.tools.task import Task
from service.clock import wall_time
from tests.backend.conftest import Rows
from tests.backend.tools.drawn import drawn
from tests.backend.widgets import act, boxes, component, listed, replaced, tick, widgets_of
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel

BERLIN = partial(wall_time, zone="Europe/Berlin")
DENTIST = Task.model_validate(
    {
        "id": 4,
        "title": "Dentist",
        "status": "pending",
        "due": "Fri 2026-11-27 15:00",
        "priority": "high",
        "labels": ["health", "work"],
    }
)
UNTOUCHED = {"title": "Dentist", "due": "2026-11-27", "time": "15:00", "priority": "high", "labels": "health, work"}
PLAIN = Task(id=5, title="Milk", status="pending")
UNTOUCHED_PLAIN = {"title": "Milk", "due": "", "time": "", "priority": "none", "labels": ""}


def stored(task: Task) -> Json:
    """The form as it is read from the database."""
    shown = widgets.with_form(drawn(widgets.task_list([task], more=False)), task.id, edit_form.form(task))
    return widgets.form_of(drawn(shown.root), task.id) or {}


def changed(task: Task, untouched: Json, **fields: Any) -> Json:
    payload = {"task_id": task.id} | {f"edit.{name}": value for name, value in (untouched | fields).items()}
    return edit_form.changed(stored(task), payload, BERLIN)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, {}),
        ({"title": " Dentist "}, {}),
        ({"title": "Dr. Lee"}, {"title": "Dr. Lee"}),
        ({"due": "2026-11-30"}, {"due": "2026-11-30 15:00"}),
        ({"due": "2026-11-30T00:00:00"}, {"due": "2026-11-30 15:00"}),
        ({"due": "2026-11-29T23:00:00.000Z"}, {"due": "2026-11-30 15:00"}),
        ({"due": "2027-06-30T22:00:00Z"}, {"due": "2027-07-01 15:00"}),
        ({"due": ""}, {"due": "none"}),
        ({"due": None}, {"due": "none"}),
        ({"due": "", "time": ""}, {"due": "none"}),
        ({"time": "9:05"}, {"due": "2026-11-27 09:05"}),
        ({"time": ""}, {"due": "2026-11-27 all day"}),
        ({"priority": "none"}, {"priority": "none"}),
        ({"labels": "work,  #Health ,"}, {}),
        ({"labels": "work, gym"}, {"labels": ["work", "gym"]}),
        ({"labels": ""}, {"remove_labels": ["health", "work"]}),
    ],
    ids=str,
)
def test_only_what_differs_is_changed(fields: Json, wanted: Json) -> None:
    assert changed(DENTIST, UNTOUCHED, **fields) == wanted


def test_a_task_without_details_is_given_them() -> None:
    assert changed(PLAIN, UNTOUCHED_PLAIN) == {}
    fields = {"due": "2026-12-01", "priority": "low", "labels": "shop"}
    wanted = {"due": "2026-12-01 all day", "priority": "low", "labels": ["shop"]}
    assert changed(PLAIN, UNTOUCHED_PLAIN, **fields) == wanted


def test_fields_may_come_one_inside_the_other_and_empty_ones_not_at_all() -> None:
    payload = {"task_id": 4, "edit": {"title": "Dr. Lee", "priority": "high", "labels": "health, work"}}
    assert edit_form.changed(stored(DENTIST), payload, BERLIN) == {"title": "Dr. Lee", "due": "none"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"title": " "}, "needs a title"),
        ({"title": 7}, "holds no text"),
        ({"due": "soon"}, "date is not understood"),
        ({"due": "2026-02-30"}, "date is not understood"),
        ({"due": "0001-01-01T00:00:00+14:00"}, "date is not understood"),
        ({"time": "25:00"}, "time is not understood"),
        ({"time": "3 pm"}, "time is not understood"),
        ({"due": "", "time": "16:00"}, "time needs a day"),
        ({"priority": "huge"}, "high, medium, low or none"),
        ({"labels": ["work"]}, "holds no text"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_told_in_one_sentence(fields: Json, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence) as refused:
        changed(DENTIST, UNTOUCHED, **fields)
    assert str(refused.value).endswith("Nothing was changed.")


def test_no_field_is_named_as_a_key_of_an_action_s_payload() -> None:
    form = json.dumps(edit_form.form(DENTIST))
    assert '"name": "edit.title"' in form
    assert '"name": "task_id"' not in form


async def opened(chat: ChatKit, item: Json, title: str) -> Json:
    """The widget with the form of a task."""
    [row] = [row for row in item["widget"]["children"] if title in boxes({"widget": row})]
    return replaced(await act(chat, item, component(row, "Button")["onClickAction"]))


async def saved(chat: ChatKit, item: Json, **fields: Any) -> Any:
    action = component(item["widget"], "Form")["onSubmitAction"]
    payload = action["payload"] | {f"edit.{name}": value for name, value in fields.items()}
    return await act(chat, item, {"type": action["type"], "payload": payload})


async def test_a_task_is_changed_by_hand_and_shown_anew(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    asked = len(await model.finished_requests())
    form = await opened(chat, item, "milk")
    assert boxes(form) == boxes(item)
    new = {"title": "oat milk", "due": "2099-11-27", "time": "15:00", "priority": "high", "labels": "shop"}
    after = await saved(chat, form, **new)
    assert after.error is None
    assert len(await model.finished_requests()) == asked
    shown = replaced(after)
    assert shown["copy_text"] == "- [ ] oat milk (Fri 27 Nov 2099 15:00)\n- [ ] bread"
    assert "Form" not in json.dumps(shown)
    [task] = rows("SELECT title, due_on::text, due_time::text, priority, labels FROM tasks WHERE id = 1")
    assert task == {
        "title": "oat milk",
        "due_on": "2099-11-27",
        "due_time": "15:00:00",
        "priority": 1,
        "labels": ["shop"],
    }
    assert rows("SELECT actor FROM task_calls WHERE operation = 'update'") == [{"actor": "person"}]
    await chat.say("hello", thread)
    assert "The person changed task 1" in json.dumps((await model.finished_requests())[-1]["body"]["messages"])


async def test_moving_the_date_leaves_the_repeat_as_it_is(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    arguments = {"title": "plants", "due": "Mon 2099-11-23", "repeat": "FREQ=WEEKLY;BYDAY=MO"}
    await model.script({"tool_calls": [{"name": "add_task", "arguments": arguments}]}, {"text": "Added."})
    [card] = widgets_of(await chat.say("plants"))
    edit = {"type": "edit_task", "payload": {"task_id": 1, **arguments}}
    form = replaced(await act(chat, card, edit))
    await saved(chat, form, title="plants", due="2099-11-25", time="", priority="none", labels="")
    assert rows("SELECT due_on::text, repeat FROM tasks") == [
        {"due_on": "2099-11-25", "repeat": "FREQ=WEEKLY;BYDAY=MO"}
    ]
    refused = await saved(chat, replaced(await act(chat, card, edit)), title="plants")
    assert "repeats needs a date" in (refused.error or {})["message"]


async def test_a_form_is_closed_and_left_as_it_is_by_what_is_refused(chat: ChatKit, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    form = await opened(chat, item, "milk")
    before = rows("SELECT count(*) FROM task_calls")
    refused = await saved(chat, form, title="milk", due="2099-11-27", time="25:00")
    assert "write it as 15:00" in (refused.error or {})["message"]
    assert (await chat.items(thread))[-1] == form
    unchanged = await saved(chat, form, title="milk")
    assert replaced(unchanged) == item
    again = await opened(chat, item, "milk")
    cancel = component(again["widget"], "Button", "Cancel")
    assert replaced(await act(chat, again, cancel["onClickAction"])) == item
    assert rows("SELECT count(*) FROM task_calls") == before
    for kind in ("save_task", "delete_task"):
        answer = await act(chat, again, {"type": kind, "payload": {"task_id": 1, "edit.title": "x"}})
        assert "not open for changes here" in (answer.error or {})["message"]


async def test_a_form_outlasts_a_change_of_its_task_until_that_is_gone(chat: ChatKit) -> None:
    thread, item = await listed(chat, "milk", "bread")
    form = await opened(chat, item, "milk")
    ticked = replaced(await tick(chat, form, "milk"))
    assert component(ticked["widget"], "Form") == component(form["widget"], "Form")
    await chat.say("delete milk")
    [shown] = [one for one in await chat.items(thread) if one["id"] == item["id"]]
    assert list(boxes(shown)) == ["bread", "milk (deleted)"]
    assert "Form" not in json.dumps(shown)
    refused = await saved(chat, form, title="oat milk")
    assert "1" in (refused.error or {})["message"]


async def test_no_date_that_a_click_names_spoils_the_widget(chat: ChatKit) -> None:
    thread, item = await listed(chat, "milk", "bread")
    asked = {"task_id": 1, "title": "milk", "due": "Mon 0001-01-01"}
    form = replaced(await act(chat, item, {"type": "edit_task", "payload": asked}))
    assert (await chat.items(thread))[-1] == form
    refused = await saved(chat, form, title="milk", due="2099-11-27", time="15:3\u0663")
    assert "write it as 15:00" in (refused.error or {})["message"]
    cancel = component(form["widget"], "Button", "Cancel")
    assert replaced(await act(chat, form, cancel["onClickAction"])) == item
