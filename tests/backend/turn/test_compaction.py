"""A conversation and a turn that are longer than the window: what people see of it, what is asked of the model."""

import asyncio
from typing import Any

import pytest

from backend.conversation.acting import Acting
from backend.conversation.errors import Busy, LimitReached, NotFound
from backend.conversation.model_input.budget import tokens_in
from backend.conversation.model_input.fitting import NOT_SHOWN
from backend.conversation.model_input.history import change_by_hand
from backend.turn.afterwards.summaries import NoSummary, Summaries
from backend.turn.log import Compacted
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.stored_tasks import ADD_TASK

LOCAL = "local"
LINE = """
    SELECT id, run_id, superseded_by, item->'task'->>'title' AS title FROM messages
    WHERE starts_with(id, 'cmp') ORDER BY seq
"""
SUMMARY = "SELECT run_id, superseded_by, item->'content' AS content FROM messages WHERE kind = 'summary' ORDER BY seq"


async def grow(chat: ChatKit, turns: int, *, thread: str | None = None) -> str:
    for number in range(turns):
        answer = await chat.say(f"hello for the {number}. time", thread)
        assert answer.error is None
        thread = answer.thread_id
    assert thread is not None
    return thread


async def settled(chat: ChatKit) -> None:
    await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]


def summaries_of(chat: ChatKit) -> Summaries:
    return chat.app.state.parts.summaries  # pyright: ignore[reportAttributeAccessIssue]


