"""Events of the run API as an agent's listeners get them."""

from typing import Any

from tests.runs_client import SHAPES
from todo_client import EventType
from todo_client.events import render_agent_events

_TYPES_OF_THE_AGENT = {EventType.AGENT_START, EventType.AGENT_END}
_START_AND_END = {"interaction_started", "interaction_complete", "cancelled"}


def test_each_event_has_a_type_and_each_type_an_event() -> None:
    data: dict[str, Any] = dict.fromkeys(["is_error", "details"])
    rendered = {name: render_agent_events(name, data | dict.fromkeys(SHAPES[name], "")) for name in SHAPES}
    assert {name for name, events in rendered.items() if not events} == _START_AND_END
    kinds = {kind for events in rendered.values() for kind, _ in events}
    assert kinds == {*EventType} - _TYPES_OF_THE_AGENT


def test_unknown_event_is_passed_on() -> None:
    assert render_agent_events("usage_updated", {"tokens": 3}) == [("USAGE_UPDATED", {"tokens": 3})]
