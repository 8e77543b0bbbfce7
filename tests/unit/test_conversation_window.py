"""Which of a conversation's records are in the window of the model, and which a summary covers."""

import random

import pytest

from backend.context.fitting import fit, tokens_in
from backend.context.window import (
    OMITTED,
    Window,
    choose_window,
    covered_by_next_summary,
    render_request,
    request_summary,
)
from backend.conversations.records import Entry, EntryKind, Record, Timeline, ToolCall

NOW = {"now": "2026-11-22T09:54:00+00:00", "time_zone": "Europe/Berlin"}


def entry(seq: int, kind: EntryKind, text: str, **details: object) -> Entry:
    return Entry("run", str(seq), kind, text, details or None, seq=seq)


def call(seq: int, output: str = "", *, arguments: str = "{}") -> ToolCall:
    return ToolCall("run", f"call_{seq}", seq, "list_tasks", arguments, "done", f"key {seq}", output, seq=seq)


def summary(covers: int, text: str, *, seq: int = 1_000_000) -> Entry:
    return entry(seq, "summary", text, covers=covers, messages=2)


def short_runs(count: int, *, words: str = "hello there") -> list[Record]:
    return [
        record
        for number in range(1, 2 * count, 2)
        for record in (entry(number, "user_message", f"{words} {number}"), entry(number + 1, "assistant_message", "hi"))
    ]


def run_of(number: int, *, said: int = 30, output: int = 0) -> list[Record]:
    """A message, a call and an answer, with so many characters."""
    return [
        entry(number, "user_message", "q" * said, **NOW),
        call(number + 1, "x" * output),
        entry(number + 2, "assistant_message", "a" * said),
    ]


def records_in(window: Window) -> list[Record]:
    return [one.record for one in window.rendered]


def messages_in(records: list[Record]) -> int:
    return sum(isinstance(one, Entry) and one.kind in ("user_message", "assistant_message") for one in records)


@pytest.mark.parametrize("tokens", [1, 40, 100, 200, 400, 10_000])
def test_window_begins_with_a_message_and_calls_keep_their_outputs(tokens: int) -> None:
    records = [record for number in range(1, 46, 3) for record in run_of(number, output=number)]
    window = choose_window(Timeline(records), tokens=tokens)
    assert records_in(window) == records[-len(records_in(window)) :]
    first = records_in(window)[0]
    assert isinstance(first, Entry)
    assert first.kind == "user_message"
    assert (window.stand_in is None) == (window.left_out is None) == (records_in(window) == records)
    items = window.render()
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in items if item.get("type") == "function_call_output"]


def test_more_records_than_are_read_are_halved() -> None:
    records = short_runs(400)[-600:]
    window = choose_window(Timeline(records, is_complete=False), tokens=1_000_000)
    assert records_in(window) == records[-300:]
    assert window.left_out == records[-301].seq
    assert window.stand_in == OMITTED


def test_single_run_over_the_window_is_kept() -> None:
    records = short_runs(1)
    window = choose_window(Timeline(records), tokens=1)
    assert (records_in(window), window.left_out, window.stand_in) == (records, None, None)


@pytest.mark.parametrize("read", [600, 19])
def test_newest_four_messages_are_kept(read: int) -> None:
    records = [record for number in range(1, 75, 3) for record in run_of(number, output=60_000)][-read:]
    is_complete = read == 600
    window = choose_window(Timeline(records, is_complete=is_complete), tokens=8_000)
    assert messages_in(records_in(window)) == 4
    assert window.left_out == (records_in(window)[0].seq or 0) - 1
    question = entry(100, "user_message", "and now?")
    window = choose_window(Timeline([*records, question], is_complete=is_complete), tokens=8_000)
    assert messages_in(records_in(window)) == 5, "whole turns"


def test_fewer_messages_are_kept_when_they_alone_are_too_long() -> None:
    records = [record for number in range(1, 31, 3) for record in run_of(number, said=9_000)]
    assert messages_in(records_in(choose_window(Timeline(records), tokens=8_000))) == 2
    assert messages_in(records_in(choose_window(Timeline(records), tokens=100))) == 2


