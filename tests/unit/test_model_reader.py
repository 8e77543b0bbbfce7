"""How responses of model servers are read: each known behaviour, every cut, and behaviours combined."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.model.failures.errors import ModelError
from backend.model.responses.frames import values_of
from backend.model.responses.reader import Piece, ResponseReader
from backend.model.responses.stream import ask_again_if_empty, read_actions, read_whole
from backend.settings import ProviderName
from tests.strict_provider.contracts import CONTRACTS

RESPONSES = Path(__file__).parent.parent / "api" / "model_servers"
Json = dict[str, Any]


async def _read(pieces: list[bytes]) -> list[Piece]:
    async def sent() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    answer = ResponseReader()
    read = [piece async for value in values_of(sent()) for piece in answer.read_frame(value)]
    return [*read, answer.end()]


def read(*pieces: bytes) -> Json:
    """What is read of a body: text, thought, calls, how it ended; or the code of the error."""
    try:
        read = asyncio.run(_read([*pieces]))
    except ModelError as error:
        return {"error": error.code}
    last = read[-1]
    return {
        "text": "".join(piece.text for piece in read),
        "thought": "".join(piece.thought for piece in read),
        "calls": [(call.name, call.arguments) for call in last.calls],
        "finish": last.finish,
        "tokens": last.usage,
    }


def body(*frames: Any) -> bytes:
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode() + b"data: [DONE]\n\n"


def chunk(finish: str | None = None, **delta: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(name: str, arguments: Any, **more: Any) -> Json:
    return {"tool_calls": [{"function": {"name": name, "arguments": arguments}, **more}]}


HELLO, STOP, CALLS = chunk(content="hello"), chunk("stop"), chunk("tool_calls")
ADD = ("add", '{"a": 1}')

# What some servers do: frames that show it, and what is expected of the answer.
SHOWN: dict[str, tuple[list[Any], Json]] = {
    "several choices": (
        [{"choices": [HELLO["choices"][0], {"index": 1, "delta": {"content": "other"}}]}, STOP],
        {"text": "hello"},
    ),
    "message in place of delta, or delta null": (
        [
            {"choices": [{"message": {"content": "hel"}}]},
            {"choices": [{"delta": {"content": "lo"}, "message": {"content": "hello"}}]},
            {"choices": [{"delta": {}, "message": {"content": "hello"}, "finish_reason": "stop"}]},
            {"choices": [{"index": 0, "delta": None}]},
        ],
        {"text": "hello"},
    ),
    "reasoning under several names, or twice": (
        [chunk(reasoning="hm", reasoning_content="hm"), chunk(reasoning_content=" so"), HELLO, STOP],
        {"text": "hello", "thought": "hm so"},
    ),
    "a chunk with nothing but choices and a role of its own": (
        [{"choices": [{"delta": {"role": "bot", "content": "x"}}]}, STOP],
        {"text": "x"},
    ),
    "numbers for texts": ([HELLO | {"id": 1, "model": 2, "object": 3, "created": "now"}, STOP], {"text": "hello"}),
    "null where a list or an object belongs": (
        [chunk(content="x", tool_calls=None) | {"usage": None, "service_tier": None}, STOP],
        {"text": "x"},
    ),
    "a list of parts": (
        [chunk(content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}]), STOP],
        {"text": "x", "thought": "hm"},
    ),
    "counts in other words, places and types": (
        [
            HELLO | {"usage": {"input_tokens": "12", "output_tokens": 3.0}},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"completion_tokens": 5}}]},
            {"choices": [], "x_groq": {"usage": {"output_tokens_details": {"reasoning_tokens": 2}}}},
            {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": None}},
        ],
        {"text": "hello", "tokens": Counter(input_tokens=12, output_tokens=5, reasoning_tokens=2)},
    ),
    "a negative count": (
        [HELLO | {"usage": {"prompt_tokens": -1, "completion_tokens": -1}}, STOP],
        {"text": "hello", "tokens": Counter()},
    ),
    "name and arguments outside function": (
        [chunk(tool_calls=[{"name": "add", "input": {"a": 1}}]), CALLS],
        {"calls": [ADD]},
    ),
}


def _accepts(found: Json, expected: Json) -> bool:
    return expected.items() <= found.items()


@pytest.mark.parametrize("behaviour", SHOWN)
def test_behaviour_of_servers(behaviour: str) -> None:
    frames, expected = SHOWN[behaviour]
    assert _accepts(read(body(*frames)), expected)


def piece_of(arguments: str, name: str = "", **more: Any) -> Json:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return chunk(tool_calls=[{"function": function, **more}])


SUB = ("sub", '{"b": 2}')
# How fragments of calls come → the calls.
FRAGMENTS: dict[str, tuple[list[Json], list[tuple[str, str]]]] = {
    "equal ones with two ids and positions, one in the last frame": (
        [
            piece_of('{"a": 1}', "add", index=0, id="x"),
            chunk(
                "tool_calls",
                tool_calls=[{"function": {"name": "add", "arguments": '{"a": 1}'}, "index": 1, "id": "y"}],
            ),
        ],
        [ADD, ADD],
    ),
    "by index": ([piece_of('{"a":', "add", index=0, id="x"), piece_of(" 1}", index=0)], [ADD]),
    "two by turns": (
        [
            piece_of('{"a":', "add", index=0, id="x"),
            piece_of('{"b":', "sub", index=1, id="y"),
            piece_of(" 1}", index=0),
            piece_of(" 2}", index=1),
        ],
        [ADD, SUB],
    ),
    "no index, by id": (
        [
            piece_of('{"a":', "add", id="x"),
            piece_of('{"b":', "sub", id="y"),
            piece_of(" 1}", id="x"),
            piece_of(" 2}", id="y"),
        ],
        [ADD, SUB],
    ),
    "one index for all, no ids": (
        [piece_of(*ADD[::-1], index=0, id=""), piece_of(*SUB[::-1], index=0, id="")],
        [ADD, SUB],
    ),
    "one index and one tool for all": (
        [piece_of('{"a": 1}', "add", index=0, id=""), piece_of('{"a": 2}', "add", index=0, id="")],
        [ADD, ("add", '{"a": 2}')],
    ),
    "one id for all": ([piece_of(*ADD[::-1], index=0, id="0"), piece_of(*SUB[::-1], index=1, id="0")], [ADD, SUB]),
    "another id with each piece": (
        [piece_of('{"a":', "add", index=0, id="x"), piece_of(" 1}", index=0, id="y")],
        [ADD],
    ),
    "the id comes late": ([piece_of('{"a":', "add", index=0), piece_of(" 1}", index=0, id="x")], [ADD]),
    "two names at one index, no ids": (
        [piece_of("", "add", index=0), piece_of('{"b": 2}', "sub", index=0)],
        [("add", "{}"), SUB],
    ),
    "all so far with each piece": (
        [piece_of('{"a":', "add", index=0, id="x"), piece_of('{"a": 1}', "add", index=0, id="x")],
        [ADD],
    ),
    "sent again under another index": (
        [piece_of(*ADD[::-1], index=0, id="x"), piece_of(*ADD[::-1], index=1, id="x")],
        [ADD],
    ),
    "twice on purpose": (
        [piece_of(*ADD[::-1], index=0, id="x"), piece_of(*ADD[::-1], index=1, id="y")],
        [ADD, ADD],
    ),
    "arguments twice in one string": ([piece_of('{"a": 1}{"a": 1}', "add", index=0)], [ADD]),
    "arguments after an empty object": ([piece_of("{}", "add", index=0), piece_of('{"a": 1}', index=0)], [ADD]),
    "arguments encoded twice": ([piece_of(json.dumps('{"a": 1}'), "add", index=0)], [ADD]),
    "no arguments": ([piece_of("", "add", index=0)], [("add", "{}")]),
    "null for arguments": ([chunk(**called("add", None, index=0))], [("add", "{}")]),
    "a list for arguments": ([piece_of("[1]", "add", index=0)], [("add", "[1]")]),
    "a piece without a call": ([piece_of('{"a": 1}', index=0)], []),
}


@pytest.mark.parametrize("case", FRAGMENTS)
def test_fragments_of_calls(case: str) -> None:
    frames, expected = FRAGMENTS[case]
    assert read(body(*frames, CALLS))["calls"] == expected


# what the model writes inside its arguments → what the tool is given
ESCAPES = {
    r"a\ud800b": "a\ufffdb",
    r"a\uDC00\uD800b": "a\ufffd\ufffdb",
    r"a\ud83d\ud83d\ude00b": "a\ufffd\U0001f600b",
    r"a\ud83d\ude00b": "a\U0001f600b",
    r"a\\ud800b": r"a\ud800b",
    r"a\\\ud800b": "a\\\ufffdb",
    r"a\n\u00e9\ud800": "a\n\u00e9\ufffd",
}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("written", ESCAPES)
def test_escaped_halves_of_pairs(written: str, size: int) -> None:
    text = f'{{"description": "{written}"}}'
    first, *rest = [text[start : start + size] for start in range(0, len(text), size)]
    frames = [piece_of(first, "add", index=0, id="x"), *(piece_of(piece, index=0) for piece in rest)]
    [(_, arguments)] = read(body(*frames, CALLS))["calls"]
    assert json.loads(arguments)["description"] == ESCAPES[written]


ENDINGS: dict[str, tuple[bytes, Json]] = {
    "no [DONE]": (body(HELLO, STOP).replace(b"data: [DONE]\n\n", b""), {"text": "hello", "finish": "stop"}),
    "empty objects": (body({}, HELLO, {"choices": [{}]}, {"choices": [None]}, STOP), {"text": "hello"}),
    "no finish reason": (body(HELLO), {"text": "hello", "finish": "stop"}),
    "neither": (body(HELLO).replace(b"data: [DONE]\n\n", b""), {"error": "model_cut_off"}),
    "nothing at all": (b"", {"error": "model_cut_off"}),
    "only [DONE]": (b"data: [DONE]\n\n", {"error": "model_cut_off"}),
    "an unknown reason": (body(HELLO, chunk("eos")), {"finish": "stop"}),
    "capitals": (body(HELLO, chunk("MAX_TOKENS")), {"finish": "length"}),
    "a family before it": (body(HELLO, chunk("content_filter: RECITATION")), {"finish": "content_filter"}),
    "a family before a fault": (body(chunk("function_call_filter: UNEXPECTED_TOOL_CALL")), {"error": "model_failed"}),
    "a context that is full": (body(HELLO, chunk("model_context_window_exceeded")), {"finish": "length"}),
    "another word for a filter": (body(HELLO, chunk("sensitive")), {"finish": "content_filter"}),
    "a refusal of the model": (body(HELLO, chunk("refusal")), {"finish": "content_filter"}),
    "ended by the server": (body(HELLO, chunk("time_limit")), {"text": "hello", "finish": "ended"}),
    "ended by the server before a word": (body(chunk("abort")), {"error": "model_cut_off"}),
    "the limit before a word": (body(chunk(reasoning="hm"), chunk("length")), {"error": "model_output_limit"}),
    "an event named error": (b'event: error\ndata: {"message": "slow down, rate limit"}\n\n', {"error": "model_busy"}),
    "an error as text": (b"event: error\ndata: context length exceeded\n\n", {"error": "model_context_exceeded"}),
    "a list of errors": (b'[{"error": {"code": 401, "message": "no"}}]', {"error": "model_key_rejected"}),
    "a web page": (b"<!doctype html><title>no</title>", {"error": "model_not_found"}),
    "a sentence": (b"upstream connect error", {"error": "model_unreadable"}),
    "cut JSON": (b'data: {"choices": [{"index"\n\n', {"error": "model_unreadable"}),
    "a line of JSON for each": (b"".join(json.dumps(one).encode() + b"\n" for one in (HELLO, STOP)), {"text": "hello"}),
    "named events, ids and pings": (
        b'event: ping\ndata: {"type": "ping"}\nid: 1\nretry: 2\n\n' + body(HELLO, STOP),
        {"text": "hello"},
    ),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_endings_and_bodies(case: str) -> None:
    sent, expected = ENDINGS[case]
    assert _accepts(read(sent), expected)


# What is written as text → the answer, and the thought.
TAGGED: dict[str, tuple[str, str]] = {
    "<think>a b</think>\n\nhi": ("hi", "a b"),
    "<think>hm\n</think>answer": ("answer", "hm\n"),
    "  <THINKING>x</THINKING>y": ("y", "x"),
    "[THINK]x[/THINK]y": ("y", "x"),
    "<think>a</think><think>b</think>c": ("c", "ab"),
    "<think>never closed": ("", "never closed"),
    "hi <think>x</think> y": ("hi <think>x</think> y", ""),
    "no tags [1] <b>": ("no tags [1] <b>", ""),
    "write `</think>` then": ("write `</think>` then", ""),
    "a</think>": ("a</think>", ""),
    "</think>\nA": ("A", ""),
    "  <thin": ("  <thin", ""),
}


@pytest.mark.parametrize("written", TAGGED)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_thoughts_in_tags(written: str, size: int) -> None:
    frames = [chunk(content=written[start : start + size]) for start in range(0, len(written), size)]
    found = read(body(*frames, STOP))
    assert (found["text"], found["thought"]) == TAGGED[written]


# What is written without an opening tag → the answer and the reasoning, by whether the text begins with reasoning.
UNOPENED: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "hm\n</think>\n\nhi": (("hm\n\n\nhi", ""), ("hi", "hm\n")),
    "hm</think>\nhi": (("hm\nhi", ""), ("hi", "hm")),
    "<think>hm</think>hi": (("hi", "hm"), ("hi", "hm")),
}


@pytest.mark.parametrize("begins_thinking", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("written", UNOPENED)
def test_reasoning_without_an_opening_tag(written: str, size: int, begins_thinking: bool) -> None:
    answer = ResponseReader(begins_thinking=begins_thinking)
    frames = [chunk(content=written[start : start + size]) for start in range(0, len(written), size)]
    pieces = [piece for frame in (*frames, STOP) for piece in answer.read_frame(frame)] + [answer.end()]
    text, thought = ("".join(getattr(one, name) for one in pieces) for name in ("text", "thought"))
    assert (text, thought) == UNOPENED[written][begins_thinking]
    assert answer.markup.lacks_opening is not written.startswith("<think>")


def test_text_that_was_expected_to_begin_with_reasoning() -> None:
    answer = ResponseReader(begins_thinking=True)
    pieces = [*answer.read_frame(chunk(content="only an answer")), *answer.read_frame(STOP), answer.end()]
    assert "".join(piece.text for piece in pieces) == "only an answer"


@pytest.mark.parametrize("name", ["content", "reasoning", "refusal"])
def test_a_long_text_is_read_in_parts(name: str) -> None:
    text = "".join(map(chr, range(0x4E00, 0x9E00)))
    answer = ResponseReader()
    pieces = [*answer.read_frame(chunk(**{name: text})), *answer.read_frame(STOP), answer.end()]
    assert "".join(piece.thought if name == "reasoning" else piece.text for piece in pieces) == text
    assert max(len(piece.text + piece.thought) for piece in pieces) < 10_000
    assert answer.output_chars == len(text)


@pytest.mark.parametrize("provider", CONTRACTS)
def test_response_of_a_provider(provider: ProviderName) -> None:
    contract = CONTRACTS[provider]
    formatter = contract.formatter()
    frames = [
        *(chunk(reasoning="One"), chunk(reasoning=" thing."), chunk(content="I add "), chunk(content="it now.")),
        *(piece_of('{"a":', "add", index=0, id="x"), piece_of(" 1}", index=0), piece_of(*SUB[::-1], index=1, id="y")),
        chunk("tool_calls"),
    ]
    sent = [f"{formatter.prefix}data: {json.dumps(one)}\n\n" for frame in frames for one in formatter.format(frame)]
    found = read("".join([*sent, "data: [DONE]\n\n" * formatter.sends_done]).encode())
    assert (found["text"].strip(), found["calls"]) == ("I add it now.", [ADD, SUB])
    assert found["thought"].strip() == ("One thing." if contract.sends_reasoning else "")
    error = formatter.format_error(contract.render_error("overloaded", 503))
    assert read(body(HELLO, error)) == {"error": "model_busy"}


def adds(*titles: str) -> Json:
    return {"calls": [("add_task", json.dumps({"title": title})) for title in titles]}


# What OpenAI-compatible servers were seen to send, in public reports; each file is named for what it shows.
RECORDED: dict[str, Json] = {
    "args_bad_json.sse": {"calls": [("add_task", '{"title": "He said "hi" and left"}')]},
    "args_dict.sse": adds("args are a dict"),
    "both_reasonings.sse": {"text": "Hello", "thought": "Let me think."},
    "call_resent.sse": adds("sent twice"),
    "empty_data.sse": {"text": "whole answer"},
    "error_200_flat.json": {"error": "model_context_exceeded"},
    "error_200_json.json": {"error": "model_failed"},
    "error_200_sse.sse": {"error": "model_no_credit"},
    "finish_error.sse": {"error": "model_failed"},
    "functions_prefix.sse": adds("dotted"),
    "gemini_index0.sse": adds("gem one", "gem two"),
    "harmony_name.sse": adds("harmony"),
    "mistral_list.sse": {"text": "Hello there", "thought": "The user greets"},
    "no_index_pieces.sse": adds("noidx"),
    "null_chunk.sse": {"text": "whole answer"},
    "text_think.sse": {
        "text": '{"name": "add_task", "arguments": {"title": "text mode after think"}}',
        "thought": "The user wants a task.\n",
    },
    "think_tags.sse": {"text": "Hello there", "thought": "I should greet and reveal nothing.\n"},
    "usage_choices_null.sse": {"text": "whole answer"},
    "whole_json.json": {"text": "whole answer"},
    # https://github.com/openai/openai-python/pull/3819
    # https://github.com/vm0-ai/vm0/issues/24687
    "bom_at_start.sse": {"text": "whole answer"},
    # https://github.com/anomalyco/opencode/issues/39694
    # https://github.com/xberg-io/liter-llm/issues/152
    "characters_cut.sse": {"text": "修复方法 🌍 ñ"},
    # https://github.com/anomalyco/opencode/issues/50871
    # https://github.com/mnfst/llm-gateway/issues/2053
    "comment_as_data.sse": {"text": "whole answer"},
    # https://github.com/miruamel/xuan/issues/194
    # https://github.com/rexxars/eventsource-parser/issues/17
    "crlf_lines.sse": {"text": "whole answer"},
    # https://github.com/CherryHQ/cherry-studio/issues/11287
    # https://github.com/adrianlyjak/obsidian-aloud-tts/pull/114
    "error_200_base_resp.json": {"error": "model_no_credit"},
    # https://github.com/CangShui/workbuddy-gateway/pull/3
    # https://github.com/adolfousier/opencrabs/pull/1499
    "finish_empty.sse": adds("not yet over"),
    # https://github.com/QwenLM/qwen-code/pull/6240
    # https://github.com/can1357/oh-my-pi/pull/1692
    "function_call.sse": adds("legacy"),
    # https://github.com/anomalyco/opencode/issues/37841
    # https://github.com/voocel/ainovel-cli/issues/52
    "id_empty_later.sse": adds("dash"),
    # https://github.com/modelscope/evalscope/pull/1642
    # https://github.com/langgenius/dify/pull/39008
    "line_separators.sse": {"text": "one\u2028two\x85three"},
    # https://github.com/abundantbeing/hermes-browser-extension/issues/11
    # https://github.com/perplexityai/api-discussion/issues/209
    "message_at_end.sse": {"text": "whole answer"},
    # https://github.com/NousResearch/hermes-agent/pull/11984
    # https://github.com/1CatAI/1Cat-vLLM/issues/240
    "name_each_piece.sse": adds("named thrice"),
    # https://github.com/vercel/ai/pull/16507
    # https://github.com/jjang-ai/vmlx/pull/244
    "name_empty_first.sse": adds("late name"),
    # https://github.com/continuedev/continue/pull/5849
    "name_in_pieces.sse": adds("pieced"),
    # https://github.com/anomalyco/opencode/issues/38106
    # https://github.com/NousResearch/hermes-agent/pull/7989
    "named_event.sse": {"text": "whole answer"},
    # https://github.com/tetsuo-ai/agenc-core/pull/2492
    "plain_text_end.sse": {"error": "model_cut_off"},
    # https://github.com/envoyproxy/ai-gateway/pull/1222
    "reasoning_object.sse": {"text": "Hello", "thought": "I need to greet."},
    # https://github.com/rexxars/eventsource-parser/pull/31
    "single_newlines.sse": adds("one newline"),
    # https://github.com/NousResearch/hermes-agent/pull/742
    # https://github.com/NousResearch/hermes-agent/pull/14601
    "text_tag_unopened.sse": {"text": '{"name": "add_task", "arguments": {"title": "in a tag"}}\n'},
    # https://github.com/openai/openai-agents-python/issues/1179
    # https://github.com/livekit/agents/pull/6596
    "usage_counts_null.sse": {"text": "whole answer"},
    "think_unopened.sse": {"text": "Okay, a greeting.\n\n\nHello there"},
}


@pytest.mark.parametrize("name", sorted(path.name for path in RESPONSES.iterdir()))
def test_recorded_response_wherever_it_is_cut(name: str) -> None:
    sent = (RESPONSES / name).read_bytes()
    whole = read(sent)
    assert _accepts(whole, RECORDED[name])
    assert read(*(sent[place : place + 1] for place in range(len(sent)))) == whole
    for place in range(1, len(sent), 7):
        assert read(sent[:place], sent[place:]) == whole


def _null_usage(frame: Json) -> list[Any]:
    return [frame, {"choices": None, "usage": {"completion_tokens": 7}}]


def _as_parts(frame: Json) -> list[Any]:
    delta = frame["choices"][0]["delta"]
    if delta.get("content"):
        delta = {**delta, "content": [{"type": "text", "text": delta["content"]}]}
    return [{"choices": [{**frame["choices"][0], "delta": delta}]}]


def _without_index(frame: Json) -> list[Any]:
    delta = dict(frame["choices"][0]["delta"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [
            {key: value for key, value in one.items() if key != "index"} for one in delta["tool_calls"]
        ]
    return [{"choices": [{**frame["choices"][0], "delta": delta}]}]


def _with_noise(frame: Json) -> list[Any]:
    return [None, frame, [], {}, {"type": "ping"}, {"choices": []}]


CHANGES: list[Callable[[Json], list[Any]]] = [_null_usage, _as_parts, _without_index, _with_noise]


@given(st.lists(st.sampled_from(CHANGES), unique=True), st.integers(1, 40))
def test_behaviours_combined(changes: list[Callable[[Json], list[Any]]], size: int) -> None:
    frames: list[Any] = [
        chunk(reasoning="hm"),
        chunk(content="<think>so</think>he"),
        chunk(content="llo"),
        piece_of('{"a":', "functions.add", index=0, id="x"),
        piece_of(" 1}", index=0),
        piece_of(*SUB[::-1], index=1, id="y"),
        CALLS,
    ]
    for change in changes:
        frames = [
            made for one in frames for made in (change(one) if isinstance(one, dict) and one.get("choices") else [one])
        ]
    sent = body(*frames)
    found = read(*(sent[start : start + size] for start in range(0, len(sent), size)))
    assert found["calls"] == [ADD, SUB]
    assert (found["text"], found["thought"], found["finish"]) == ("hello", "hmso", "stop")


@given(st.binary(max_size=300))
def test_rubbish_ends_with_an_error_code_or_is_read(rubbish: bytes) -> None:
    found = read(rubbish, b"\n\n", body(HELLO, STOP))
    assert found.get("error", "").startswith("model_") or "hello" in found["text"]


async def _send(pieces: list[Piece]) -> AsyncGenerator[Piece]:
    for piece in pieces:
        yield piece


def ends(text: str, tokens: dict[str, int]) -> list[Piece]:
    return [Piece(text), Piece(finish="stop", usage=Counter(tokens))]


MOW, WELL = '{"name": "mow", "arguments": {}}', '{"action": "final", "answer": "Well."}'
USED = {"input_tokens": 10, "output_tokens": 2, "reasoning_tokens": 1}


@pytest.mark.parametrize(
    ("first", "second", "counted"),
    [
        (USED, {"input_tokens": 30, "output_tokens": 4, "reasoning_tokens": 2}, (40, 6, 3)),
        (USED, {}, (10, 2, 1)),
        ({}, USED, (10, 2, 1)),
        ({}, {}, (0, 0, 0)),
    ],
    ids=["both", "the first", "the second", "none"],
)
def test_tokens_of_a_response_and_of_the_one_after_it(
    first: dict[str, int], second: dict[str, int], counted: tuple[int, ...]
) -> None:
    """After a fault in a call that is written as text, and where a server has lost calls, one more is requested."""

    def check(whole: Piece, text: str) -> None:
        assert (whole.text, whole.finish, len(bodies)) == (text, "stop", 1)
        assert tuple(whole.usage[name] for name in USED) == counted

    bodies: list[Json] = []

    def respond(text: str) -> Callable[[Json], AsyncGenerator[Piece]]:
        def send(body: Json) -> AsyncGenerator[Piece]:
            bodies.append(body)
            return _send(ends(text, second))

        return send

    wrong = _send(ends(f"I look.\n{MOW}", first))
    check(
        asyncio.run(read_whole(read_actions(wrong, {"add"}, {"messages": []}, respond(WELL), goal=""))),
        "I look.\n\nWell.",
    )
    bodies.clear()
    lost = ask_again_if_empty(_send(ends("", first)), {"stream": True}, respond("Hello."), pytest.fail)
    check(asyncio.run(read_whole(lost)), "Hello.")
    assert bodies == [{}]
