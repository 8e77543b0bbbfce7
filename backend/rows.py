"""Rows ↔ ChatKit's threads and items."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from chatkit.types import HiddenContextItem, ThreadItem, ThreadMetadata
from pydantic import TypeAdapter, ValidationError

from backend.identity import RequestContext
from backend.models import Message
from database import to_utc

logger = logging.getLogger(__name__)

THREAD_ITEM = TypeAdapter[ThreadItem](ThreadItem)
ROLES = {"user_message": "user", "assistant_message": "assistant"}
VISIBLE = (
    "user_message",
    "assistant_message",
    "client_tool_call",
    "widget",
    "generated_image",
    "structured_input",
    "workflow",
    "task",
    "end_of_turn",
)
ONLY_SHOWN = (
    "widget",
    "workflow",
    "task",
    "generated_image",
    "end_of_turn",
    "summary",
)  # nothing for the model to read


class StoredItem(NamedTuple):
    """What is read of a row of `messages`."""

    seq: int
    id: str
    kind: str
    item: dict[str, Any]


def to_thread(row: Mapping[str, Any]) -> ThreadMetadata:
    """The thread in a row of `conversations`."""
    return ThreadMetadata.model_validate({**row, "created_at": to_utc(row["created_at"])})


def to_item(row: StoredItem | Message) -> ThreadItem | None:
    """The item a row holds, or None for a type this version of ChatKit does not know."""
    try:
        return THREAD_ITEM.validate_python(row.item)
    except ValidationError:
        logger.warning("item %s of kind %s is not shown: unknown to this version", row.id, row.kind)
        return None


def from_item(thread_id: str, item: ThreadItem, context: RequestContext) -> dict[str, Any]:
    created_at = to_utc(item.created_at)
    kind = item.content["kind"] if isinstance(item, HiddenContextItem) and isinstance(item.content, dict) else item.type
    return {
        "conversation_id": thread_id,
        "id": item.id,
        "user_id": context.user_id,
        "run_id": context.turn.run_id if context.turn else None,
        "role": ROLES.get(item.type, "app"),
        "kind": kind,
        "item": item.model_copy(update={"created_at": created_at}).model_dump(mode="json", by_alias=True),
        "created_at": created_at,
    }
