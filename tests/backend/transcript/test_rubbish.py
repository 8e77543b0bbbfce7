"""Whatever stands in the rows, each line is one, and can be read back."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.conversation.acting import Acting
from backend.conversation.items import Ending, Hidden, Message, Said
from backend.conversation.rows import from_item
from backend.transcript.calls import Step
from backend.transcript.lines import KEYS, written
from backend.transcript.making import KINDS, Head, Row, Transcript
from backend.transcript.runs import Run

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
# What PostgreSQL can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20) | st.sampled_from(
    ["a\nb\r\nc", "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e", "\x7f\x9b31m\x1b[0m", '"}\n{"', "\ufeff\u202e", "[" * 500]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["add_task", "do_with_coder", "mcp_web__say", "mcp_", "", "x\u2028"])
CALL = st.fixed_dictionaries({"call_id": st.sampled_from("ab"), "name": NAMES, "arguments": TEXT})
CALLS = st.lists(CALL.map(lambda call: {"type": "function_call", **call}), max_size=2)
CONTENT = CALLS.map(lambda calls: {"kind": "tool_calls", "calls": calls, "reasoning": []}) | st.tuples(
    st.sampled_from("ab"), TEXT
).map(lambda made: {"kind": "tool_output", "output": {"call_id": made[0], "output": made[1]}})
ITEM = (
    TEXT.map(lambda text: Said(text=text, body={"content": [{"type": "input_text", "text": text}]} | OPTIONS))
    | TEXT.map(lambda text: Message(id="msg_1", parts=[text]))
    | TEXT.map(lambda text: Ending(sentence=text, next="go on"))
    | CONTENT.map(lambda content: Hidden(content=content))
)
OPTIONS: dict[str, Any] = {"inference_options": {}}
RUBBISH = st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(["content", "type", "id"]), JSON))
RUNS = st.sampled_from([None, "run_1", "run_2", "run_gone"])
STEP = st.tuples(
    st.sampled_from(["task", "step", "output", "end"]),
    st.builds(lambda calls, text: {"text": text, "calls": calls, "call_id": "a", "output": text}, CALLS, TEXT)
    | st.dictionaries(st.sampled_from(["text", "calls", "call_id", "output", "outcome"]), JSON),
)


def run(name: str, parent: str | None) -> Run:
    return Run(name, parent, "run_1", 3, "item_2", "failed", {"model": "m"}, NOW)


@given(st.lists(st.tuples(RUNS, ITEM | RUBBISH), max_size=8), st.lists(STEP, max_size=5), TEXT)
def test_every_line_is_read_back_as_it_was(stored: list[Any], steps: list[Any], name: str) -> None:
    transcript = Transcript(Head("thr_1", NOW, None, "run_2"), [run("run_1", None), run("run_2", "run_1")])
    did = [Step("run_1", "a", n, "coder", kind, made, None, True, NOW) for n, (kind, made) in enumerate(steps, 1)]
    lines = [transcript.begin()]
    for seq, (run_id, item) in enumerate(stored, 1):
        row = {"kind": item[0], "item": item[1]} if isinstance(item, tuple) else from_item("thr_1", item, Acting("me"))
        told = Row(seq, f"item_{seq}", run_id, row["kind"], row["item"], None, NOW)
        lines += transcript.of(told, {("run_1", "a"): did, ("run_1", "b"): did})
    lines += transcript.end([(name, NOW)])
    text = "".join(map(written, lines))
    assert [json.loads(line) for line in text.splitlines()] == lines
    assert not set(text) & {chr(code) for code in (*range(0xA), *range(0xB, 0x20), *range(0x7F, 0xA0))}
    assert all(tuple(line) == KEYS for line in lines)
    assert [lines[0]["event"], lines[-1]["event"]] == ["session_start", "session_clear"]
    known = {line["id"] for line in lines}
    assert all(line["parent_id"] in known for line in lines[1:])
