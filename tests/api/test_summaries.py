"""Summaries of a conversation that its user asks for; what the model reads of them is in the golden requests."""

import asyncio
from typing import Any

import pytest

from tests.runs_client import agent_events, id_of, names, without_deltas
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, find_thread, list_texts, list_user_items, start_run
from tests.support.script import add_tasks, delete_tasks, says, summarises
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.connection import ApiError

CHAT = "groceries"


async def talk(user: User, model: ScriptedModel, count: int, *, first: int = 0) -> list[str]:
    """The ids of so many runs."""
    await model.script(*[says("Yes.")] * count)
    return [id_of(await user.runs.say(CHAT, f"hello {number}")) for number in range(first, first + count)]


async def test_summary(user: User, model: ScriptedModel, stored: Stored) -> None:
    await talk(user, model, 4)
    await model.script(summarises("Much was said."), says("Hello."))
    assert await user.runs.compact(CHAT) == {"status": "compacted", "messages": 4}
    assert await user.runs.compact(CHAT) == {"status": "nothing to compact", "messages": 0}
    assert len(stored.runs(user.name)) == 4, "it is no run"
    interaction = (await user.runs.get_chat(CHAT))["interactions"][-1]
    assert interaction["usage"]["requests"] == 2, "its use counts"
    thread = await find_thread(user, CHAT)
    assert [item["type"] for item in await user.chatkit.items(thread)].count("task") == 1, "the page shows it"
    events = await user.runs.say(CHAT, "and now?")
    assert names(events)[:3] == ["interaction_started", "compaction", "turn_start"]
    assert (await list_texts(user, thread))[0] == "hello 0", "nothing is lost"


async def test_summary_is_told_by_the_run_that_reads_it_first(user: User, model: ScriptedModel) -> None:
    runs = await talk(user, model, 4)
    await model.script(summarises("Much."))
    await user.runs.compact(CHAT)
    runs += await talk(user, model, 4, first=4)
    events = [await user.runs.read(CHAT, run) for run in runs]
    assert [number for number, each in enumerate(events) if "compaction" in names(each)] == [4]
    for run, each in zip(runs, events, strict=True):
        assert (await user.runs.get_interaction(CHAT, run))["agent_events"] == agent_events(each)
    assert without_deltas(await user.runs.read(CHAT, runs[4])) == without_deltas(events[4])


@pytest.mark.parametrize(
    "step", [{"status": 400}, says(" "), {"raw": ["<html>"], "headers": {"content-type": "text/html"}}]
)
async def test_failed_summary_changes_nothing(step: Any, user: User, model: ScriptedModel, stored: Stored) -> None:
    await talk(user, model, 4)
    thread = await find_thread(user, CHAT)
    before = await user.chatkit.items(thread)
    await model.script({"when": "Summarise", **step})
    with pytest.raises(ApiError) as refused:
        await user.runs.compact(CHAT)
    assert refused.value.status in (502, 503)
    assert not stored.has_summary(user.name, thread)
    assert await user.chatkit.items(thread) == before


async def test_nothing_to_summarise(user: User, model: ScriptedModel) -> None:
    await talk(user, model, 2)
    assert await user.runs.compact(CHAT) == {"status": "nothing to compact", "messages": 0}
    assert len(await model.requests()) == 2


@pytest.mark.parametrize("state", ["running", "waiting"])
async def test_busy_conversation(state: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    await talk(user, model, 3)
    await model.script(add_tasks(11))
    await model.script(HANGS if state == "running" else delete_tasks(*range(1, 12)))
    run = await start_run(user, CHAT, "go on", until="answer_delta" if state == "running" else "approval_required")
    await until(lambda: stored.run_statuses(user.name)[-1] == state)
    with pytest.raises(ApiError) as refused:
        await user.runs.compact(CHAT)
    assert refused.value.status == 409
    await user.runs.cancel(CHAT, run)


async def test_two_at_once_make_one_summary(user: User, model: ScriptedModel) -> None:
    await talk(user, model, 4)
    await model.script(*[{**summarises("Much was said."), "delay": 0.1}] * 2)
    both = await asyncio.gather(*(user.runs.compact(CHAT) for _ in range(2)), return_exceptions=True)
    assert [one for one in both if not isinstance(one, ApiError)], both
    thread = await find_thread(user, CHAT)
    assert [item["type"] for item in await user.chatkit.items(thread)].count("task") == 1


@pytest.mark.parametrize("stack_name", ["limits"])
async def test_summary_counts_against_the_limits(user: User, model: ScriptedModel) -> None:
    await talk(user, model, 4)
    await model.script(summarises("Much was said."))
    assert (await user.runs.compact(CHAT))["status"] == "compacted"
    with pytest.raises(ApiError) as refused:
        await user.runs.say(CHAT, "hello")
    assert refused.value.status == 429


@pytest.mark.parametrize("number", [0, 1, 3])
async def test_retry_drops_the_summary_of_what_it_replaces(number: int, user: User, model: ScriptedModel) -> None:
    await talk(user, model, 4)
    await model.script(summarises("Much was said."), says("Again."))
    await user.runs.compact(CHAT)
    thread = await find_thread(user, CHAT)
    item = (await list_user_items(user, thread))[number]
    await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=item["id"])
    assert not [one for one in await user.chatkit.items(thread) if one["type"] == "task"]
    sent = str((await model.finished_requests())[-1]["body"]["messages"])
    assert "Much was said." not in sent
    assert [text for text in (f"hello {n}" for n in range(4)) if text in sent] == [
        f"hello {n}" for n in range(number + 1)
    ]


async def test_summary_of_a_path_that_was_left_is_dropped(user: User, model: ScriptedModel) -> None:
    await talk(user, model, 4)
    await model.script({**summarises("Much was said."), "hold_after": 0}, says("Again."))
    making = asyncio.create_task(user.runs.compact(CHAT))
    await model.received_requests(5)
    thread = await find_thread(user, CHAT)
    item = (await list_user_items(user, thread))[1]
    await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=item["id"])
    await model.release()
    assert (await making)["messages"] == 0
    assert not [one for one in await user.chatkit.items(thread) if one["type"] == "task"]
