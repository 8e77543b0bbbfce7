"""Tasks as events of a calendar: no text ends its line or its event."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from backend.calendar.events import DatedTask, Events

TASK = {"id": 1, "due": "Mon 2027-03-29 02:30", "status": "pending", "updated_at": "2026-11-22T10:00:00Z"}
HOSTILE = {
    "call\r\nEND:VEVENT\r\nBEGIN:VEVENT": "call END:VEVENT BEGIN:VEVENT",
    'a;b,c:d\\n"e"': 'a;b,c:d\\n"e"',
    "\\nBEGIN:VALARM": "\\nBEGIN:VALARM",
    "ü" * 200: "ü" * 200,
    "👩\u200d👩\u200d👧 " * 20: ("👩\u200d👩\u200d👧 " * 20).strip(),
    "שלום": "שלום",
    "x\u2028y\u2029z\x85w\rv\nu": "x y zw v u",
    "x\x00\x07\x1b[31m\x7fy": "x[31my",
    "X-WR-CALNAME:evil": "X-WR-CALNAME:evil",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_others(text: str) -> None:
    task = DatedTask.model_validate({**TASK, "title": text, "description": text, "labels": [text]})
    [made] = Events("alice", ZoneInfo("UTC")).create_events(task)
    content = b"BEGIN:VCALENDAR\r\n" + made.to_ical() + b"END:VCALENDAR\r\n"
    assert all(len(line) <= 75 for line in content.split(b"\r\n"))
    assert not {*content} & {*range(32)} - {*b"\r\n\t"}
    assert content.count(b"\n") == content.count(b"\r") == content.count(b"\r\n")
    [event] = list[Any](Calendar.from_ical(content).events)
    assert [component.name for component in event.subcomponents] == ["VALARM"]
    assert event["summary"] == event.subcomponents[0]["description"] == HOSTILE[text]


def test_users_have_uids_of_their_own() -> None:
    task = DatedTask.model_validate({**TASK, "title": "tax", "description": ""})
    alice, bob = (str(Events(owner, ZoneInfo("UTC")).create_events(task)[0]["uid"]) for owner in ("alice", "bob"))
    assert alice != bob
    assert alice.startswith("1.")
    assert "alice" not in alice
