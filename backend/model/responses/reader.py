"""Reads the frames of a model server's response as the pieces of one answer.

Comments name where servers were seen to do what OpenAI's documentation does not say. What spans several frames, as tool
calls and reasoning in tags, is put together by `ToolCallAssembler` and `ThinkTags`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

from backend.model.failures.errors import ModelError
from backend.model.markup.calls import Tools
from backend.model.markup.parser import MarkupParser
from backend.model.markup.quoting import Quotable
from backend.model.requests.replay import Replay, ReplayCollector, select_state
from backend.model.responses.frames import END
from backend.model.responses.repetition import RepetitionDetector
from backend.model.tool_calls import Fragment, ParsedToolCall, ToolCallAssembler, add_written_calls, storable

Frame = dict[str, Any]
_NO_USAGE = Counter[str]()  # of all pieces but the last, and never changed
Finish = Literal["stop", "length", "content_filter", "repeated", "ended"]
_FILTERED = "Response withheld by the provider's content filter."
_CHARS_OF_CALL = 100  # for each tool call, in addition to its name and arguments
_PART_CHARS = 4_000  # which are read within 5 ms
_REASONING = ("reasoning", "reasoning_content", "reasoning_text", "thinking")
_MAX_REASON_CHARS, _MAX_DIGITS = 200, 10
# How servers spell counts of tokens: OpenAI, Anthropic, Gemini, Ollama.
_COUNTS = {
    "input_tokens": ("prompt_tokens", "input_tokens", "promptTokenCount", "prompt_token_count", "prompt_eval_count"),
    "output_tokens": (
        *("completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count", "eval_count"),
        "generated_tokens",
    ),
    "reasoning_tokens": ("reasoning_tokens", "thoughtsTokenCount", "thoughts_token_count", "thinking_tokens"),
}
_MAX_COUNT = 2**31  # of tokens: a server that counts more is wrong
# Families of finish reasons, also in the words of other APIs. Any other reason means that the server ended the answer.
_FINISHES: dict[Finish, tuple[str, ...]] = {
    "stop": (
        *("stop", "stop_sequence", "eos", "eos_token", "end_turn", "end", "completed", "complete", "done", "finished"),
        *("tool_calls", "tool_call", "tool_use", "function_call", "function_calls", "stop_token", "finish", "load"),
        "finish_reason_unspecified",
    ),
    "length": (
        *("length", "max_tokens", "model_length", "max_output_tokens", "max_completion_tokens", "max_length"),
        *("model_context_window_exceeded", "context_length_exceeded", "token_limit", "tokens_limit", "incomplete"),
    ),
    "content_filter": (
        *("content_filter", "content_filtered", "safety", "recitation", "prohibited_content", "blocklist", "spii"),
        *("sensitive", "refusal", "image_safety", "guardrail_intervened", "moderation", "unsafe", "language"),
    ),
}
_FAMILY: dict[str, Finish] = {reason: family for family, reasons in _FINISHES.items() for reason in reasons}
_FAILED = (
    *("error", "network_error", "failed", "server_error"),  # OpenRouter's, Z.AI's
    *("malformed_function_call", "unexpected_tool_call", "malformed_response", "too_many_tool_calls"),  # Gemini's
)


@dataclass
class Piece:
    """What a frame adds to an answer; a refusal is its text. Calls come whole, in the last piece."""

    text: str = ""
    thought: str = ""
    calls: Sequence[ParsedToolCall] = ()
    finish: Finish | None = None
    usage: Counter[str] = field(default_factory=lambda: _NO_USAGE)
    """Counts of `input_tokens`, `output_tokens` and, among these, `reasoning_tokens`; empty if the server sent none."""
    replay: Replay | None = None
    """What the provider wants back with this model turn, in the last piece."""


class ResponseReader:
    """Reads one response to the messages, whose markup may have calls of the tools.

    With `begins_thinking`, its text begins with reasoning that no tag opens.
    """

    def __init__(
        self, tools: Tools | None = None, messages: Sequence[Mapping[str, Any]] = (), *, begins_thinking: bool = False
    ) -> None:
        tools = tools or {}
        quotable = Quotable(messages)
        self.markup = MarkupParser(tools, quotable=quotable, begins_thinking=begins_thinking)
        self._new_reasoning = partial(MarkupParser, tools, quotable=quotable, is_thought=True)
        self._reasoning = self._new_reasoning()
        self.finish: Finish | None = None
        self.chars = 0
        """Characters of text, reasoning and calls so far, at least one for each frame: an empty one is work, too."""
        self.output_chars = 0
        """Those that the model has written."""
        self.usage = Counter[str]()
        """What the server has counted so far, as in `Piece`."""
        self.has_output = False
        self._calls = ToolCallAssembler()
        self._replay = ReplayCollector()
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
        choice = _get_first_choice(value)
        for sent in (value, value.get("x_groq"), choice):
            self.usage = _merge_usage(self.usage, sent)
        delta = _render_delta(choice)
        self._replay.read(delta)
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
        text, thought = self.markup.feed(self._texts.feed(storable(content + refusal)))
        if reasoning:
            _, before = self._reasoning.feed(self._thoughts.feed(storable(reasoning)))
            thought = before + thought
        elif text.strip():
            _, before = self._reasoning.finish()
            thought, self._reasoning = before + thought, self._new_reasoning()
        self.has_output = self.has_output or bool(text or self._calls)
        return Piece(text, thought)

    def _count(self, written: int) -> None:
        self.output_chars += written
        self.chars += written

    def end(self) -> Piece:
        if self.is_repeated:
            return Piece(finish="repeated", usage=self.usage)
        is_whole = self.finish in (None, "stop")
        _, before = self._reasoning.finish(is_whole=is_whole)
        text, thought = self.markup.finish(is_whole=is_whole)
        calls = add_written_calls(self._calls.assemble(), self._list_written_calls())
        self.has_output = self.has_output or bool(text or calls)
        if self.finish is None and not (self._is_done and self.has_output):
            raise ModelError("model_cut_off")
        if self.finish == "length" and not self.has_output:
            raise ModelError("model_output_limit")
        if self.finish == "content_filter" and not self.has_output:
            text = _FILTERED
        if self.finish == "ended" and not self.has_output:
            raise ModelError("model_cut_off")
        finish = self.finish or "stop"
        if finish == "stop" and self.markup.is_cut and self.has_output and not calls:
            finish = "ended"
        return Piece(text, before + thought, calls, finish, self.usage, self._replay.create(calls))

    def _list_written_calls(self) -> Sequence[ParsedToolCall]:
        """Returns the calls in the markup; those in reasoning only if nothing else was written."""
        if self.markup.calls or self.markup.has_text:
            return self.markup.calls
        return [] if self._calls else self.markup.drafts or self._reasoning.drafts


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
    function, index = call.get("function"), call.get("index")
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
        replay=select_state(call) or None,
    )


def _finish(reason: Any) -> Finish | None:
    if not isinstance(reason, str) or not reason:
        return None
    # Some servers put a family before the reason, as Gemini's `content_filter: RECITATION`.
    parts = [re.sub(r"\W+", "_", part.strip().lower()) for part in reason[:_MAX_REASON_CHARS].split(":")][::-1]
    if any(part in _FAILED for part in parts):
        raise ModelError("model_failed", words=f"finish_reason {reason[:_MAX_REASON_CHARS]}")
    for part in parts:
        if part in _FAMILY:
            return _FAMILY[part]
    return "ended"


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


def _merge_usage(usage: Counter[str], place: Any) -> Counter[str]:
    """Returns the usage with what one place of a frame counts; 0 and null replace nothing."""
    if not isinstance(place, dict):
        return usage
    counts = Counter[str]()
    for sent in (place, place.get("usage"), place.get("usageMetadata"), place.get("usage_metadata")):
        if isinstance(sent, dict):
            details = [sent.get(name) for name in ("completion_tokens_details", "output_tokens_details")]
            for name, spellings in _COUNTS.items():
                values = (
                    _parse_count(one.get(name))
                    for one in (sent, *details)
                    for name in spellings
                    if isinstance(one, dict)
                )
                counts[name] = max((value for value in values if value), default=counts[name])
    counts = +counts
    return Counter({**usage, **counts}) if counts else usage


def _parse_count(value: Any) -> int:
    """Returns a count of tokens that is a number or its text; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS:
        value = int(value)
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT
    return int(value) if is_count else 0
