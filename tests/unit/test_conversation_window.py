"""Which of a conversation's rows are in the window of the model, and which a summary covers."""

import random
from typing import Any

import pytest

from backend.context.fitting import fit
from backend.conversation.model_input import budget
from backend.conversation.reading import LeftOut, Recent
from backend.conversation.rows import StoredItem


def row_of(seq: int, kind: str, content: Any) -> StoredItem:
    return StoredItem(seq, str(seq), kind, {"content": content})


@pytest.mark.parametrize("tokens", [1, 40, 100, 200, 400, 10_000])
def test_calls_keep_their_outputs(tokens: int) -> None:
    rows: list[StoredItem] = []
    for number in range(0, 60, 4):
        call = {"type": "function_call", "call_id": str(number), "name": "add_task", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": str(number), "output": "x" * number}
        rows += [
            row_of(number, "user_message", [{"text": f"message {number}"}]),
            row_of(number + 1, "tool_calls", {"calls": [call], "reasoning": []}),
            row_of(number + 2, "tool_output", {"output": output}),
            row_of(number + 3, "assistant_message", [{"text": "done"}]),
        ]
    window = budget.window(Recent(rows, complete=True, summary=None), tokens=tokens)
    assert window.rows == rows[-len(window.rows) :]
    assert window.rows[0].kind == "user_message"
    assert (window.stand_in is None) == (window.left_out is None) == (window.rows == rows)


def timed_runs(count: int) -> list[StoredItem]:
    now = {"now": "2026-11-22T09:54:00+00:00", "time_zone": "Europe/Berlin"}
    return [
        row
        for number in range(1, 3 * count, 3)
        for row in (
            row_of(number, "note", now),
            row_of(number + 1, "user_message", [{"text": f"message {number}"}]),
            row_of(number + 2, "assistant_message", [{"text": "hi"}]),
        )
    ]


@pytest.mark.parametrize("tokens", range(1, 1_000, 37))
def test_message_keeps_its_note_of_time(tokens: int) -> None:
    rows = timed_runs(20)
    for read in (rows, rows[1:], rows[2:]):  # where the first rows of many were not read
        window = budget.window(Recent(read, complete=read == rows, summary=None), tokens=tokens)
        assert window.rows[0].seq % 3 == 1
        assert window.left_out is None or window.left_out % 3 == 0
    request = budget.request_for_summary(LeftOut(rows, None), tokens=tokens)
    assert request is not None
    assert request.covers % 3 != 1
    assert request.text.count("Now: Sun 2026-11-22 10:54, Europe/Berlin\nPerson: ") == request.text.count("Person: ")


def test_last_note_of_time_is_summarised_with_its_message() -> None:
    request = budget.request_for_summary(LeftOut(timed_runs(2)[:4], None), tokens=8_000)
    assert request is not None
    assert request.covers == 3
    assert budget.request_for_summary(LeftOut(timed_runs(1)[:1], None), tokens=8_000) is None


def short_runs(count: int, *, words: str = "hello there") -> list[StoredItem]:
    return [
        row
        for number in range(1, 2 * count, 2)
        for row in (
            row_of(number, "user_message", [{"text": f"{words} {number}"}]),
            row_of(number + 1, "assistant_message", [{"text": "hi"}]),
        )
    ]


def test_more_rows_than_are_read_are_halved() -> None:
    rows = short_runs(400)[-600:]
    window = budget.window(Recent(rows, complete=False, summary=None), tokens=1_000_000)
    assert window.rows == rows[-300:]
    assert window.left_out == rows[-301].seq
    assert window.stand_in == budget.OMITTED


def test_single_run_over_the_window_is_kept() -> None:
    rows = short_runs(1)
    window = budget.window(Recent(rows, complete=True, summary=None), tokens=1)
    assert (window.rows, window.left_out, window.stand_in) == (rows, None, None)


def run_of(number: int, *, said: int = 30, output: int = 0) -> list[StoredItem]:
    """A message, a call and an answer, with so many characters."""
    call = {"type": "function_call", "call_id": str(number), "name": "list_tasks", "arguments": "{}"}
    read = {"type": "function_call_output", "call_id": str(number), "output": "x" * output}
    return [
        row_of(number, "user_message", [{"type": "input_text", "text": "q" * said}]),
        row_of(number + 1, "tool_calls", {"calls": [call], "reasoning": []}),
        row_of(number + 2, "tool_output", {"output": read}),
        row_of(number + 3, "assistant_message", [{"type": "output_text", "text": "a" * said, "annotations": []}]),
    ]


def messages_in(rows: list[StoredItem]) -> int:
    return sum(row.kind in ("user_message", "assistant_message") for row in rows)


@pytest.mark.parametrize("read", [600, 23])
def test_newest_four_messages_are_kept(read: int) -> None:
    rows = [row for number in range(0, 100, 4) for row in run_of(number, output=60_000)][-read:]
    complete = read == 600
    window = budget.window(Recent(rows, complete=complete, summary=None), tokens=8_000)
    assert messages_in(window.rows) == 4
    assert window.rows[0].kind == "user_message"
    assert window.left_out == window.rows[0].seq - 1
    question = row_of(100, "user_message", [{"text": "and now?"}])
    window = budget.window(Recent([*rows, question], complete=complete, summary=None), tokens=8_000)
    assert messages_in(window.rows) == 5, "whole turns"


def test_fewer_messages_are_kept_when_they_alone_are_too_long() -> None:
    rows = [row for number in range(0, 40, 4) for row in run_of(number, said=9_000)]
    assert messages_in(budget.window(Recent(rows, complete=True, summary=None), tokens=8_000).rows) == 2
    assert messages_in(budget.window(Recent(rows, complete=True, summary=None), tokens=100).rows) == 2


def test_all_but_four_messages_can_be_summarised() -> None:
    rows = [row for number in range(0, 40, 4) for row in run_of(number)]
    assert budget.before_the_newest(Recent(rows, complete=True, summary=None), tokens=8_000) == rows[-8].seq - 1
    assert budget.before_the_newest(Recent(rows[-8:], complete=True, summary=None), tokens=8_000) is None
    assert budget.before_the_newest(Recent(rows[-8:], complete=False, summary=None), tokens=8_000) == rows[-8].seq - 1
    assert budget.before_the_newest(Recent([], complete=True, summary=None), tokens=8_000) is None


def test_summary_ends_before_changes_by_hand() -> None:
    """What a person changed by hand stays, whatever becomes of the rows before it."""
    by_hand = [row_of(seq, "change", {"kind": "change", "text": "Ticked 1."}) for seq in (4, 5)]
    request = budget.request_for_summary(LeftOut([*run_of(0), *by_hand], None), tokens=8_000)
    assert request is not None
    assert (request.covers, request.messages) == (3, 2)
    request = budget.request_for_summary(LeftOut(by_hand, None), tokens=8_000)
    assert request is not None
    assert request.covers == 5


@pytest.mark.parametrize("seed", range(20))
async def test_window_fits_its_request(seed: int) -> None:
    """The rows are taken to be at least as long as what is made of them."""
    chance = random.Random(seed)
    rows: list[StoredItem] = []
    for number in range(0, 200, 10):
        now = {"now": "2026-11-22T09:54:00+00:00", "time_zone": "Europe/Berlin"}
        rows += [
            row_of(number, "note", now),
            *run_of(number + 1, said=chance.randint(1, 90), output=chance.randint(0, 90)),
        ]
        text = "ü" * chance.randint(0, 50)
        rows += [row_of(number + 5 + n, "change", {"text": text}) for n in range(chance.randint(0, 5))]
    for row in rows:
        row.item.update(id=row.id, thread_id="thr", created_at="2026-11-22T09:54:00+00:00", type=row.kind)
        if row.kind == "user_message":
            row.item.update(attachments=[], inference_options={})
    for tokens in range(1_000, 8_000, 97):
        window = budget.window(Recent(rows, complete=True, summary="Done: " + "s" * 300), tokens=tokens)
        items = await window.to_model_input()
        assert fit(items, tokens=tokens, head=1) == items


def test_chinese_takes_a_token_for_each_character() -> None:
    rows = short_runs(10, words="买牛奶" * 20)
    window = budget.window(Recent(rows, complete=True, summary=None), tokens=700)
    assert 0 < sum(len(row.item["content"][0]["text"]) for row in window.rows) <= 350


def test_quoted_text_counts() -> None:
    rows = short_runs(10)
    for row in rows[::2]:
        row.item["quoted_text"] = "quote " * 100
    assert budget.window(Recent(rows, complete=True, summary=None), tokens=1_000).left_out is not None


def test_summary_covers_its_request() -> None:
    rows = short_runs(100)
    seen = 0
    lines: list[str] = []
    while seen < 200:
        request = budget.request_for_summary(LeftOut(rows[seen:], "earlier"), tokens=100)
        assert request is not None
        assert "earlier" in request.text
        lines += [line for line in request.text.splitlines() if line.startswith("Person: ")]
        assert request.covers > seen
        seen = request.covers
    assert lines == [f"Person: hello there {number}" for number in range(1, 200, 2)]


def test_large_row_is_cut_and_summarised() -> None:
    large = row_of(1, "tool_output", {"output": {"call_id": "c", "output": "x" * 40_000}})
    request = budget.request_for_summary(LeftOut([large, *short_runs(2)[2:]], None), tokens=8_000)
    assert request is not None
    assert request.covers == 4
    assert "Person: hello there 3" in request.text
    assert len(request.text) < 4_000


@pytest.mark.parametrize("left_out", [[], ["widget"], ["end_of_turn", "summary", "hologram"]])
def test_no_summary_of_nothing(left_out: list[str]) -> None:
    rows = [row_of(seq, kind, {}) for seq, kind in enumerate(left_out)]
    assert budget.request_for_summary(LeftOut(rows, "earlier"), tokens=8_000) is None
