import itertools
from functools import partial
from typing import Any

import pytest

from backend.conversation.hidden import block
from backend.conversation.model_input import budget, history
from backend.conversation.reading import LeftOut
from backend.conversation.rows import StoredItem
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel

CALL = {"type": "function_call", "call_id": "c", "name": "add_task", "arguments": '{"title": "milk"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "done"}
REASONING = {"type": "reasoning", "id": "rs", "summary": []}
STEP = {"kind": "tool_calls", "reasoning": [], "calls": [CALL]}
ODD_STEPS = [
    None,
    "text",
    [],
    {},
    {"calls": [CALL]},
    STEP | {"calls": [{"name": "add_task"}]},
    STEP | {"calls": ["add_task"]},
    STEP | {"reasoning": ["because"]},
]
ODD_OUTPUTS = [None, "text", {}, {"output": "done"}, {"output": {"call_id": "c"}}, {"output": OUTPUT | {"output": 3}}]

abandoned_attempt = partial(history.abandoned_attempt, reading={"list_tasks"})
elsewhere = partial(history.elsewhere, reading={"list_tasks"})
_seq = itertools.count(1)


def hidden(kind: str, content: Any) -> StoredItem:
    seq = next(_seq)
    item = {
        "type": "hidden_context_item",
        "id": f"x{seq}",
        "thread_id": "t",
        "created_at": "2026-01-01T00:00:00Z",
        "content": content,
    }
    return StoredItem(seq, f"x{seq}", kind, item)


def output(text: str) -> StoredItem:
    return hidden("tool_output", {"kind": "tool_output", "output": OUTPUT | {"output": text}})


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("approval", {"kind": "approval"}),
        ("approval", {"kind": "approval", "text": "for somebody else"}),
        ("hidden_context_item", "text"),
        ("hidden_context_item", ["text"]),
        ("note", {"kind": "note"}),
        ("note", "text"),
        ("summary", {"kind": "summary"}),
    ],
)
async def test_a_hidden_row_this_version_does_not_know_is_skipped(kind: str, content: Any) -> None:
    assert await history.to_model_input([hidden(kind, content)]) == []


async def test_a_note_reaches_the_model() -> None:
    [item] = await history.to_model_input([hidden("note", {"kind": "note", "text": "remember"})])
    assert item == {"role": "user", "content": block("remember")}


