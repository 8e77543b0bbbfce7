"""Reads the frames of a model server's response as the pieces of one answer.

Comments name where servers were seen to do what OpenAI's documentation does not say. What spans several frames, as tool
calls and reasoning in tags, is put together by `ToolCallAssembler` and `ThinkTags`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from backend.model.errors import ModelError
from backend.model.frames import END
from backend.model.repetition import RepetitionDetector
from backend.model.think_tags import ThinkTags
from backend.model.tool_calls import Fragment, ParsedToolCall, ToolCallAssembler, storable

Frame = dict[str, Any]
_NO_USAGE = Counter[str]()  # of all pieces but the last, and never changed
Finish = Literal["stop", "length", "content_filter", "repeated"]
_FILTERED = "Response withheld by the provider's content filter."
_CHARS_OF_CALL = 100  # for each tool call, in addition to its name and arguments
_PART_CHARS = 4_000  # which are read within 5 ms
_REASONING = ("reasoning", "reasoning_content", "reasoning_text", "thinking")
_MAX_COUNT = 2**31  # of tokens: a server that counts more is wrong
# Finish reasons that mean more than an end, also in the words of other APIs.
_FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
}
_FAILED = ("error", "malformed_function_call", "network_error")  # OpenRouter's, Gemini's, Z.AI's


@dataclass
class Piece:
    """What a frame adds to an answer; a refusal is its text. Calls come whole, in the last piece."""

    text: str = ""
    thought: str = ""
    calls: Sequence[ParsedToolCall] = ()
    finish: Finish | None = None
    usage: Counter[str] = field(default_factory=lambda: _NO_USAGE)
    """Counts of `input_tokens`, `output_tokens` and, among these, `reasoning_tokens`; empty if the server sent none."""


class ResponseReader:
    """Reads one response. With `begins_thinking`, its text begins with reasoning that no tag opens."""

    def __init__(self, *, begins_thinking: bool = False) -> None:
        self.tags = ThinkTags(begins_thinking=begins_thinking)
        self.finish: Finish | None = None
        self.chars = 0
        """Characters of text, reasoning and calls so far, at least one for each frame: an empty one is work, too."""
        self.output_chars = 0
        """Those that the model has written."""
        self.usage = Counter[str]()
        """What the server has counted so far, as in `Piece`."""
        self.has_output = False
        self._calls = ToolCallAssembler()
        self._texts, self._thoughts = RepetitionDetector(), RepetitionDetector()
        self._is_done = False

    @property
    def is_repeated(self) -> bool:
        """Whether the text or the reasoning repeats itself, so that there is no use in reading on."""
        return self._texts.is_repeated or self._thoughts.is_repeated

    def read_frame(self, value: Any) -> Iterator[Piece]:
        """Yields what a JSON value of the stream adds to the answer, a long text in parts.

        Raises `ModelError` for a reported failure.
        """
        self._is_done = self._is_done or value is END
        self.chars += 1
        if not isinstance(value, dict):
            yield Piece()
            return
        _raise_if_error(value)
        if value.get("usage"):
            self.usage = _parse_usage(value["usage"]) or self.usage
        choice = _get_first_choice(value)
        delta = _render_delta(choice)
        fragments, reason = _list_fragments(delta), _finish(choice.get("finish_reason"))
        if fragments:
            self._count(sum(len(one.name) + len(one.arguments) for one in fragments))
            self.chars += sum(_CHARS_OF_CALL for one in fragments if one.name)
            self._calls.take(fragments, is_last=reason is not None)
        self.finish = reason or self.finish
        for part in _divide(*_reasoning_and_content(delta), _get_text(delta.get("refusal"))):
            yield self._read_part(*part)
            if self.is_repeated:
                break

    def _read_part(self, reasoning: str, content: str, refusal: str) -> Piece:
        self._count(len(reasoning) + len(content) + len(refusal))
        text, thought = self.tags.feed(storable(content))
        if refusal or reasoning:
            text, thought = text + storable(refusal), storable(reasoning) + thought
        piece = Piece(self._texts.feed(text), self._thoughts.feed(thought) if thought else "")
        self.has_output = self.has_output or bool(piece.text or self._calls)
        return piece

    def _count(self, written: int) -> None:
        self.output_chars += written
        self.chars += written

    def end(self) -> Piece:
        if self.is_repeated:
            return Piece(finish="repeated", usage=self.usage)
        text, thought = self.tags.finish()
        self.has_output = self.has_output or bool(text)
        if self.finish is None and not (self._is_done and self.has_output):
            raise ModelError("model_cut_off")
        if self.finish == "length" and not self.has_output:
            raise ModelError("model_output_limit")
        if self.finish == "content_filter" and not self.has_output:
            text = _FILTERED
        return Piece(text, thought, self._calls.assemble(), self.finish or "stop", self.usage)


def _raise_if_error(frame: Frame) -> None:
    is_answer = frame.get("choices") is not None or frame.get("usage")
    if frame.get("error") or (not is_answer and _is_flat_error(frame)):  # nodetool-ai/nodetool#5755
        raise ModelError.of_body(frame)
    match frame.get("base_resp"):  # MiniMax, CherryHQ/cherry-studio#11287
        case {"status_code": int(code)} as status if code:
            raise ModelError.of_body({"code": code, "message": status.get("status_msg")})
        case _:
            pass


def _is_flat_error(frame: Frame) -> bool:
    # huggingface/text-generation-inference#1896
    says = any(isinstance(frame.get(name), str) for name in ("message", "detail", "msg", "error_msg"))
    return says or frame.get("object") == "error"


def _get_first_choice(frame: Frame) -> Frame:
    choices = frame.get("choices")  # null or missing in usage and pings: pydantic/pydantic-ai#5165
    for one in choices if isinstance(choices, list) else ():
        if isinstance(one, dict) and not one.get("index"):
            return one
    return {}


def _render_delta(choice: Frame) -> Frame:
    for name in ("delta", "message"):  # SillyTavern/SillyTavern#4351
        if isinstance(value := choice.get(name), dict):
            return value
    return {}


def _reasoning_and_content(delta: Frame) -> tuple[str, str]:
    content, thoughts = delta.get("content"), None
    if isinstance(content, list):  # Magistral, BerriAI/litellm#16272
        thoughts = [part for part in content if isinstance(part, dict) and "think" in str(part.get("type"))]
        content = [part for part in content if part not in thoughts]
    # Under several names, or twice: MoonshotAI/kimi-code#3928
    for sent in (thoughts, *map(delta.get, _REASONING)):
        if sent and (reasoning := _get_text(sent)):
            return reasoning, _get_text(content)
    return "", _get_text(content)


def _divide(reasoning: str, content: str, refusal: str) -> Iterable[tuple[str, str, str]]:
    """Returns texts that are short together, and others in parts one after the other."""
    if len(reasoning) + len(content) + len(refusal) <= _PART_CHARS:
        return ((reasoning, content, refusal),)
    thoughts, texts = ((part, "", "") for part in _cut(reasoning)), (("", part, "") for part in _cut(content))
    return chain(thoughts, texts, (("", "", part) for part in _cut(refusal)))


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + _PART_CHARS] for start in range(0, len(text), _PART_CHARS))


def _list_fragments(delta: Frame) -> list[Fragment]:
    calls = delta.get("tool_calls")
    if not calls and isinstance(function := delta.get("function_call"), dict):  # QwenLM/qwen-code#6240
        calls = [{"index": 0, "function": function}]
    return [_create_fragment(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _create_fragment(call: Frame) -> Fragment:
    function, index, extra = call.get("function"), call.get("index"), call.get("extra_content")
    if not isinstance(function, dict):  # Ollama's own API
        function = {"arguments": call.get("input"), **call}
    arguments = function.get("arguments")
    if isinstance(arguments, dict | list):  # ggml-org/llama.cpp#20198
        arguments = json.dumps(arguments)
    return Fragment(
        index=index if isinstance(index, int) else None,
        id=_get_text(call.get("id")),
        name=storable(_get_text(function.get("name"))),
        arguments=storable(_get_text(arguments)),
        extra_content=extra if isinstance(extra, dict) else None,
    )


def _finish(reason: Any) -> Finish | None:
    if not isinstance(reason, str) or not reason:
        return None
    if reason.lower() in _FAILED:
        raise ModelError("model_failed", words=f"finish_reason {reason}")
    return _FINISHES.get(reason.lower(), "stop")


def _get_text(value: Any) -> str:
    if not value:
        return ""
    match value:
        case str():
            return value
        case list():
            return "".join(map(_get_text, value))
        case {"text": inner} | {"thinking": inner} | {"content": inner} | {"reasoning": inner} | {"summary": inner}:
            return _get_text(inner)
        case _:
            return ""


def _parse_usage(value: Any) -> Counter[str]:
    sent = value if isinstance(value, dict) else {}
    details = sent.get("completion_tokens_details")
    counts = {
        "input_tokens": sent.get("prompt_tokens"),
        "output_tokens": sent.get("completion_tokens"),
        "reasoning_tokens": details.get("reasoning_tokens") if isinstance(details, dict) else None,
    }
    return Counter(
        {name: count for name, count in counts.items() if isinstance(count, int) and 0 <= count < _MAX_COUNT}
    )