def asked(requests: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [one["body"]["messages"] for one in requests if "tools" in one["body"]]


async def test_a_line_is_stored_with_the_summary_and_told_by_the_next_turn(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(*[{"when": "Summarise", "text": "Much was said."}] * 3)
    async with backend(history_tokens=1_000) as chat:
        thread = await grow(chat, 1)
        while not rows(SUMMARY):
            ended = await chat.say("hello again", thread)
            assert "summarised" not in str(ended.events)
            await settled(chat)
        [line], [summary] = rows(LINE), rows(SUMMARY)
        count = summary["content"]["messages"]
        assert line["title"] == f"{count} earlier messages were summarised."
        [(last, usage)] = [(row["id"], row["usage"]) for row in rows("SELECT * FROM runs ORDER BY started_at")[-1:]]
        assert line["run_id"] == summary["run_id"] == last
        assert usage["requests"] == 2, "the answer's and the summary's"
        shown = await chat.items(thread)
        assert [item["id"] for item in shown if item["type"] == "task"] == [line["id"]] == [shown[-1]["id"]]
        assert count <= len(shown) - 5, "the newest four messages are not summarised"
        following = await chat.say("and now?", thread)
        assert [item["task"]["title"] for item in following.items if item["type"] == "task"] == [line["title"]]
        assert [item["type"] for item in following.items] == ["user_message", "task", "assistant_message"]
        assert "summarised" not in str((await chat.say("and then?", thread)).events)
    request = asked(await model.finished_requests())[-2]
    assert "Much was said." in request[1]["content"]
    read = [one for one in request[1:] if "Hidden context" not in one["content"]]
    assert len(read) == len(shown) - 1 - count + 1, "all that is not summarised, and the new message"


async def test_the_log_says_how_many_messages_were_summarised(backend: Backend, model: ScriptedModel) -> None:
    await model.script({"when": "Summarise", "text": "Much was said."})
    async with backend() as chat:
        thread = await grow(chat, 6)
        assert await summaries_of(chat).compact(thread, LOCAL) == 8
        heard: list[int] = []
        turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        start = turns.start

        async def heeding(*given: Any, **named: Any) -> Any:
            turn = await start(*given, **named)
            say = turn.say
            turn.say = lambda event: (
                heard.append(event.item.messages) if isinstance(event, Compacted) else None,
                say(event),
            )
            return turn

        turns.start = heeding
        for _ in range(3):
            await chat.say("hello", thread)
    assert heard == [8], "once"


async def test_no_request_of_a_turn_of_many_large_pages_is_over_the_window(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    """Ten steps that each read 64,000 bytes, with a window of 16,000 tokens."""
    for number in range(70):
        rows(ADD_TASK, LOCAL, f"task {number}", "long " * 200)
    page = {"tool_calls": [{"name": "list_tasks", "arguments": {"limit": 100}}]}
    await model.script(*[{"text": f"page {number}", **page} for number in range(9)], {"text": "That is all."})
    async with backend(history_tokens=16_000) as chat:
        first = await chat.say("what is there?")
        assert first.error is None
        assert first.text.endswith("page 8\nThat is all.")
        await chat.say("hello", first.thread_id)
    requests = asked(await model.finished_requests())
    assert len(requests) == 11
    outputs = [[one["content"] for one in request if one["role"] == "tool"] for request in requests]
    assert len(outputs[1][0]) > 20_000, "there is something to leave out"
    for request, read in zip(requests, outputs, strict=True):
        check_pairs(request)
        assert sum(tokens_in(str(message["content"])) for message in request[1:]) <= 16_000
        assert {one for one in read[:-1] if len(one) < 20_000} <= {NOT_SHOWN}
    assert [message["content"] for message in requests[-2] if message["role"] == "assistant"] == [
        f"page {number}" for number in range(9)
    ]
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'tool_output' AND length(item::text) > 60000")) == 9
    assert requests[-1][: len(requests[-2])] == requests[-2], "the next turn begins with this one's last request"


async def test_a_conversation_is_summarised_when_its_person_asks(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({"when": "Summarise", "text": "Much was said."})
    async with backend() as chat:
        thread = await grow(chat, 5)
        before = {row["id"]: row["usage"] for row in rows("SELECT id, usage FROM runs")}
        assert await summaries_of(chat).compact(thread, LOCAL) == 6
        assert await summaries_of(chat).compact(thread, LOCAL) == 0, "there is nothing more to summarise"
        [summary], [line] = rows(SUMMARY), rows(LINE)
        assert line["title"] == "6 earlier messages were summarised."
        after = {
            row["id"]: row["usage"] for row in rows("SELECT id, usage FROM runs WHERE conversation_id = %s", thread)
        }
        assert before.keys() == after.keys()
        [changed] = [run for run, usage in before.items() if usage != after[run]]
        assert changed == summary["run_id"] == line["run_id"]
        assert after[changed]["requests"] == before[changed]["requests"] + 1
        await chat.say("and now?", thread)
    request = asked(await model.finished_requests())[-1]
    said = [
        message["content"] for message in request if message["role"] == "user" and "Hidden" not in message["content"]
    ]
    assert said == ["hello for the 3. time", "hello for the 4. time", "and now?"]


async def test_what_cannot_be_summarised_is_refused_and_changes_nothing(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend() as chat:
        summaries = summaries_of(chat)
        thread = await grow(chat, 2)
        assert await summaries.compact(thread, LOCAL) == 0, "four messages are all there are"
        assert len(rows("SELECT 1 FROM runs")) == 2, "which counts for nothing"
        await grow(chat, 2, thread=thread)
        with pytest.raises(NotFound):
            await summaries.compact(thread, "bob")
        with pytest.raises(NotFound):
            await summaries.compact("thr_0", LOCAL)
        for step in ({"status": 500}, {"text": " "}, {"raw": ["<html>"], "headers": {"content-type": "text/html"}}):
            await model.script({"when": "Summarise", **step})
            with pytest.raises(NoSummary):
                await summaries.compact(thread, LOCAL)
        await model.script(SLOW)
        async with chat.open("threads.add_user_message", thread_id=thread, input=user_input("count")) as events:
            await read_text(events, at_least=4)
            with pytest.raises(Busy):
                await summaries.compact(thread, LOCAL)
    assert rows(SUMMARY) == rows(LINE) == []


async def test_one_that_is_waiting_for_consent_is_not_summarised(chat: ChatKit, rows: Rows) -> None:
    thread = await grow(chat, 4)
    rows("UPDATE runs SET status = 'waiting', outcome = NULL WHERE id = (SELECT max(id) FROM runs)")
    with pytest.raises(Busy):
        await summaries_of(chat).compact(thread, LOCAL)


async def test_two_at_once_are_one_summary(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(*[{"when": "Summarise", "text": "Much was said.", "delay": 0.2}] * 2)
    thread = await grow(chat, 4)
    both = await asyncio.gather(*(summaries_of(chat).compact(thread, LOCAL) for _ in range(2)), return_exceptions=True)
    assert {type(one) for one in both} <= {int, Busy}
    assert len(rows(SUMMARY)) == len(rows(LINE)) == 1


async def test_it_counts_against_the_limits(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(*[{"when": "Summarise", "text": "Much was said."}] * 2)
    async with backend(limit_turns_per_minute=6) as chat:
        thread = await grow(chat, 4)
        assert await summaries_of(chat).compact(thread, LOCAL) == 4
        assert "6 times are the most" not in str((await chat.say("hello", thread)).error)
        refused = await chat.say("hello", thread)
        assert "6 times are the most" in str(refused.error)
        with pytest.raises(LimitReached):
            await summaries_of(chat).compact(thread, LOCAL)
    assert rows("SELECT count(*) AS n FROM runs WHERE status <> 'ended'") == [{"n": 0}]


@pytest.mark.parametrize("number", [0, 2, 4])
async def test_a_retry_takes_the_summary_and_its_line_with_the_rows(
    chat: ChatKit, model: ScriptedModel, rows: Rows, number: int
) -> None:
    await model.script(*[{"when": "Summarise", "text": "Much was said."}] * 2)
    thread = await grow(chat, 5)
    await summaries_of(chat).compact(thread, LOCAL)
    messages = [item for item in await chat.items(thread) if item["type"] == "user_message"]
    answer = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=messages[number]["id"])
    assert answer.error is None
    assert [row["superseded_by"] is None for row in (*rows(SUMMARY), *rows(LINE))] == [False] * 2
    assert not [item for item in await chat.items(thread) if item["type"] == "task"]
    request = asked(await model.finished_requests())[-1]
    said = [message["content"] for message in request if message["content"].startswith("hello")]
    assert said == [f"hello for the {n}. time" for n in range(number + 1)], "as it is all read again"


@pytest.mark.parametrize("number", [0, 2, 3])
async def test_a_summary_of_a_path_that_was_left_meanwhile_is_not_kept(
    chat: ChatKit, model: ScriptedModel, rows: Rows, number: int
) -> None:
    """Whatever stands at the end of them: a change by hand stays on every branch."""
    await model.script({"when": "Summarise", "text": "Much was said.", "delay": 1})
    thread = await grow(chat, 3)
    store = chat.app.state.parts.chatkit.server.store  # pyright: ignore[reportAttributeAccessIssue]
    await store.write(thread, [change_by_hand("The person ticked task 1.")], Acting(LOCAL))
    await grow(chat, 2, thread=thread)
    messages = [item["id"] for item in await chat.items(thread) if item["type"] == "user_message"]
    making = asyncio.create_task(summaries_of(chat).compact(thread, LOCAL))
    await model.received_requests(6)
    await chat.stream("threads.retry_after_item", thread_id=thread, item_id=messages[number])
    assert await making == 0
    assert rows(SUMMARY) == rows(LINE) == []
