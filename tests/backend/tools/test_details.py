"""What a widget tells of a task besides its title. Drawn from results of the tools, and valid for ChatKit's types."""

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from backend.conversation.items import Widget
from backend.tools import widgets
from backend.tools.task import Task
from tests.backend.tools.drawn import drawn, parts, words

NOW = datetime(2026, 11, 23, 15, 0)
MILK = {"id": 3, "title": "Buy milk", "status": "pending"}
FULL = {
    **MILK,
    "description": "two litres",
    "due": "Mon 2026-11-23 18:30",
    "priority": "high",
    "labels": ["shop", "home"],
    "repeat": "FREQ=WEEKLY;BYDAY=MO",
}
REPEATING = {**MILK, "status": "completed", "repeat": "FREQ=DAILY", "next": {"id": 4, "due": "Tue 2026-11-24"}}


def a_task(**fields: Any) -> Task:
    return Task.model_validate({**MILK, **fields})


def listed(*tasks: Task, now: datetime | None = NOW) -> Widget:
    return drawn(widgets.task_list(tasks, more=False, now=now))


def color(**fields: Any) -> str:
    now = fields.pop("now", NOW)
    [due] = [part for part in parts(listed(a_task(**fields), now=now).root) if str(part.get("key")).startswith("due")]
    return due["color"]


def test_a_row_and_a_card_tell_all_of_a_task() -> None:
    told = ["Mon 23 Nov 18:30", "High", "reload", "every Monday", "#shop #home"]
    assert words(listed(a_task(**FULL))) == ["Buy milk", "two litres", *told]
    card = drawn(widgets.task_card(a_task(**FULL), "Added", now=NOW))
    assert words(card) == ["Buy milk", "", "Added", "two litres", *told]
    for shown in (listed(a_task(**FULL)), card):
        assert shown.copy_text == "- [ ] Buy milk (Mon 23 Nov 18:30)"


@pytest.mark.parametrize(
    ("due", "key"), [("Fri 2026-11-27", "due-2026-11-27"), ("Mon 2026-11-23 18:30", "due-2026-11-23T18:30")]
)
def test_the_key_of_a_date_has_it_for_readers_of_other_languages(due: str, key: str) -> None:
    assert [part["key"] for part in parts(listed(a_task(due=due)).root) if part["type"] == "Badge"] == [key]


def test_a_task_of_which_nothing_more_is_known_is_shown_as_ever() -> None:
    [row] = widgets.task_list([a_task(description="two litres")], more=False, now=NOW)["children"]
    assert row == {
        "type": "ListViewItem",
        "key": "row-3",
        "align": "start",
        "children": [
            {
                "type": "Col",
                "gap": 1,
                "flex": 1,
                "children": [
                    {
                        "type": "Checkbox",
                        "key": "task-3",
                        "name": "task-3",
                        "label": "Buy milk",
                        "defaultChecked": False,
                        "onChangeAction": {"type": "complete_task", "payload": {"task_id": 3}},
                    },
                    {"type": "Caption", "value": "two litres", "maxLines": 2},
                ],
            },
            {
                "type": "Button",
                "key": "edit-3",
                "iconStart": "dots-horizontal",
                "size": "sm",
                "variant": "ghost",
                "color": "secondary",
                "uniform": True,
                "onClickAction": {"type": "edit_task", "payload": {"task_id": 3, "title": "Buy milk"}},
            },
            {
                "type": "Button",
                "key": "open-3",
                "iconStart": "external-link",
                "size": "sm",
                "variant": "ghost",
                "color": "secondary",
                "uniform": True,
                "onClickAction": {"type": "open_task", "payload": {"task_id": 3}, "handler": "client"},
            },
        ],
    }
    nothing: dict[str, Any] = {"due": None, "priority": None, "labels": [], "repeat": None}
    assert words(listed(a_task(**nothing))) == ["Buy milk"]


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        ("Sun 2026-11-22", "danger"),
        ("Mon 2026-11-23 14:59", "danger"),
        ("Mon 2026-11-23 15:00", "danger"),
        ("Mon 2026-11-23 15:01", "warning"),
        ("Mon 2026-11-23", "warning"),
        ("Tue 2026-11-24", "secondary"),
        ("Tue 2026-11-24 00:00", "secondary"),
    ],
)
def test_the_colour_tells_what_is_overdue_or_due_today(due: str, expected: str) -> None:
    assert color(due=due) == expected
    assert color(due=due, status="completed") == "secondary"
    assert color(due=due, now=None) == "secondary"


def test_another_year_is_named() -> None:
    assert "Fri 1 Jan 2027 09:00" in words(listed(a_task(due="Fri 2027-01-01 09:00")))
    assert "Fri 1 Jan" in words(listed(a_task(due="Fri 2027-01-01"), now=datetime(2027, 1, 1)))


@pytest.mark.parametrize("fields", [{"due": "soon"}, {"due": "Mon 2026-02-30"}, {"priority": "huge"}])
def test_what_is_no_task_is_not_taken_for_one(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_task(**fields)


def test_a_widget_follows_every_change_of_its_task() -> None:
    shown = listed(a_task(**FULL), a_task(id=5, title="Bread"))
    moved = widgets.redrawn(shown, [a_task(**{**FULL, "due": "Sun 2026-11-22", "priority": "low"})], now=NOW)
    assert moved is not None
    told = ["two litres", "Sun 22 Nov", "Low", "reload", "every Monday", "#shop #home"]
    assert words(moved) == ["Buy milk", *told, "Bread"]
    assert moved.copy_text == "- [ ] Buy milk (Sun 22 Nov)\n- [ ] Bread"
    plain = widgets.redrawn(moved, [a_task(), a_task(id=9)], now=NOW)
    assert plain is not None
    assert words(plain) == ["Buy milk", "Bread"]
    gone = widgets.redrawn(shown, [Task.model_validate({"id": 3, "title": "Buy milk", "deleted": True})], now=NOW)
    assert gone is not None
    assert words(gone) == ["Buy milk (deleted)", "Bread"]
    assert widgets.redrawn(shown, [a_task(id=9)], now=NOW) is None


def test_a_card_keeps_what_became_of_its_task() -> None:
    card = drawn(widgets.task_card(a_task(), "Added", now=NOW))
    after = widgets.redrawn(card, [a_task(**FULL)], now=NOW)
    assert after is not None
    assert words(after) == words(drawn(widgets.task_card(a_task(**FULL), "Added", now=NOW)))


def test_what_comes_next_is_shown_as_long_as_the_task_is_completed() -> None:
    shown = listed(a_task(**REPEATING))
    assert words(shown) == ["Buy milk", "reload", "every day", "next on Tue 24 Nov"]
    again = widgets.redrawn(shown, [a_task(**{**REPEATING, "next": None, "title": "Buy oat milk"})], now=NOW)
    assert again is not None
    assert words(again) == ["Buy oat milk", "reload", "every day", "next on Tue 24 Nov"]
    reopened = widgets.redrawn(again, [a_task(repeat="FREQ=DAILY")], now=NOW)
    assert reopened is not None
    assert words(reopened) == ["Buy milk", "reload", "every day"]


def test_what_is_stored_looks_like_what_is_drawn() -> None:
    shown = listed(a_task(**FULL))
    for now, same in ((NOW, True), (datetime(2026, 11, 24), False)):
        redrawn = widgets.redrawn(shown, [a_task(**FULL)], now=now)
        assert redrawn is not None
        assert widgets.looks_like(redrawn, shown) is same
