import asyncio
import random
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from backend.conversation.acting import Acting
from backend.conversation.model_input import budget
from backend.conversation.model_input.fitting import fit
from backend.conversation.reading import LeftOut, Recent
from backend.conversation.rows import StoredItem
from backend.conversation.store_adapter import PostgresStore
from service.database import create_engine
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.items import ALICE, make, new_thread
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

WINDOW = 1_500  # tokens, about five turns


@pytest.fixture
async def chat(backend: Backend) -> AsyncIterator[ChatKit]:
    async with backend(history_tokens=WINDOW) as client:
        yield client


async def grow(chat: ChatKit, turns: int) -> str:
    thread = (await chat.say("add task 0")).thread_id
    for number in range(1, turns):
        assert (await chat.say(f"add task {number}", thread)).error is None
    return thread


def messages_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    return request["body"]["messages"]


async def test_a_long_conversation_is_cut_at_whole_turns_and_summarised(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await grow(chat, 12)
    requests = await model.finished_requests()
    turns = [request for request in requests if "tools" in request["body"]]
    for request in turns:
        messages = messages_of(request)
        check_pairs(messages)
        assert messages[0]["role"] == "system"
        assert messages[-1]["role"] in ("user", "tool")
        assert sum(len(str(message)) // 4 for message in messages[1:]) < WINDOW
    await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    summaries = [request for request in requests if "tools" not in request["body"]]
    assert summaries
    assert "Person: add task 0" in messages_of(summaries[0])[-1]["content"]
    await chat.say("hello", thread)
    head = messages_of([request for request in await model.finished_requests() if "tools" in request["body"]][-1])[1]
    assert head["role"] == "user"
    assert "Summary of the conversation so far" in head["content"]
    said = [item["type"] for item in await chat.items(thread) if item["type"] not in ("widget", "task")]
    assert said == ["user_message", "assistant_message"] * 13


async def test_after_a_summary_the_requests_begin_alike_again(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await grow(chat, 12)
    await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    await chat.say("hello", thread)
    await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
    await model.reset()
    for number in range(4):
        await chat.say(f"hello for the {number}. time", thread)
    requests = [messages_of(one) for one in await model.finished_requests() if "tools" in one["body"]]
    alike = [after[: len(before)] == before for before, after in pairwise(requests)]
    assert alike.count(False) <= 1, "once it is over the window again"


async def test_without_a_summary_a_plain_note_stands_in(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(*[{"when": "Summarise", "status": 500}] * 50)
    thread = await grow(chat, 12)
    await chat.say("hello", thread)
    head = messages_of([request for request in await model.finished_requests() if "tools" in request["body"]][-1])[1]
    assert "left out because it is long" in head["content"]
    assert rows("SELECT 1 FROM messages WHERE kind = 'summary'") == []
    outcomes = {row["outcome"] for row in rows("SELECT outcome FROM runs")}
    assert outcomes == {"completed"}, "a failing summary is nobody's turn"


async def test_turns_that_follow_each_other_quickly_make_one_summary(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(*[{"when": "Summarise", "hang": True}] * 50)
    await grow(chat, 12)
    asked = [request for request in await model.requests() if "tools" not in request["body"]]
    assert len(asked) == 1, "the first one is still being made"


async def test_the_newest_turn_is_kept_however_long_it_is(chat: ChatKit, model: ScriptedModel) -> None:
    thread = (await chat.say("hello")).thread_id
    await chat.say("add 'x' " + "very " * 1000, thread)
    sent = messages_of((await model.finished_requests())[1])
    assert sent[-1]["content"].endswith("very ")


async def test_a_retry_drops_the_summary_of_what_it_replaces(chat: ChatKit, rows: Rows) -> None:
    thread = await grow(chat, 12)
    await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    first = (await chat.items(thread))[0]
    answer = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=first["id"])
    assert answer.error is None
    assert rows("SELECT 1 FROM messages WHERE kind = 'summary' AND superseded_by IS NULL") == []


def row_of(seq: int, kind: str, content: Any) -> StoredItem:
    return StoredItem(seq, str(seq), kind, {"content": content})


@pytest.mark.parametrize("tokens", [1, 40, 100, 200, 400, 10_000])
def test_whatever_the_budget_calls_keep_their_outputs(tokens: int) -> None:
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


def timed_turns(count: int) -> list[StoredItem]:
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
def test_a_message_keeps_the_note_of_its_time(tokens: int) -> None:
    rows = timed_turns(20)
    for read in (rows, rows[1:], rows[2:]):  # where the first rows of many were not read
        window = budget.window(Recent(read, complete=read == rows, summary=None), tokens=tokens)
        assert window.rows[0].seq % 3 == 1
        assert window.left_out is None or window.left_out % 3 == 0
    request = budget.request_for_summary(LeftOut(rows, None), tokens=tokens)
    assert request is not None
    assert request.covers % 3 != 1
    assert request.text.count("Now: Sun 2026-11-22 10:54, Europe/Berlin\nPerson: ") == request.text.count("Person: ")


def test_a_note_of_the_time_at_the_end_is_summarised_with_what_follows_it() -> None:
    request = budget.request_for_summary(LeftOut(timed_turns(2)[:4], None), tokens=8_000)
    assert request is not None
    assert request.covers == 3
    assert budget.request_for_summary(LeftOut(timed_turns(1)[:1], None), tokens=8_000) is None


def short_turns(count: int, *, words: str = "hello there") -> list[StoredItem]:
    return [
        row
        for number in range(1, 2 * count, 2)
        for row in (
            row_of(number, "user_message", [{"text": f"{words} {number}"}]),
            row_of(number + 1, "assistant_message", [{"text": "hi"}]),
        )
    ]


def test_more_rows_than_are_read_are_cut_to_half_of_them() -> None:
    rows = short_turns(400)[-600:]
    window = budget.window(Recent(rows, complete=False, summary=None), tokens=1_000_000)
    assert window.rows == rows[-300:]
    assert window.left_out == rows[-301].seq
    assert window.stand_in == budget.OMITTED


def test_one_turn_over_the_budget_is_kept_and_leaves_nothing_out() -> None:
    rows = short_turns(1)
    window = budget.window(Recent(rows, complete=True, summary=None), tokens=1)
    assert (window.rows, window.left_out, window.stand_in) == (rows, None, None)


def turn_of(number: int, *, said: int = 30, output: int = 0) -> list[StoredItem]:
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
def test_the_newest_four_messages_are_never_left_out(read: int) -> None:
    rows = [row for number in range(0, 100, 4) for row in turn_of(number, output=60_000)][-read:]
    complete = read == 600
    window = budget.window(Recent(rows, complete=complete, summary=None), tokens=8_000)
    assert messages_in(window.rows) == 4
    assert window.rows[0].kind == "user_message"
    assert window.left_out == window.rows[0].seq - 1
    question = row_of(100, "user_message", [{"text": "and now?"}])
    window = budget.window(Recent([*rows, question], complete=complete, summary=None), tokens=8_000)
    assert messages_in(window.rows) == 5, "whole turns"


def test_fewer_stay_where_their_texts_alone_are_over_the_window_and_the_newest_always() -> None:
    rows = [row for number in range(0, 40, 4) for row in turn_of(number, said=9_000)]
    assert messages_in(budget.window(Recent(rows, complete=True, summary=None), tokens=8_000).rows) == 2
    assert messages_in(budget.window(Recent(rows, complete=True, summary=None), tokens=100).rows) == 2


def test_all_but_the_newest_four_messages_can_be_summarised_at_once() -> None:
    rows = [row for number in range(0, 40, 4) for row in turn_of(number)]
    assert budget.before_the_newest(Recent(rows, complete=True, summary=None), tokens=8_000) == rows[-8].seq - 1
    assert budget.before_the_newest(Recent(rows[-8:], complete=True, summary=None), tokens=8_000) is None
    assert budget.before_the_newest(Recent(rows[-8:], complete=False, summary=None), tokens=8_000) == rows[-8].seq - 1
    assert budget.before_the_newest(Recent([], complete=True, summary=None), tokens=8_000) is None


def test_a_summary_ends_where_it_can_be_told_whether_its_rows_are_there() -> None:
    """What a person changed by hand stays, whatever becomes of the rows before it."""
    by_hand = [row_of(seq, "change", {"kind": "change", "text": "Ticked 1."}) for seq in (4, 5)]
    request = budget.request_for_summary(LeftOut([*turn_of(0), *by_hand], None), tokens=8_000)
    assert request is not None
    assert (request.covers, request.messages) == (3, 2)
    request = budget.request_for_summary(LeftOut(by_hand, None), tokens=8_000)
    assert request is not None
    assert request.covers == 5


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_within_the_window_is_left_as_it_is_in_its_request(seed: int) -> None:
    """The rows are taken to be at least as long as what is made of them."""
    chance = random.Random(seed)
    rows: list[StoredItem] = []
    for number in range(0, 200, 10):
        now = {"now": "2026-11-22T09:54:00+00:00", "time_zone": "Europe/Berlin"}
        rows += [
            row_of(number, "note", now),
            *turn_of(number + 1, said=chance.randint(1, 90), output=chance.randint(0, 90)),
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


def test_a_conversation_in_chinese_takes_a_token_for_each_character() -> None:
    rows = short_turns(10, words="买牛奶" * 20)
    window = budget.window(Recent(rows, complete=True, summary=None), tokens=700)
    assert 0 < sum(len(row.item["content"][0]["text"]) for row in window.rows) <= 350


def test_quoted_text_counts() -> None:
    rows = short_turns(10)
    for row in rows[::2]:
        row.item["quoted_text"] = "quote " * 100
    assert budget.window(Recent(rows, complete=True, summary=None), tokens=1_000).left_out is not None


def test_a_summary_covers_what_was_in_its_request_and_no_more() -> None:
    rows = short_turns(100)
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


def test_a_row_larger_than_the_budget_is_cut_and_summarised() -> None:
    large = row_of(1, "tool_output", {"output": {"call_id": "c", "output": "x" * 40_000}})
    request = budget.request_for_summary(LeftOut([large, *short_turns(2)[2:]], None), tokens=8_000)
    assert request is not None
    assert request.covers == 4
    assert "Person: hello there 3" in request.text
    assert len(request.text) < 4_000


@pytest.mark.parametrize("left_out", [[], ["widget"], ["end_of_turn", "summary", "hologram"]])
def test_no_summary_is_made_of_nothing(left_out: list[str]) -> None:
    rows = [row_of(seq, kind, {}) for seq, kind in enumerate(left_out)]
    assert budget.request_for_summary(LeftOut(rows, "earlier"), tokens=8_000) is None


Stored = tuple[PostgresStore, str]


@pytest.fixture
async def stored(database_url: str) -> AsyncIterator[Stored]:
    """A store, and a thread without items in it."""
    engine = create_engine(database_url)
    yield PostgresStore(engine), await new_thread(engine, "alice")
    await engine.dispose()


async def write_turns(store: PostgresStore, thread: str, count: int) -> list[int]:
    """The `seq` of each row."""
    items = [make(kind, thread) for _ in range(count) for kind in ("user_message", "assistant_message")]
    await store.write(thread, items, ALICE)
    return [row.seq or 0 for row in (await store.history(thread, ALICE, newest=2 * count)).rows]


async def test_the_rows_no_summary_covers_are_read_oldest_first(stored: Stored) -> None:
    store, thread = stored
    seqs = await write_turns(store, thread, 10)
    left_out = await store.left_out(thread, up_to=seqs[9], oldest=6, context=ALICE)
    assert ([row.seq for row in left_out.rows], left_out.summary) == (seqs[:6], None)
    await store.add_summary(thread, "six", covers=seqs[5], context=ALICE)
    left_out = await store.left_out(thread, up_to=seqs[9], oldest=6, context=ALICE)
    assert ([row.seq for row in left_out.rows], left_out.summary) == (seqs[6:10], "six")
    assert (await store.left_out(thread, up_to=seqs[9], context=Acting("bob"))).rows == []


async def test_a_summary_that_covers_no_more_than_another_is_not_kept(stored: Stored, rows: Rows) -> None:
    store, thread = stored
    seqs = await write_turns(store, thread, 2)
    for text, covers in (("first", seqs[1]), ("equal", seqs[1]), ("less", seqs[0]), ("more", seqs[2])):
        await store.add_summary(thread, text, covers=covers, context=ALICE)
    kept = rows("SELECT item->'content'->>'text' AS text FROM messages WHERE kind = 'summary' ORDER BY seq")
    assert kept == [{"text": "first"}, {"text": "more"}]
    assert (await store.history(thread, ALICE)).summary == "more"


async def test_two_equal_summaries_at_once_are_one(stored: Stored, rows: Rows) -> None:
    store, thread = stored
    covers = (await write_turns(store, thread, 1))[-1]
    await asyncio.gather(*(store.add_summary(thread, str(n), covers=covers, context=ALICE) for n in range(5)))
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'summary'")) == 1


async def test_of_two_summaries_that_cover_the_same_the_later_one_stands(stored: Stored, rows: Rows) -> None:
    store, thread = stored
    covers = (await write_turns(store, thread, 1))[-1]
    await store.add_summary(thread, "earlier", covers=covers, context=ALICE)
    rows(
        "INSERT INTO messages (conversation_id, id, user_id, role, kind, item) "
        "SELECT conversation_id, 'sum_0', user_id, role, kind, "
        "jsonb_set(item, '{content,text}', '\"later\"') FROM messages WHERE kind = 'summary'"
    )
    assert (await store.history(thread, ALICE)).summary == "later"


COPY = """
INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
SELECT conversation_id, id || '_' || n, user_id, role, kind,
       replace(replace(item::text, 'task 0', 'task ' || n), ': "call_', ': "call_' || n || '_')::jsonb
       || jsonb_build_object('id', id || '_' || n)
FROM messages, generate_series(%s::int, %s::int) n
WHERE run_id = (SELECT id FROM runs ORDER BY started_at LIMIT 1)
ORDER BY n, seq
"""


async def test_a_conversation_of_many_short_rows_is_summarised_bit_by_bit(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    """Of 600 turns with five rows for the model each, of which at most 600 are read at once."""
    await model.script(*[{"when": "Summarise", "text": "Tasks were added."}] * 20)
    async with backend() as chat:
        thread = (await chat.say("add task 0")).thread_id
        for first, last in ((1, 449), (450, 599)):
            rows(COPY, first, last)
            await chat.say("hello", thread)
            await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
        await chat.say("hello", thread)
    requests = await model.finished_requests()
    summarised = [messages_of(one)[-1]["content"] for one in requests if "tools" not in one["body"]]
    turns = [messages_of(one) for one in requests if "tools" in one["body"]]
    made = [call["function"]["arguments"] for message in turns[-1] for call in message.get("tool_calls") or ()]
    for number in range(600):
        arguments = f'{{"title": "task {number}"}}'
        assert sum(f"Call: add_task({arguments})" in text for text in summarised) + made.count(arguments) == 1
    assert len(summarised) == 6, "four of the first 450 turns, two of the next 150"
    assert [budget.OMITTED in str(turn) for turn in turns] == [False, False, True, True, False]


async def test_an_old_conversation_without_a_summary_has_one_after_one_turn(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    """Of 1,250 turns with five rows for the model each."""
    await model.script(*[{"when": "Summarise", "text": "Tasks were added."}] * 20)
    async with backend() as chat:
        thread = (await chat.say("add task 0")).thread_id
        rows(COPY, 1, 1_249)
        for _ in range(2):
            await chat.say("hello", thread)
            await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
    requests = await model.finished_requests()
    turns = [messages_of(one) for one in requests if "tools" in one["body"]]
    assert [budget.OMITTED in str(turn) for turn in turns[-2:]] == [True, False]
    assert len(requests) - len(turns) == 10, "at most 600 rows in each"
