"""Interactions: what streams, what is stored of it, and that it goes on without a reader."""

import asyncio
import itertools
import json
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from backend.model.chat_model import ChatModel
from client.runs import Event
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs, id_of, names, plain, text_of
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

THINKING = {"reasoning": "Milk, then.", "tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}


async def test_an_interaction_streams_its_events_by_name(runs: Runs, model: ScriptedModel) -> None:
    await model.script(THINKING, {"text": "It is on the list."})
    events = await runs.say("groceries", "add milk")
    assert [name for name in names(events) if not name.endswith("_delta")] == [
        "interaction_started",
        "turn_start",
        "thinking",
        "turn_end",
        "tool_call",
        "tool_result",
        "turn_start",
        "turn_end",
        "answer",
        "interaction_complete",
    ]
    said = {event.name: event.data for event in events}
    run = id_of(events)
    assert said["interaction_started"] == {"interaction_id": run, "chat_id": "groceries"}
    assert said["thinking"] == {"content": "Milk, then."}
    assert said["tool_call"]["tool_name"] == "add_task"
    assert json.loads(said["tool_call"]["tool_input"]) == {"title": "milk"}
    assert said["tool_result"]["id"] == said["tool_call"]["id"]
    assert json.loads(said["tool_result"]["tool_output"])["title"] == "milk"
    assert said["answer"] == {"content": text_of(events)} == {"content": "It is on the list."}
    assert said["interaction_complete"] == {"interaction_id": run, "status": "COMPLETED"}
    numbers = [event.number for event in events]
    assert numbers == sorted(set(filter(None, numbers)))


async def test_the_answer_is_an_event_stream_that_nobody_keeps(chat: ChatKit) -> None:
    response = await chat.http.post("/chats/one/interactions", json={"user_message": "hello"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.text.startswith("id: 1\nevent: interaction_started\ndata: {")


async def test_what_is_stored_reads_as_what_was_streamed(runs: Runs, model: ScriptedModel) -> None:
    await model.script(THINKING, {"text": "It is on the list."})
    events = await runs.say("groceries", "add milk")
    stored = await runs.get_interaction("groceries", id_of(events))
    assert stored["agent_events"] == plain(events)
    without = {"agent_events": [], "final_agent_state": None}
    assert await runs.get_interaction("groceries", id_of(events), brief=True) == {**stored, **without}
    assert stored["status"] == "COMPLETED"
    assert stored["reason"] is None
    assert stored["user_message"] == "add milk"
    assert stored["created_at"] < stored["completed_at"]
    assert stored["usage"]["requests"] == 2
    assert stored["siblings"] == [id_of(events)]
    chat = await runs.get_chat("groceries")
    assert chat["interactions"] == [stored]
    assert (chat["has_more"], chat["after"], chat["leaf"]) == (False, None, id_of(events))


async def test_the_state_after_an_interaction_is_what_the_next_request_begins_with(
    runs: Runs, model: ScriptedModel
) -> None:
    for sentence in ("add milk and bread", "show all", "the milk is done"):
        await runs.say("groceries", sentence)
    requests = [request["body"]["messages"][1:] for request in await model.finished_requests()]
    firsts = [messages for messages in requests if messages[-1]["role"] == "user"]
    states = [one["final_agent_state"]["messages"] for one in (await runs.get_chat("groceries"))["interactions"]]
    assert len(states) == len(firsts) == 3
    assert [messages[:-2] for messages in firsts[1:]] == states[:2]  # before the note of the time, and what was said
    await runs.say("groceries", "what is left?")
    requests = [request["body"]["messages"][1:] for request in await model.finished_requests()]
    assert next(one for one in requests if one[-1]["content"] == "what is left?")[:-2] == states[2]


async def test_a_reader_that_leaves_stops_nothing_and_goes_on_from_any_number(runs: Runs, model: ScriptedModel) -> None:
    await model.script(SLOW)
    seen: list[Event] = []
    async with runs.interact("counting", "count") as events:
        async for event in events:
            seen.append(event)
            if len(text_of(seen)) > 8:
                break
    run = id_of(seen)
    assert (await runs.get_interaction("counting", run))["status"] == "RUNNING"
    rest = await runs.read("counting", run, after=seen[-1].number or 0)
    assert text_of(seen + rest) == SLOW["text"]
    whole = await runs.read("counting", run)
    for cut in range(len(whole)):
        if number := whole[cut].number:
            assert await runs.read("counting", run, after=number) == whole[cut + 1 :]


async def test_a_reader_in_another_process_reads_the_same(
    backend: Backend, runs: Runs, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with backend() as other, Runs(other.base_url) as elsewhere, runs.interact("counting", "count") as events:
        first = await anext(events)
        there = asyncio.create_task(elsewhere.read("counting", id_of([first])))
        here = [first, *[event async for event in events]]
        assert await there == here
        assert text_of(here) == SLOW["text"]


async def test_a_log_that_is_not_held_any_more_is_reset_to_what_is_stored(runs: Runs, rows: Rows) -> None:
    events = await runs.say("groceries", "add milk")
    run = id_of(events)
    rows("DELETE FROM run_events")
    rows("UPDATE runs SET ended_at = ended_at - interval '1 hour', followed = false")
    for after in (0, 3, 2**63 - 1):
        again = await runs.read("groceries", run, after=after)
        assert names(again)[0] == "reset"
        assert plain(again)[1:] == plain(events)[1:]


async def test_a_failure_is_an_event_and_a_status(runs: Runs, model: ScriptedModel) -> None:
    await model.script({"status": 401})
    events = await runs.say("one", "hello")
    error, complete = events[-2:]
    assert error.name == "error"
    assert error.data["allow_retry"] in (True, False)
    assert complete.data == {"interaction_id": id_of(events), "status": "FAILED"}
    stored = await runs.get_interaction("one", id_of(events))
    assert stored["status"] == "FAILED"
    assert stored["reason"] == error.data["error"]
    assert stored["agent_events"] == plain(events)


async def test_what_a_dead_process_left_has_failed_with_a_reason(runs: Runs, model: ScriptedModel, rows: Rows) -> None:
    run = id_of(await runs.say("one", "hello"))
    rows("UPDATE runs SET outcome = 'interrupted'")
    stored = await runs.get_interaction("one", run)
    assert stored["status"] == "FAILED"
    assert stored["reason"] == "The server had to end this answer. What was done so far is kept."
    assert stored["agent_events"][-1]["data"]["reason"] == stored["reason"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["the same process", "another process"])
async def test_a_run_is_cancelled_from_any_process(
    backend: Backend, runs: Runs, model: ScriptedModel, elsewhere: bool
) -> None:
    await model.script(SLOW)
    async with backend() as other, Runs(other.base_url) as there:
        seen: list[Event] = []
        async with runs.interact("counting", "count") as events:
            async for event in events:
                seen.append(event)
                if event.name == "answer_delta" and len(seen) < 100 and not any("message" in e.data for e in seen):
                    break
            run = id_of(seen)
            asked = await (there if elsewhere else runs).cancel("counting", run)
            assert {name: asked[name] for name in ("status", "interaction_id")} == {
                "status": "cancelling",
                "interaction_id": run,
            }
            assert asked["message"]
            seen += [event async for event in events]
        assert names(seen)[-2:] == ["cancelled", "interaction_complete"]
        assert seen[-1].data["status"] == "CANCELLED"
        assert (await there.get_interaction("counting", run))["status"] == "CANCELLED"
        again = await there.http.post(f"/chats/counting/interactions/{run}/cancel")
        assert again.status_code == 409
        assert "ended already" in again.json()["error"]


async def test_who_follows_too_much_is_refused_before_anything_begins(
    chat: ChatKit, runs: Runs, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "token_delay": 3})
    async with AsyncExitStack() as readers:
        held = [await readers.enter_async_context(runs.interact("counting", "count"))]
        run = id_of([await anext(held[0])])
        for _ in range(19):
            held.append(await readers.enter_async_context(runs.events("counting", run)))
            await anext(held[-1])
        asked = [
            await chat.http.get(f"/chats/counting/interactions/{run}/events"),
            await chat.http.post("/chats/other/interactions", json={"user_message": "hello"}),
            await chat.http.post(f"/chats/counting/interactions/{run}/edit", json={"new_user_message": "hello"}),
        ]
        for response in asked:
            assert response.status_code == 429
            assert "stop reading" in response.json()["error"]
        assert len(rows("SELECT 1 FROM runs")) == len(rows("SELECT 1 FROM conversations")) == 1
        thread = (await runs.get_chats())["chats"][0]["chat_id"]
        follow: Any = {"type": "follow", "payload": {}}
        async with chat.open("threads.custom_action", thread_id=thread, action=follow) as events:
            assert "stop reading" in str([event async for event in events])

    async def other_is_read() -> bool:
        async with chat.http.stream("GET", f"/chats/counting/interactions/{run}/events") as response:
            return response.status_code == 200

    async with asyncio.timeout(5):
        while not await other_is_read():
            await asyncio.sleep(0.1)
    await runs.cancel("counting", run)


async def test_pages_hold_every_interaction_once(runs: Runs) -> None:
    said = [f"hello {number}" for number in range(5)]
    for text in said:
        await runs.say("one", text)
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = await runs.get_chat("one", limit=2, after=after)
        found += page["interactions"]
        if (after := page["after"]) is None:
            break
        assert page["has_more"]
        assert len(page["interactions"]) == 2
    assert [one["user_message"] for one in found] == said
    assert (await runs.get_chat("one", limit=5))["interactions"] == found


async def test_a_page_ends_where_it_is_full_and_cuts_nothing(backend: Backend, model: ScriptedModel) -> None:
    text = "long " * 60_000
    async with backend(history_tokens=1_000_000) as chat, Runs(chat.base_url) as runs:
        for _ in range(4):
            await model.script({"text": text, "chunk_chars": 100_000})
            await runs.say("one", "say it")
        pages: list[dict[str, Any]] = [await runs.get_chat("one")]
        while pages[-1]["after"]:
            pages.append(await runs.get_chat("one", after=pages[-1]["after"]))
    found = [one for page in pages for one in page["interactions"]]
    assert len(pages) > 1
    assert [one["final_agent_state"]["messages"].count({"role": "assistant", "content": text}) for one in found] == [
        1,
        2,
        3,
        4,
    ]
    assert all(len(json.dumps(page)) < 1_048_576 or len(page["interactions"]) == 1 for page in pages)


async def test_a_page_is_full_by_its_bytes(backend: Backend, model: ScriptedModel) -> None:
    async with backend(history_tokens=1_000_000) as chat, Runs(chat.base_url) as runs:
        for _ in range(2):
            await model.script({"text": "é" * 140_000, "chunk_chars": 100_000})
            await runs.say("one", "say it")
        response = await chat.http.get("/chats/one")
    page = response.json()
    assert len(response.content) < 1_048_576
    assert (len(page["interactions"]), page["has_more"]) == (1, True)


async def test_others_are_served_while_a_page_is_made(
    runs: Runs, chat: ChatKit, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await runs.say("one", f"hello {number}")
    messages, slept = ChatModel.messages, list[float]()

    def slow(self: ChatModel, items: list[Any]) -> list[dict[str, Any]]:
        time.sleep(0.05)
        return messages(self, items)

    async def sleep_a_moment() -> None:
        while True:
            slept.append(time.monotonic())
            await asyncio.sleep(0)

    monkeypatch.setattr(ChatModel, "messages", slow)
    other = asyncio.create_task(sleep_a_moment())
    await runs.get_chat("one")
    other.cancel()
    held = max(later - earlier for earlier, later in itertools.pairwise(slept))
    assert 0.05 < held < 0.15, "one interaction at a time"


async def test_chats_are_listed_in_pages_the_newest_first(runs: Runs, chat: ChatKit) -> None:
    for name in ("one", "two"):
        await runs.say(name, f"hello {name}")
    thread = (await chat.say("hello from ChatKit")).thread_id
    first = await runs.get_chats(limit=2)
    assert [one["name"] for one in first["chats"]] == [None, "two"]
    assert first["chats"][0]["chat_id"] == thread
    assert first["has_more"]
    rest = await runs.get_chats(limit=2, after=first["after"])
    assert [one["name"] for one in rest["chats"]] == ["one"]
    assert (rest["has_more"], rest["after"]) == (False, None)
    assert await runs.get_chats(after="two") == {**rest, "after": None}


async def test_a_chatkit_conversation_is_read_and_followed(chat: ChatKit, runs: Runs, rows: Rows) -> None:
    thread = (await chat.say("add milk")).thread_id
    assert rows("SELECT * FROM run_events") == []
    stored = (await runs.get_chat(thread))["interactions"][0]
    assert [event["event"] for event in stored["agent_events"]] == [
        "interaction_started",
        "tool_call",
        "tool_result",
        "answer",
        "interaction_complete",
    ]
    events = await runs.say(thread, "what is on my list?")
    assert text_of(events) == "1 open task."
    await until(lambda: len(rows("SELECT 1 FROM runs WHERE outcome = 'completed'")) == 2)
