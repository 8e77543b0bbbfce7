"""Reads the frames of a model server's response as the pieces of one answer.

`OF_FRAMES` and `OF_DELTAS` list what servers do that OpenAI's documentation does not say. What spans several frames,
as tool calls and reasoning in tags, is put together by `ToolCallAssembler` and `ThinkTags`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from openai.types import CompletionUsage

from backend.model.errors import ModelError
from backend.model.frames import END
from backend.model.think_tags import ThinkTags
from backend.model.tool_calls import Fragment, ParsedToolCall, ToolCallAssembler, storable

Frame = dict[str, Any]
Finish = Literal["stop", "length", "content_filter"]
_CHARS_OF_CALL = 100  # for each tool call, in addition to its name and arguments


@dataclass
class Piece:
    """What a frame adds to an answer. ToolCallAssembler come whole, in the last piece."""

    text: str = ""
    thought: str = ""
    refusal: str = ""
    calls: list[ParsedToolCall] = field(default_factory=list)
    finish: Finish | None = None
    usage: CompletionUsage | None = None


class ResponseReader:
    """Reads one response. With `begins_thinking`, its text begins with reasoning that no tag opens."""

    def __init__(self, *, begins_thinking: bool = False) -> None:
        self.tags = ThinkTags(begins_thinking=begins_thinking)
        self.finish: Finish | None = None
        self.chars = 0
        """Characters of text, reasoning and calls so far, at least one for each frame: an empty one is work, too."""
        self.has_output = False
        self._calls = ToolCallAssembler()
        self._is_done = False
        self._usage: CompletionUsage | None = None

    def read_frame(self, value: Any) -> Piece:
        """Returns what a JSON value of the stream adds to the answer; tool calls are collected until `end`.

        Raises `ModelError` for an error that is sent as a frame, or for a finish reason that is a failure.
        """
        self._is_done = self._is_done or value is END
        self.chars += 1
        frame = _normalize(value)
        if frame is None:
            return Piece()
        self._usage = _usage(frame.get("usage")) or self._usage
        piece = Piece()
        for choice in frame["choices"]:
            delta = choice["delta"]
            reason = _finish(choice.get("finish_reason"))
            part = self.tags.feed(storable(delta["content"]))
            piece.text += part.text
            piece.thought += storable(delta["reasoning"]) + part.thought
            piece.refusal += storable(delta["refusal"])
            self._calls.take(delta["tool_calls"], is_last=reason is not None)
            self.finish = reason or self.finish
            self._count(delta)
        self.has_output = self.has_output or bool(piece.text or piece.refusal or self._calls)
        return piece

    def end(self) -> Piece:
        """Returns the rest, with the tool calls, finish reason and usage.

        Raises `ModelError` for a response that was cut off: it has neither a finish reason nor `[DONE]`, or reached the
        output limit without output.
        """
        rest = self.tags.finish()
        self.has_output = self.has_output or bool(rest.text)
        if self.finish is None and not (self._is_done and self.has_output):
            raise ModelError("model_cut_off")
        if self.finish == "length" and not self.has_output:
            raise ModelError("model_output_limit")
        return Piece(rest.text, rest.thought, "", self._calls.assemble(), self.finish or "stop", self._usage)

    def _count(self, delta: Frame) -> None:
        self.chars += len(delta["content"]) + len(delta["reasoning"]) + len(delta["refusal"])
        for one in delta["tool_calls"]:
            self.chars += len(one.name) + len(one.arguments) + (_CHARS_OF_CALL if one.name else 0)


# The table's functions: each changes a frame or a delta, or returns None for a frame that has nothing.


@dataclass(frozen=True)
class Behaviour:
    """What some servers do, where it was seen, and the function that makes it what the reader expects."""

    name: str
    seen_in: str
    normalize: Callable[[Frame], Frame | None]


def _raise_error(frame: Frame) -> Frame:
    if frame.get("error"):
        raise ModelError.of_body(frame)
    return frame


def _raise_error_of_minimax(frame: Frame) -> Frame:
    match frame.get("base_resp"):
        case {"status_code": int(code)} as status if code:
            raise ModelError.of_body({"code": code, "message": status.get("status_msg")})
        case _:
            return frame


def _raise_flat_error(frame: Frame) -> Frame:
    is_answer = frame.get("choices") is not None or frame.get("usage")
    says = next((name for name in ("message", "detail", "msg", "error_msg") if isinstance(frame.get(name), str)), None)
    if not is_answer and (says or frame.get("object") == "error"):
        raise ModelError.of_body(frame)
    return frame


def _add_missing_choices(frame: Frame) -> Frame | None:
    choices = frame.get("choices")
    if isinstance(choices, list):
        return frame
    return {**frame, "choices": []} if frame.get("usage") else None


def _select_first_choice(frame: Frame) -> Frame:
    choices = [one for one in frame["choices"] if isinstance(one, dict) and not one.get("index")]
    return {**frame, "choices": choices[:1]}


def _convert_message(frame: Frame) -> Frame:
    """Takes `message` as the delta of a choice without one.

    With one, the message repeats the whole answer at its end.
    """

    def normalize(choice: Frame) -> Frame:
        delta = next((value for name in ("delta", "message") if isinstance(value := choice.get(name), dict)), {})
        return {**choice, "delta": delta}

    return {**frame, "choices": [normalize(choice) for choice in frame["choices"]]}


def _join_content_parts(delta: Frame) -> Frame:
    content = delta.get("content")
    if not isinstance(content, list):
        return delta
    thoughts = [part for part in content if isinstance(part, dict) and "think" in str(part.get("type"))]
    texts = [part for part in content if part not in thoughts]
    return {**delta, "content": _text(texts), "reasoning": _text(thoughts) or delta.get("reasoning")}


def _merge_reasoning(delta: Frame) -> Frame:
    fields = ("reasoning", "reasoning_content", "reasoning_text", "thinking")
    return {**delta, "reasoning": next((text for name in fields if (text := _text(delta.get(name)))), "")}


def _convert_function_call(delta: Frame) -> Frame:
    function = delta.get("function_call")
    if not isinstance(function, dict) or delta.get("tool_calls"):
        return delta
    return {**delta, "tool_calls": [{"index": 0, "function": function}]}


def _nest_flat_calls(delta: Frame) -> Frame:
    def normalize(call: Frame) -> Frame:
        if isinstance(call.get("function"), dict):
            return call
        return {**call, "function": {"name": call.get("name"), "arguments": call.get("arguments", call.get("input"))}}

    calls = delta.get("tool_calls")
    calls = [normalize(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return {**delta, "tool_calls": calls}


def _encode_arguments(delta: Frame) -> Frame:
    def normalize(call: Frame) -> Frame:
        arguments = call["function"].get("arguments")
        if not isinstance(arguments, dict | list):
            return call
        return {**call, "function": {**call["function"], "arguments": json.dumps(arguments)}}

    return {**delta, "tool_calls": [normalize(call) for call in delta["tool_calls"]]}


OF_FRAMES = (
    Behaviour("an error in a frame, with status 200", "nodetool-ai/nodetool#5755", _raise_error),
    Behaviour("MiniMax's error, with status 200", "CherryHQ/cherry-studio#11287", _raise_error_of_minimax),
    Behaviour("a flat error object, with status 200", "huggingface/text-generation-inference#1896", _raise_flat_error),
    Behaviour("choices are null or missing, as in usage and pings", "pydantic/pydantic-ai#5165", _add_missing_choices),
    Behaviour("several choices", "the n of OpenAI's API", _select_first_choice),
    Behaviour("message in place of delta, or delta null", "SillyTavern/SillyTavern#4351", _convert_message),
)
OF_DELTAS = (
    Behaviour("content as a list of parts", "BerriAI/litellm#16272 (Magistral)", _join_content_parts),
    Behaviour("reasoning under several names, or twice", "MoonshotAI/kimi-code#3928", _merge_reasoning),
    Behaviour("function_call, which tool_calls replaced", "QwenLM/qwen-code#6240", _convert_function_call),
    Behaviour("name and arguments outside function", "Ollama's own API", _nest_flat_calls),
    Behaviour("arguments as a JSON value", "ggml-org/llama.cpp#20198", _encode_arguments),
)
# Finish reasons that mean more than an end, also in the words of other APIs.
FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
}
_FAILED = ("error", "malformed_function_call", "network_error")  # OpenRouter's, Gemini's, Z.AI's


def _normalize(value: Any) -> Frame | None:
    """The frame with a list of at most one choice, and all fields of its delta; None for one that has nothing."""
    frame = value if isinstance(value, dict) else None
    for behaviour in OF_FRAMES:
        frame = frame and behaviour.normalize(frame)
    if not frame:
        return None
    choices = [{**choice, "delta": _normalize_delta(choice["delta"])} for choice in frame["choices"]]
    return {**frame, "choices": choices}


def _normalize_delta(delta: Frame) -> Frame:
    for behaviour in OF_DELTAS:
        delta = behaviour.normalize(delta) or delta
    return {
        "content": _string(delta.get("content")),
        "reasoning": _string(delta.get("reasoning")),
        "refusal": _string(delta.get("refusal")),
        "tool_calls": [_fragment(one) for one in delta["tool_calls"]],
    }


def _fragment(call: Frame) -> Fragment:
    function, index, extra = call["function"], call.get("index"), call.get("extra_content")
    return Fragment(
        index=index if isinstance(index, int) else None,
        id=_string(call.get("id")),
        name=storable(_string(function.get("name"))),
        arguments=storable(_string(function.get("arguments"))),
        extra_content=extra if isinstance(extra, dict) else None,
    )


def _finish(reason: Any) -> Finish | None:
    """Converts a finish reason; None while there is none. Raises `ModelError` for one that means a failure."""
    if not isinstance(reason, str) or not reason:
        return None
    if reason.lower() in _FAILED:
        raise ModelError("model_failed", words=f"finish_reason {reason}")
    return FINISHES.get(reason.lower(), "stop")


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case list():
            return "".join(map(_text, value))
        case {"text": inner} | {"thinking": inner} | {"content": inner} | {"reasoning": inner} | {"summary": inner}:
            return _text(inner)
        case _:
            return ""


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _usage(value: Any) -> CompletionUsage | None:
    if not isinstance(value, dict):
        return None
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    counts = {name: value[name] if isinstance(value.get(name), int) else 0 for name in names}
    details = {name: value[name] for name in value if name.endswith("_tokens_details") and value[name]}
    try:
        return CompletionUsage.model_validate({**counts, **details})
    except ValueError:
        return CompletionUsage.model_validate(counts)