def test_all_but_four_messages_can_be_summarised() -> None:
    records = [record for number in range(1, 31, 3) for record in run_of(number)]
    before = (records[-6].seq or 0) - 1
    assert covered_by_next_summary(Timeline(records), tokens=8_000) == before
    assert covered_by_next_summary(Timeline(records[-6:]), tokens=8_000) is None
    assert covered_by_next_summary(Timeline(records[-6:], is_complete=False), tokens=8_000) == before
    assert covered_by_next_summary(Timeline([]), tokens=8_000) is None
    assert covered_by_next_summary(Timeline([*records, summary(before, "Done.")]), tokens=8_000) is None


def test_what_a_summary_covers_is_not_read() -> None:
    records = short_runs(10)
    window = choose_window(Timeline([*records, summary(10, "Much was said.")]), tokens=8_000)
    assert records_in(window) == records[10:]
    assert window.stand_in is not None
    assert window.stand_in.endswith(": Much was said.")
    assert (window.left_out, window.head) == (None, 1)


def test_summary_ends_before_changes_by_hand() -> None:
    """What the user changed by hand stays, whatever becomes of the records before it."""
    tasks = [{"id": 1, "title": "milk"}]
    by_hand: list[Record] = [entry(seq, "change", "", change="completed", tasks=tasks) for seq in (4, 5)]
    request = request_summary(Timeline([*run_of(1), *by_hand]), tokens=8_000)
    assert request is not None
    assert (request.covers, request.messages) == (3, 2)
    request = request_summary(Timeline(by_hand), tokens=8_000)
    assert request is not None
    assert request.covers == 5


@pytest.mark.parametrize("seed", range(6))
def test_window_fits_its_request(seed: int) -> None:
    chance = random.Random(seed)
    records: list[Record] = []
    for number in range(1, 200, 10):
        records += run_of(number, said=chance.randint(1, 90), output=chance.randint(0, 90))
        title = "ü" * chance.randint(0, 50)
        tasks = [{"id": 1, "title": title}]
        count = chance.randint(0, 2)
        records += [entry(number + 5 + n, "change", "", change="reopened", tasks=tasks) for n in range(count)]
    timeline = Timeline([*records, summary(0, "Done: " + "s" * 300)])
    for tokens in range(1_000, 8_000, 97):
        window = choose_window(timeline, tokens=tokens)
        items = window.render()
        assert fit(items, tokens=tokens, head=window.head) == items == render_request(timeline, tokens=tokens)


def test_chinese_takes_a_token_for_each_character() -> None:
    records = short_runs(10, words="买牛奶" * 20)
    window = choose_window(Timeline(records), tokens=700)
    texts = "".join(one.text for one in records_in(window) if isinstance(one, Entry))
    assert 0 < tokens_in(texts) <= 350


def test_quoted_text_counts() -> None:
    records = short_runs(10)
    for record in records[::2]:
        assert isinstance(record, Entry)
        content = [{"type": "input_text", "text": record.text}]
        record.details = {"content": content, "quoted_text": "quote " * 100}
    assert choose_window(Timeline(records), tokens=1_000).left_out is not None


def test_summary_covers_its_request() -> None:
    records = short_runs(100)
    seen = 0
    lines: list[str] = []
    while seen < 200:
        request = request_summary(Timeline([*records[seen:], summary(seen, "earlier")]), tokens=100)
        assert request is not None
        assert "earlier" in request.text
        lines += [line for line in request.text.splitlines() if line.startswith("Person: ")]
        assert request.covers > seen
        seen = request.covers
    assert lines == [f"Person: hello there {number}" for number in range(1, 200, 2)]


def test_large_output_is_cut_and_summarised() -> None:
    request = request_summary(Timeline([call(1, "x" * 40_000), *short_runs(2)[2:]]), tokens=8_000)
    assert request is not None
    assert request.covers == 4
    assert "Person: hello there 3" in request.text
    assert len(request.text) < 4_000


@pytest.mark.parametrize("kinds", [[], ["command"], ["notice", "summary", "reasoning"]])
def test_no_summary_of_nothing(kinds: list[EntryKind]) -> None:
    records: list[Record] = [entry(seq, kind, "", covers=0) for seq, kind in enumerate(kinds, start=1)]
    assert request_summary(Timeline(records), tokens=8_000) is None
