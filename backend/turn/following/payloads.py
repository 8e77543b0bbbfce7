"""A log's events as JSON, and back: what is published of one process can be rendered in any other.

An event is its fields beside its name in `event`, an item its fields beside its name in `kind`. A new event or item is
known here as soon as it is one of `Event` or `Item`.
"""

import dataclasses
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, get_args

from backend.conversation.items import Item, Json
from backend.turn.log import Begun, Event, Grown

_EVENTS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}
_ITEMS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Item)}
_MOMENT = "created_at"  # of an item, and of the conversation's row: no other moment is in a log


def to_payload(event: Event) -> str:
    """JSON, as `from_payload` reads it."""
    fields = {name: _plain(value) for name, value in _fields(event).items()}
    return json.dumps({"event": type(event).__name__, **fields}, default=datetime.isoformat)


def from_payload(payload: Json) -> Event:
    """The event in what `to_payload` wrote."""
    fields = dict(payload)
    return _EVENTS[fields.pop("event")](**{name: _value(name, value) for name, value in fields.items()})


def merged(events: Iterable[Event]) -> list[Event]:
    """The same, to be kept: what one part of an item grows by at a stretch is one event, and what begins is empty."""
    after: list[Event] = []
    growing: list[Grown] = []

    def end_growing() -> None:
        if growing:
            after.append(dataclasses.replace(growing[0], text="".join(one.text for one in growing)))
            growing.clear()

    for event in events:
        match event, growing:
            case Grown(item_id=item_id, part=part), [first, *_] if (item_id, part) == (first.item_id, first.part):
                growing.append(event)
            case Grown(), _:
                end_growing()
                growing.append(event)
            case Begun(item=item), _:  # which may have grown since
                end_growing()
                after.append(Begun(type(item)(id=item.id, created_at=item.created_at)))
            case _:
                end_growing()
                after.append(event)
    end_growing()
    return after


def _fields(value: Any) -> Json:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    return {"kind": type(value).__name__, **_fields(value)} if dataclasses.is_dataclass(value) else value


def _value(name: str, value: Any) -> Any:
    match name, value:
        case "item" | "said", {"kind": kind, **fields}:
            return _ITEMS[kind](**_timed(fields))
        case "conversation", dict():
            return _timed(value)
        case _:
            return value


def _timed(fields: Json) -> Json:
    return {**fields, _MOMENT: datetime.fromisoformat(fields[_MOMENT])}
