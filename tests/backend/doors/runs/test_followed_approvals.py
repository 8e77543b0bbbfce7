"""What is asked and decided, as those who follow the run are told of it, in any process and whenever they come."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from client.runs import Event
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls, deleting, open_tasks, with_tasks
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs, id_of, names, plain
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.long

ASKING: dict[str, Any] = {"approvals": ("delete_task",)}
WAITS = "SELECT 1 FROM runs WHERE status = 'waiting'"
GONE = "UPDATE runs SET ended_at = ended_at - interval '1 hour', followed = false"


@pytest.fixture
async def two(backend: Backend) -> AsyncIterator[tuple[ChatKit, Runs, Runs]]:
    """Two processes over one database: ChatKit of the first, and the run API of both."""
    async with (
        backend(**ASKING) as one,
        backend(**ASKING) as other,
        Runs(one.base_url) as here,
        Runs(other.base_url) as there,
    ):
        yield one, here, there


async def until_told(events: AsyncIterator[Event], *names: str, count: int = 1) -> list[Event]:
    """The events up to the `count`th of these names."""
    told: list[Event] = []
    async with asyncio.timeout(10):
        while count:
            told.append(await anext(events))
            count -= told[-1].name in names
    return told


def asked_in(events: list[Event]) -> list[str]:
    return [event.data["approval_id"] for event in events if event.name == "approval_required"]


async def test_each_decision_is_told_at_once_and_in_order(
    two: tuple[ChatKit, Runs, Runs], model: ScriptedModel, rows: Rows
) -> None:
    chat, here, there = two
    thread = await with_tasks(chat, model, 3)
    await model.script(calls(deleting(1), deleting(2), deleting(3)), {"text": "Done."})
    async with here.interact(thread, "delete them") as own:
        seen = await until_told(own, "approval_required", count=3)
        run, [first, second, third] = id_of(seen), asked_in(seen)
        async with there.events(thread, run) as others:
            told = await until_told(others, "approval_required", count=3)
            await here.approve(thread, run, third, approved=True)
            for events, by_now in ((own, seen), (others, told)):
                by_now += await until_told(events, "approved")
            await there.approve(thread, run, first, approved=False, reason="no")
            for events, by_now in ((own, seen), (others, told)):
                by_now += await until_told(events, "rejected")
            assert open_tasks(rows) == 3
            waiting = await there.get_interaction(thread, run)
            assert waiting["agent_events"] == plain(seen)
            await there.approve(thread, run, second, approved=True)
            seen += [event async for event in own]
            told += [event async for event in others]
    assert told == seen
    decided = [(event.name, event.data["approval_id"]) for event in seen if event.name in ("approved", "rejected")]
    assert decided == [("approved", third), ("rejected", first), ("approved", second)]
    kinds = [event["event"] for event in plain(seen)]
    done = ["tool_call", "tool_result"] * 2
    asked = ["interaction_started", *["approval_required"] * 3]
    assert kinds == [*asked, "approved", "rejected", "approved", *done, "answer", "interaction_complete"]
    assert (await here.get_interaction(thread, run))["agent_events"] == plain(seen)
    rows("DELETE FROM run_events")
    rows(GONE)
    again = await there.read(thread, run, after=7)
    assert names(again)[0] == "reset"
    assert plain(again)[1:] == plain(seen)[1:]


async def test_two_who_decide_at_once_are_both_told_of_once(
    two: tuple[ChatKit, Runs, Runs], model: ScriptedModel, rows: Rows
) -> None:
    chat, here, there = two
    thread = await with_tasks(chat, model, 20)
    for n in range(4):
        wanted = [deleting(5 * n + task) for task in range(1, 6)]
        await model.script(calls(*wanted), {"text": "Done."})
        async with here.interact(thread, "delete them") as own:
            seen = await until_told(own, "approval_required", count=5)
            run, asked = id_of(seen), asked_in(seen)
            decided = ((here, there)[k % 2].approve(thread, run, one, approved=True) for k, one in enumerate(asked))
            await asyncio.gather(*decided)
            seen += [event async for event in own]
        assert sorted(event.data["approval_id"] for event in seen if event.name == "approved") == sorted(asked)
        assert await there.read(thread, run) == seen
        assert (await here.get_interaction(thread, run))["agent_events"] == plain(seen)
    assert open_tasks(rows) == 0


async def test_who_begins_to_follow_a_run_that_waits_is_told_what_was_so_far(
    two: tuple[ChatKit, Runs, Runs], model: ScriptedModel, rows: Rows
) -> None:
    chat, here, there = two
    thread = await with_tasks(chat, model, 2)
    await model.script(calls(call("list_tasks"), deleting(1), text="I look."), {"text": "Done."})
    await chat.say("delete the first", thread)
    [waiting] = rows("SELECT id FROM runs WHERE status = 'waiting'")
    run = waiting["id"]
    readers = [asyncio.create_task(runs.read(thread, run)) for runs in (here, there)]
    async with there.events(thread, run) as events, asyncio.timeout(5):
        seen = await until_told(events, "approval_required")
    stored = await here.get_interaction(thread, run)
    assert plain(seen) == stored["agent_events"]
    assert stored["status"] == "WAITING_APPROVAL"
    assert asked_in(seen) == [one["approval_id"] for one in stored["approvals"]]
    assert {"tool_call", "tool_result", "answer"} < {*names(seen)}
    await here.approve(thread, run, asked_in(seen)[0], approved=True)
    first, second = await asyncio.gather(*readers)
    assert first == second == await there.read(thread, run)
    assert first[: len(seen)] == seen
    assert names(first)[-1] == "interaction_complete"
    assert (await here.get_interaction(thread, run))["agent_events"] == plain(first)


async def test_the_stream_of_a_run_that_waits_stays_open_with_pings(
    two: tuple[ChatKit, Runs, Runs], model: ScriptedModel, rows: Rows
) -> None:
    chat, *_ = two
    thread = await with_tasks(chat, model, 1)
    await model.script(calls(deleting(1)))
    await chat.say("delete the first", thread)
    [waiting] = rows("SELECT id FROM runs WHERE status = 'waiting'")
    following = chat.app.state.parts.turns.following  # pyright: ignore[reportAttributeAccessIssue]
    following._pulse_seconds = following._waiting_look_seconds = 0.1
    told = b""
    async with chat.http.stream("GET", f"/chats/{thread}/interactions/{waiting['id']}/events") as response:
        async with asyncio.timeout(10):
            async for piece in response.aiter_bytes():
                told += piece
                if told.count(b": ping\n\n") == 3:
                    break
    assert b"event: approval_required" in told
    assert b"interaction_complete" not in told


@pytest.mark.parametrize("by", ["a message", "a cancel", "another version"])
async def test_what_ends_a_run_that_waits_is_told_in_its_own_stream(
    two: tuple[ChatKit, Runs, Runs], model: ScriptedModel, rows: Rows, by: str
) -> None:
    chat, here, there = two
    thread = await with_tasks(chat, model, 3)
    await model.script(calls(deleting(1), deleting(2), deleting(3)), {"text": "Hello."})
    async with here.interact(thread, "delete them") as own:
        seen = await until_told(own, "approval_required", count=3)
        run, asked = id_of(seen), asked_in(seen)
        await here.approve(thread, run, asked[0], approved=True)
        if by == "a message":
            later = await there.say(thread, "rather not")
            assert not {"approved", "rejected", "cancelled"} & {*names(later)}
            assert (await here.get_interaction(thread, id_of(later)))["agent_events"] == plain(later)
        elif by == "a cancel":
            await there.cancel(thread, run)
        else:
            await there.branch(thread, None)
        async with asyncio.timeout(5):
            seen += [event async for event in own]
    decided = [(event.name, event.data.get("approval_id")) for event in seen[seen_until(seen) :]]
    rejected = [("rejected", one) for one in asked[1:]]
    assert decided == [("approved", asked[0]), *rejected, ("cancelled", None), ("interaction_complete", None)]
    assert await there.read(thread, run) == seen
    assert (await there.get_interaction(thread, run))["agent_events"] == plain(seen)
    rows("DELETE FROM run_events")
    rows(GONE)
    assert plain(await here.read(thread, run))[1:] == plain(seen)[1:]
    assert open_tasks(rows) == 3


def seen_until(events: list[Event]) -> int:
    """Where what was decided begins."""
    return names(events).index("approved")


async def test_a_steer_to_a_run_that_waits_is_told_as_refusals(
    two: tuple[ChatKit, Runs, Runs], model: ScriptedModel, rows: Rows
) -> None:
    chat, here, there = two
    thread = await with_tasks(chat, model, 2)
    await model.script(calls(deleting(1), deleting(2)), {"text": "As you like."})
    async with here.interact(thread, "delete both") as own:
        seen = await until_told(own, "approval_required", count=2)
        run, asked = id_of(seen), asked_in(seen)
        await there.approve(thread, run, asked[1], approved=True)
        await there.send(thread, run, "only the second", mode="steer")
        seen += [event async for event in own]
    decided = [(event.name, event.data["approval_id"]) for event in seen if event.name in ("approved", "rejected")]
    assert decided == [("approved", asked[1]), ("rejected", asked[0])]
    assert names(seen)[-1] == "interaction_complete"
    assert (await there.get_interaction(thread, run))["agent_events"] == plain(seen)
    assert open_tasks(rows) == 1