@pytest.mark.parametrize("content", ODD_STEPS)
async def test_odd_calls_are_skipped_with_their_outputs(content: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert await history.to_model_input([hidden("tool_calls", content), output("done")]) == []
    assert "tool_calls" in caplog.text


@pytest.mark.parametrize("content", ODD_OUTPUTS)
async def test_a_call_with_an_odd_output_has_an_unknown_outcome(content: Any, caplog: pytest.LogCaptureFixture) -> None:
    step, answer = await history.to_model_input([hidden("tool_calls", STEP), hidden("tool_output", content)])
    assert step == CALL
    assert answer == OUTPUT | {"output": history.UNKNOWN_OUTCOME}
    assert "tool_output" in caplog.text


async def test_reasoning_stays_with_its_calls() -> None:
    rows = [hidden("tool_calls", STEP | {"reasoning": [REASONING]}), output("done")]
    assert await history.to_model_input(rows) == [REASONING, CALL, OUTPUT]


async def test_a_call_id_that_comes_again_keeps_the_output_of_its_own_step() -> None:
    rows = [hidden("tool_calls", STEP), output("first"), hidden("tool_calls", STEP), output("second")]
    items: list[Any] = await history.to_model_input(rows)
    assert [item["output"] for item in items if "output" in item] == ["first", "second"]


@pytest.mark.parametrize("kind", ["tool_calls", "tool_output", "note", "approval"])
@pytest.mark.parametrize("content", [None, "text", {}, {"output": "done"}, {"calls": [3], "reasoning": []}])
def test_odd_rows_stop_neither_a_retry_nor_a_summary(kind: str, content: Any) -> None:
    odd = hidden(kind, content)
    assert abandoned_attempt([odd]) is None
    assert budget.request_for_summary(LeftOut([odd], None), tokens=100) is None


@pytest.mark.parametrize("content", ['{"kind": "approval"}', '"text"'])
async def test_the_turns_after_a_row_of_a_later_version_go_on(
    chat: ChatKit, model: ScriptedModel, rows: Rows, content: str
) -> None:
    thread = (await chat.say("add milk")).thread_id
    rows(
        "INSERT INTO messages (conversation_id, id, user_id, role, kind, item) "
        "SELECT id, 'x1', user_id, 'app', 'approval', jsonb_build_object('type', 'hidden_context_item', 'id', 'x1', "
        "'thread_id', id, 'created_at', now(), 'content', %s::jsonb) FROM conversations",
        content,
    )
    answer = await chat.say("what is on my list?", thread)
    assert answer.error is None
    assert answer.listed == ["[ ] milk"]
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


def calls_of(note: Any) -> list[str]:
    return [line for line in note.content["text"].splitlines() if line.startswith("- ")]


def as_row(note: Any) -> StoredItem:
    return hidden("note", note.content)


def test_a_note_made_by_a_retry_hands_on_its_calls() -> None:
    first = abandoned_attempt([hidden("tool_calls", STEP), output("id 1")])
    second = abandoned_attempt([as_row(first)])
    assert calls_of(second) == calls_of(first) == ['- add_task({"title": "milk"}) → id 1']


def test_a_call_of_two_attempts_is_named_once_with_the_outcome_that_is_known() -> None:
    unknown = abandoned_attempt([hidden("tool_calls", STEP)])
    known = abandoned_attempt([as_row(unknown), hidden("tool_calls", STEP), output("id 1")])
    again = abandoned_attempt([as_row(known), hidden("tool_calls", STEP)])
    assert calls_of(known) == calls_of(again) == ['- add_task({"title": "milk"}) → id 1']


def test_a_call_that_only_read_is_not_named() -> None:
    read = CALL | {"name": "list_tasks", "arguments": "{}"}
    assert abandoned_attempt([hidden("tool_calls", STEP | {"calls": [read]}), output("a page")]) is None
    both = abandoned_attempt([hidden("tool_calls", STEP | {"calls": [CALL, read]}), output("id 1")])
    assert calls_of(both) == ['- add_task({"title": "milk"}) → id 1']


def test_the_same_call_made_twice_in_one_attempt_is_named_twice() -> None:
    rows = [hidden("tool_calls", STEP), output("id 1"), hidden("tool_calls", STEP), output("id 2")]
    first = abandoned_attempt(rows)
    assert len(calls_of(first)) == 2
    assert calls_of(abandoned_attempt([as_row(first), *rows])) == calls_of(first)


def test_the_note_of_many_retries_stays_short() -> None:
    dropped: list[StoredItem] = []
    for number in range(300):
        call = CALL | {"arguments": f'{{"title": "{number}", "description": "{"x" * 4000}"}}'}
        note = abandoned_attempt([*dropped, hidden("tool_calls", STEP | {"calls": [call]})])
        dropped = [as_row(note)]
    text = dropped[0].item["content"]["text"]
    assert '"299"' in text
    assert len(text) < 30_000


def test_a_note_of_the_person_is_no_attempt() -> None:
    assert abandoned_attempt([as_row(history.note("They completed task 1 by hand."))]) is None


def test_what_was_done_elsewhere_is_told_but_for_what_is_known_here() -> None:
    bread = CALL | {"arguments": '{"title": "bread"}'}
    there = [
        hidden("tool_calls", STEP),
        output("id 1"),
        hidden("tool_calls", STEP | {"calls": [bread]}),
        output("id 2"),
    ]
    told = elsewhere(there, [])
    assert calls_of(told) == ['- add_task({"title": "milk"}) → id 1', '- add_task({"title": "bread"}) → id 2']
    known = elsewhere(there, there[:2])
    assert calls_of(known) == ['- add_task({"title": "bread"}) → id 2']
    assert elsewhere(there, [as_row(told)]) is None
    assert elsewhere([as_row(told)], there[2:]) is not None
    assert elsewhere([hidden("note", None)], [hidden("tool_calls", {})]) is None
