"""Reads the ChatKit items that version 0.1.0 stored."""

import contextlib
import hashlib
import json
from collections import Counter
from typing import Any

Json = dict[str, Any]


def get_time(note: Any) -> Json:
    content = note.item["content"] if note is not None else {}
    return {name: content[name] for name in ("now", "time_zone", "calendar") if content.get(name)}


def render_message(item: Json) -> tuple[str, Json]:
    """Returns the text of a message below its quote, and its parts if it has tags or a quote."""
    parts, quoted = item["content"], item.get("quoted_text")
    text, after_tag = "", False
    for part in parts:
        is_tag = part["type"] == "input_tag"
        text += (" @" if after_tag else "@") + part["text"] if is_tag else part["text"]
        after_tag = is_tag
    if not quoted:
        is_tagged = any(part["type"] == "input_tag" for part in parts)
        return text, {"content": parts} if is_tagged else {}
    quote = "\n".join(f"> {line}" for line in quoted.splitlines())
    return f"{quote}\n\n{text}", {"content": parts, "quoted_text": quoted}


def render_output(output: Any) -> str:
    if isinstance(output, list):
        return "\n".join(str(part.get("text") or "") for part in output)
    return output if isinstance(output, str) else json.dumps(output)


def parse_object(text: str) -> Json | None:
    with contextlib.suppress(ValueError):
        value = json.loads(text)
        return value if isinstance(value, dict) else None
    return None


def create_idempotency_key(message_id: str, call: Json, equal_calls: Counter[tuple[str, str]]) -> str:
    """Returns the idempotency key of an old call, so that a retry of its message does not repeat it."""
    arguments = call["arguments"]
    with contextlib.suppress(ValueError):
        arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    count = equal_calls[call["name"], arguments]
    equal_calls[call["name"], arguments] += 1
    return hashlib.sha256(json.dumps([message_id, call["name"], arguments, count]).encode()).hexdigest()
