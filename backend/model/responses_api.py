"""OpenAI's Responses API, as requests and frames of chat completions: everything else works as with these.

The API is asked to store nothing. Its encrypted reasoning is part of a replay and goes back in place.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any

from backend.model.requests.replay import ITEMS

Json = dict[str, Any]

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_CHAT_FIELDS = ("store", "stream_options", "messages", "tools", "max_tokens", "max_completion_tokens")
_REASONING = ("reasoning_effort", "reasoning_summary", "encrypted_reasoning")


def create_request(body: Json) -> Json:
    """Converts a request for chat completions; of a turn's output items it has what `render_turns` has left."""
    instructions, messages = "", list(body["messages"])
    if messages and messages[0]["role"] == "system":
        instructions = messages.pop(0)["content"]
    request = {name: value for name, value in body.items() if name not in (*_CHAT_FIELDS, *_REASONING)}
    request |= {"input": [item for message in messages for item in _create_items(message)], "store": False}
    if instructions:
        request["instructions"] = instructions
    if tools := body.get("tools"):
        # `strict` is true by default, and then no argument may be optional.
        request["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in tools]
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body:
            request["max_output_tokens"] = body[name]
    reasoning = {"effort": body.get("reasoning_effort"), "summary": body.get("reasoning_summary")}
    if reasoning := {name: value for name, value in reasoning.items() if value}:
        request["reasoning"] = reasoning
    if body.get("encrypted_reasoning"):
        request["include"] = ["reasoning.encrypted_content"]
    return request


def _create_items(message: Json) -> Iterator[Json]:
    match message:
        case {"role": "assistant"}:
            yield from _create_turn(message)
        case {"role": "tool", "tool_call_id": call_id, "content": content}:
            yield {"type": "function_call_output", "call_id": call_id, "output": content}
        case {"role": role, "content": content}:
            role = "developer" if role == "system" else role
            yield {"type": "message", "role": role, "content": [{"type": "input_text", "text": content or ""}]}
        case _:
            raise ValueError(f"no such message: {message.get('role')}")


def _create_turn(message: Json) -> Iterator[Json]:
    """Yields the items of a turn in the order in which the model wrote them, if all of them are there."""
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message.get("tool_calls") or ()
    ]
    text = message.get("content") or ""
    kinds = [item["type"] for item in message.get(ITEMS) or ()]
    if kinds.count("function_call") != len(calls) or (text and "message" not in kinds):
        yield from ([_create_text(text)] if text else [])
        yield from calls
        return
    reasoning: list[Json] = []  # each needs the item after it
    for item in message[ITEMS] if kinds else ():
        if item["type"] == "reasoning":
            reasoning.append(item)
            continue
        if item["type"] == "function_call":
            following = calls.pop(0)
        elif item["type"] == "message" and text:
            following, text = _create_text(text, item.get("phase")), ""
        else:
            reasoning = []
            continue
        yield from reasoning
        yield following
        reasoning = []


def _create_text(text: str, phase: str | None = None) -> Json:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return message | ({"phase": phase} if phase else {})


