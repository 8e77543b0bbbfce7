import json
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from backend.conversation.items import Ending, Hidden, Item, Message, Said, Summarised, Thought, Widget, Work
from backend.turn import log
from backend.turn.following.payloads import from_payload, merged, to_payload
from backend.turn.log import Begun, Done, Event, Grown, PartDone, Started

WHEN = datetime(2026, 11, 22, 10, 54, tzinfo=UTC)
MILK: dict[str, Any] = {"content": [{"type": "input_text", "text": "milk", "created_at": "yesterday"}]}
ITEMS: list[Item] = [
    Said(text="milk", body=MILK, created_at=WHEN),
    Message(id="msg_1", parts=["one", "two"], created_at=WHEN),
    Thought(id="rs_1", text="hm", seconds=2, created_at=WHEN),
    Work(agent="coder", steps=[{"title": "Wrote a.txt", "state": "done"}], ended="Coder: 1 step", created_at=WHEN),
    Widget(root={"type": "Card", "item": {"kind": "Said"}, "created_at": 1}, copy_text="- [ ] milk", created_at=WHEN),
    Ending(sentence="It was stopped.", next="go on", created_at=WHEN),
    Summarised(messages=12, created_at=WHEN),
    Hidden(content={"kind": "note", "text": "hush"}, created_at=WHEN),
]
TEXTS = {"item_id": "msg_1", "part": 1, "text": "väl\u2028ue", "call_id": "call_1", "tool": "add_task"}
TEXTS |= {"approval_id": "apr_1", "approved": False, "reason": None, "agent": "coder"}
TEXTS |= {
    "arguments": '{"a": 1}',
    "output": "{}",
    "message": "No.",
    "done": True,
    "allow_retry": True,
    "outcome": "failed",
    "number": 2,
    "step": {"title": "Wrote a.txt", "state": "done"},
}


def examples() -> list[Event]:
    made: list[Event] = []
    made += [*(Done(item) for item in ITEMS), log.Replaced(ITEMS[4])]  # pyright: ignore[reportArgumentType]
    made += [Started({"id": "thr_1", "title": None, "created_at": WHEN, "status": {}}, True, ITEMS[0])]  # pyright: ignore[reportArgumentType]
    made += [Begun(Message(id="msg_1", created_at=WHEN)), Begun(Thought(id="rs_1", created_at=WHEN))]
    made.append(log.Compacted(Summarised(messages=12, created_at=WHEN)))
    others = [kind for kind in get_args(Event) if kind not in map(type, made)]
    return made + [kind(**{field.name: TEXTS[field.name] for field in fields(kind)}) for kind in others]


@pytest.mark.parametrize("event", examples(), ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    assert from_payload(json.loads(to_payload(event))) == event


def test_an_item_that_has_grown_begins_empty() -> None:
    event = Begun(Message(id="msg_1", parts=["all of it"], created_at=WHEN))
    assert merged([event]) == [Begun(Message(id="msg_1", created_at=WHEN))]


def test_what_one_part_grows_by_at_a_stretch_is_one_event() -> None:
    done = PartDone("a", 0, "one two")
    grown = [("a", 0, "one"), ("a", 0, " "), ("a", 0, "two"), ("a", 1, "x"), ("b", 1, "y"), ("b", 1, "z")]
    events = [Grown(*one) for one in grown]
    whole = [Grown("a", 0, "one two"), Grown("a", 1, "x"), Grown("b", 1, "yz")]
    assert merged(events) == whole
    assert merged([*events[:2], done, *events[2:4]]) == [Grown("a", 0, "one "), done, Grown("a", 0, "two"), whole[1]]
    assert merged([]) == []
