"""What is shown in a conversation beside messages, and the components that widgets are made of.

The components are those that ChatKit's types and the pinned SDK both know.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Json = dict[str, Any]
_ITEM = re.compile(r"(?:apr|wid_\d+|wf)_(.+)")


@dataclass(frozen=True, slots=True)
class Card:
    """A widget: `root` is its component, `copy_text` what copying it gives.

    `number` is that of the event that shows it, so that cards and entries have one order. `task_ids` are the tasks in
    it, and `batch` is what its "Undo" undoes, as long as that is possible: then it `offers_undo`.
    """

    id: str
    number: int
    created_at: datetime
    root: Json
    copy_text: str
    task_ids: frozenset[int] = frozenset()
    batch: str | None = None
    offers_undo: bool = False


@dataclass(frozen=True, slots=True)
class Workflow:
    """What a sub-agent did: `steps` have a `title`, `content`, `icon` and `state`; `summary` says how it ended.

    The state is running, done, failed or none. An agent that `is_waiting` goes on when the user has decided.
    """

    id: str
    number: int
    created_at: datetime
    agent: str
    steps: Sequence[Json]
    summary: str | None
    is_waiting: bool = False


def record_of_item(item_id: str) -> str:
    """Returns the id of the entry or tool call of which an item is rendered."""
    found = _ITEM.fullmatch(item_id)
    return found[1] if found else item_id


def action(kind: str, payload: Mapping[str, Any], *, on_client: bool = False) -> Json:
    """Creates the action of a component, with all fields of ChatKit's; `on_client` if the client carries it out."""
    handler = "client" if on_client else "server"
    return {
        "type": kind,
        "payload": dict(payload),
        "handler": handler,
        "loadingBehavior": "auto",
        "streaming": True,
    }


def caption(value: str, **style: Any) -> Json:
    return {"type": "Caption", "value": value, **style}


def badge(label: str, color: str, variant: str = "soft") -> Json:
    return {"type": "Badge", "label": label, "color": color, "variant": variant}


def quiet_button(clicked: Json, **looks: Any) -> Json:
    style = {"size": "sm", "variant": "ghost", "color": "secondary"}
    return {"type": "Button", **looks, **style, "onClickAction": clicked}


def row(*children: Json, **style: Any) -> Json:
    return {"type": "Row", "gap": 2, "wrap": "wrap", "align": "center", **style, "children": [*children]}


def column(*children: Json, **style: Any) -> Json:
    return {"type": "Col", "gap": 1, **style, "children": [*children]}
