"""Creates chat messages of the SDK's input items."""

from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]


def create_messages(items: Iterable[Any]) -> list[Message]:
    """Returns messages of the items. The calls of a model turn belong to the message with its text, as its replay."""
    messages: list[Message] = []
    called: Message | None = None  # the message that gets the calls that follow
    for item in items:
        match item:
            case {"type": "function_call_output", "call_id": call_id, "output": output}:
                messages.append({"role": "tool", "tool_call_id": call_id, "content": _join_texts(output)})
                called = None
            case {"type": "function_call"}:
                if called is None:
                    called = {"role": "assistant", "content": None}
                    messages.append(called)
                called.setdefault("tool_calls", []).append(_create_call(item))
            case {"type": "reasoning"}:
                called = None
            case {"role": role, "content": content}:
                messages.append({"role": role, "content": _join_texts(content)})
                called = messages[-1] if role == "assistant" else None
            case _:
                raise ValueError(f"no such item: {item.get('type')}")
        if called is not None and "replay" in item:
            called["replay"] = item["replay"]
    return messages


def _create_call(item: Message) -> Message:
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _join_texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))