async def read_events(values: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """Yields the frames of a response, whether it is streamed as events or sent whole."""
    reader = _EventReader()
    async with aclosing(values):
        async for value in values:
            for frame in reader.read(value) if isinstance(value, dict) else (value,):
                yield frame


class _EventReader:
    """What a server sends at the end of an item, or of the response, counts as far as it did not come before."""

    def __init__(self) -> None:
        self._indexes: dict[Any, int] = {}  # of items without an index, by their id
        self._chars: dict[int, int] = {}  # of text, reasoning or arguments so far, by the index of the item
        self._begun: set[int] = set()  # calls whose name was read
        self._items: dict[int, Json] = {}

    def read(self, event: Json) -> Iterator[Json]:
        kind, index, delta = event.get("type"), self._find_index(event), event.get("delta")
        if event.get("object") == "response":
            yield from self._read_end(event)
        elif kind in _ENDS and isinstance(event.get("response"), dict):
            yield from self._read_end(event["response"])
        elif kind == "response.output_item.added":
            yield from self._begin_call(index, event.get("item"))
        elif kind == "response.output_item.done":
            yield from self._read_item(index, event.get("item"))
        elif kind == "error":
            yield {"error": event.get("error") or event}
        elif isinstance(delta, str) and isinstance(kind, str):
            yield from self._read_delta(kind, index, delta)
        elif kind == "response.reasoning_summary_part.added" and self._chars.get(index):
            yield self._add(index, "\n\n", "reasoning_text")
        else:
            yield event if "error" in event or "choices" in event else {}

    def _find_index(self, event: Json) -> int:
        """Returns the index of an item, which some servers leave out (Oaklight/llm-rosetta#56)."""
        if isinstance(index := event.get("output_index"), int):
            return index
        item = event.get("item")
        item_id = item.get("id") if isinstance(item, dict) else event.get("item_id")
        if item_id not in self._indexes and None in self._indexes and not _is_item(item, "function_call"):
            item_id = None
        return self._indexes.setdefault(item_id, len(self._indexes))

    def _read_delta(self, kind: str, index: int, delta: str) -> Iterator[Json]:
        if kind == "response.output_text.delta":
            yield self._add(index, delta, "content")
        elif kind == "response.refusal.delta":
            yield self._add(index, delta, "refusal")
        elif kind in _THOUGHTS:
            yield self._add(index, delta, "reasoning_text")
        elif kind == "response.function_call_arguments.delta":
            yield self._add_arguments(index, delta)
        else:
            yield {}

    def _add(self, index: int, text: str, field: str) -> Json:
        self._chars[index] = self._chars.get(index, 0) + len(text)
        return _create_frame({field: text})

    def _add_arguments(self, index: int, text: str) -> Json:
        self._chars[index] = self._chars.get(index, 0) + len(text)
        return _create_frame({"tool_calls": [{"index": index, "function": {"arguments": text}}]})

    def _begin_call(self, index: int, item: Any) -> Iterator[Json]:
        if not _is_item(item, "function_call") or index in self._begun or not item.get("name"):
            yield {}
            return
        self._begun.add(index)
        yield _create_frame(
            {"tool_calls": [{"index": index, "id": item.get("call_id"), "function": {"name": item["name"]}}]}
        )

    def _read_item(self, index: int, item: Any) -> Iterator[Json]:
        if not isinstance(item, dict) or index in self._items:
            yield {}
            return
        self._items[index] = item
        before = self._chars.get(index, 0)
        match item:
            case {"type": "function_call"}:
                yield from self._begin_call(index, item)
                if isinstance(arguments := item.get("arguments"), str):
                    yield self._add_arguments(index, arguments[before:])
            case {"type": "message"} if not before:
                yield from (_create_frame(delta) for delta in _list_texts(item))
            case {"type": "reasoning"} if not before:
                yield _create_frame({"reasoning_text": item.get("summary") or item.get("content") or ""})
            case _:
                yield {}

    def _read_end(self, response: Json) -> Iterator[Json]:
        output = response.get("output")
        if isinstance(output, list) and not self._items:  # no item was said to be done (earendil-works/pi#9897)
            for index, item in enumerate(output):
                yield from self._read_item(index, item)
        if response.get("error"):
            yield {"error": response["error"]}
            return
        items = [_create_replay(self._items[index]) for index in sorted(self._items)]
        delta = {ITEMS: items} if any(item["type"] == "reasoning" or len(item) > 1 for item in items) else {}
        yield {**_create_frame(delta, _find_finish(response)), "usage": response.get("usage")}


def _is_item(item: Any, kind: str) -> bool:
    return isinstance(item, dict) and item.get("type") == kind


def _create_frame(delta: Json, finish: str | None = None) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _list_texts(item: Json) -> Iterable[Json]:
    parts = item.get("content")
    for part in parts if isinstance(parts, list) else ():
        match part:
            case {"type": "refusal", "refusal": str(text)}:
                yield {"refusal": text}
            case {"text": str(text)}:
                yield {"content": text}
            case _:
                pass


def _create_replay(item: Json) -> Json:
    """Returns what goes back of an output item: reasoning that is encrypted, and where a text or a call stood.

    Without ids: the API does not know those of items that it has not stored (vercel/ai#7543, maximhq/bifrost#5410).
    """
    match item:
        case {"type": "reasoning", "encrypted_content": str()}:
            names = ("type", "summary", "content", "encrypted_content")
            return {"summary": []} | {name: item[name] for name in names if item.get(name) is not None}
        case {"type": "message", "phase": str(phase)}:
            return {"type": "message", "phase": phase}
        case {"type": "message" | "function_call"}:
            return {"type": item["type"]}
        case _:
            return {"type": "other"}


def _find_finish(response: Json) -> str:
    status, details = response.get("status"), response.get("incomplete_details")
    if status == "incomplete" and isinstance(details, dict) and isinstance(details.get("reason"), str):
        return details["reason"]
    return status if isinstance(status, str) else "completed"
