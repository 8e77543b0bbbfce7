"""Rows of a conversation → what the model reads, the same for the same rows every time."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from agents.items import TResponseInputItem
from chatkit.agents import ThreadItemConverter
from chatkit.types import (
    AssistantMessageItem,
    GeneratedImageItem,
    HiddenContextItem,
    TaskItem,
    UserMessageItem,
    UserMessageTagContent,
    WidgetItem,
    WorkflowItem,
)
from pydantic import ValidationError

from backend.models import Message
from backend.store_adapter import THREAD_ITEM
from database import new_id, utc_now

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: it may have been carried out. Check with list_tasks before repeating it."
)
NOTE = "Hidden context for the agent (not shown to the user):\n<HiddenContext>\n{}\n</HiddenContext>"


ONLY_FOR_THE_PAGE = frozenset({"widget", "workflow", "task", "generated_image", "end_of_turn"})


async def to_model_input(rows: Iterable[Message]) -> list[TResponseInputItem]:
    """The model's input for these rows: calls paired with their outputs, nothing that is only for the page."""
    rows = list(rows)
    outputs = {
        row.item["content"]["output"]["call_id"]: row.item["content"]["output"]
        for row in rows
        if row.kind == "tool_output"
    }
    converter = _Converter()
    items: list[Any] = []
    for row in rows:
        match row.kind:
            case "tool_calls":
                items.extend(_step(row.item["content"], outputs))
            case "tool_output" | "summary":
                pass
            case _:
                items.extend(await converter.convert(row))
    return items


def _step(content: dict[str, Any], outputs: dict[str, Any]) -> list[Any]:
    calls = content["calls"]
    unknown = {"type": "function_call_output", "output": UNKNOWN_OUTCOME}
    answers = [outputs.get(call["call_id"]) or {**unknown, "call_id": call["call_id"]} for call in calls]
    return [*content["reasoning"], *calls, *answers]


class _Converter(ThreadItemConverter):
    async def convert(self, row: Message) -> list[Any]:
        try:
            item = THREAD_ITEM.validate_python(row.item)
        except ValidationError:
            return []
        return await self.to_agent_input(item)

    async def user_message_to_input(self, item: UserMessageItem, is_last_message: bool = True) -> Any:
        return {"role": "user", "content": user_text(item)}

    async def assistant_message_to_input(self, item: AssistantMessageItem) -> Any:
        # With an id it is an output message: the SDK joins the calls that follow to it, as it did in the turn itself.
        parts = [{"type": "output_text", "text": part.text, "annotations": []} for part in item.content]
        return {"type": "message", "id": item.id, "role": "assistant", "status": "completed", "content": parts}

    async def hidden_context_to_input(self, item: HiddenContextItem) -> Any:
        return {"role": "user", "content": NOTE.format(item.content["text"])}

    async def widget_to_input(self, item: WidgetItem) -> None:
        return None

    async def workflow_to_input(self, item: WorkflowItem) -> None:
        return None

    async def task_to_input(self, item: TaskItem) -> None:
        return None

    async def generated_image_to_input(self, item: GeneratedImageItem) -> None:
        return None


def user_text(item: UserMessageItem) -> str:
    """What the person wrote, below what they quoted."""
    text = "".join(f"@{part.text}" if isinstance(part, UserMessageTagContent) else part.text for part in item.content)
    if not item.quoted_text:
        return text
    quote = "\n".join(f"> {line}" for line in item.quoted_text.splitlines())
    return f"{quote}\n\n{text}"


def note(thread_id: str, text: str) -> HiddenContextItem:
    """A hidden item the model reads and no client sees."""
    return HiddenContextItem(
        id=new_id("note"), thread_id=thread_id, created_at=utc_now(), content={"kind": "note", "text": text}
    )


def abandoned_attempt(thread_id: str, dropped: Sequence[Message]) -> HiddenContextItem | None:
    """What an attempt that was dropped had already done, or None when it had called no tool."""
    outputs = {
        row.item["content"]["output"]["call_id"]: row.item["content"]["output"]["output"]
        for row in dropped
        if row.kind == "tool_output"
    }
    calls = [call for row in dropped if row.kind == "tool_calls" for call in row.item["content"]["calls"]]
    lines = [
        f"- {call['name']}({call['arguments']}) → {plain(outputs.get(call['call_id'], UNKNOWN_OUTCOME))}"
        for call in calls
        if call["name"] != "list_tasks"
    ]
    if not lines:
        return None
    return note(
        thread_id,
        "The person asked for their last message to be answered again. An attempt that is not shown any more had made "
        "these calls already:\n" + "\n".join(lines) + "\nDo not repeat what has been done: check with list_tasks.",
    )


def plain(output: Any) -> str:
    """A tool's output as text."""
    if isinstance(output, list):
        return "\n".join(part.get("text", "") for part in output)
    return output if isinstance(output, str) else json.dumps(output)
