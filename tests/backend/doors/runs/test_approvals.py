"""Calls that wait: asked for in the stream, decided from anywhere, and gone on with in the same stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.connection import Refused
from client.runs import Event
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import calls, deleting, open_tasks, with_tasks
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs, id_of, names, plain
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture
async def asking(backend: Backend) -> Any:
    async with backend(approvals=("delete_task",)) as chat, Runs(chat.base_url) as runs:
        yield chat, runs


async def until_asked(events: Any) -> list[Event]:
    seen: list[Event] = []
    async for event in events:
        seen.append(event)
        if event.name == "approval_required":
            break
    return seen


@asynccontextmanager
async def asked_to_delete(asking: Any, model: ScriptedModel, rows: Rows, *, tasks: int = 1) -> AsyncIterator[Any]:
    """A run that waits for what is said to a deletion: its conversation, its open stream, and what has come in it."""
    chat, runs = asking
    thread = await with_tasks(chat, model, tasks)
    await model.script(calls(deleting(1)), {"text": "Done."})
    async with runs.interact(thread, "delete the first") as events:
        seen = await until_asked(events)
        await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'waiting'"))
        yield thread, events, seen


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
async def test_what_is_decided_goes_on_in_the_open_stream(
    asking: Any, model: ScriptedModel, rows: Rows, approved: bool
) -> None:
    _, runs = asking
    async with asked_to_delete(asking, model, rows, tasks=2) as (thread, events, seen):
        run, wanted = id_of(seen), seen[-1].data
        assert wanted["tool_name"] == "delete_task"
        assert "task number 1" in wanted["text"]
        assert "tool_call" not in names(seen)
        waiting = await runs.get_interaction(thread, run)
        assert waiting["status"] == "WAITING_APPROVAL"
        assert waiting["final_agent_state"] is None
        assert waiting["approvals"] == [{**wanted, "approved": None, "reason": None}]
        assert waiting["agent_events"] == plain(seen)
        answer = await runs.approve(thread, run, wanted["approval_id"], approved=approved, reason="because")
        assert answer == {"status": "processed", "approval_id": wanted["approval_id"], "approved": approved}
        seen += [event async for event in events]
    kinds = [event["event"] for event in plain(seen)]
    decided = ["approved", "tool_call", "tool_result"] if approved else ["rejected"]
    assert kinds == ["interaction_started", "approval_required", *decided, "answer", "interaction_complete"]
    assert {"event": decided[0], "data": {"approval_id": wanted["approval_id"], "reason": "because"}} in plain(seen)
    assert open_tasks(rows) == (1 if approved else 2)
    stored = await runs.get_interaction(thread, run)
    assert stored["agent_events"] == plain(seen)
    assert stored["approvals"][0]["approved"] is approved
    assert stored["usage"]["requests"] == 2
    for number in (None, *range(1, seen[-1].number or 0)):
        again = await runs.read(thread, run, after=number or 0)
        assert again == [event for event in seen if event.number and event.number > (number or 0)]


async def test_a_decision_is_taken_once_and_in_any_process(
    backend: Backend, asking: Any, model: ScriptedModel, rows: Rows
) -> None:
    _, runs = asking
    async with (
        backend(approvals=("delete_task",)) as other,
        Runs(other.base_url) as there,
        asked_to_delete(asking, model, rows, tasks=2) as (thread, events, seen),
    ):
        run, approval = id_of(seen), seen[-1].data["approval_id"]
        decisions = await asyncio.gather(
            *(client.approve(thread, run, approval, approved=yes) for client in (runs, there) for yes in (True, False)),
            return_exceptions=True,
        )
        rest = [event async for event in events]
    refused = [one for one in decisions if isinstance(one, Refused)]
    assert len(refused) == 3
    assert {one.status for one in refused} == {400}
    assert "decided already" in str(refused[0])
    assert names(rest)[-1] == "interaction_complete"
    [taken] = [one for one in decisions if isinstance(one, dict)]
    assert open_tasks(rows) == (1 if taken["approved"] else 2)
    with pytest.raises(Refused) as late:
        await runs.approve(thread, run, approval, approved=True)
    assert late.value.status == 400


async def test_what_was_never_asked_is_not_found(asking: Any, model: ScriptedModel, rows: Rows) -> None:
    chat, runs = asking
    async with asked_to_delete(asking, model, rows) as (thread, _, seen):
        other = id_of(await runs.say("another", "hello"))
        run, approval = id_of(seen), seen[-1].data["approval_id"]
        for place in ((thread, run, "apr_0"), (thread, "run_0", approval), ("another", other, approval)):
            with pytest.raises(Refused) as refused:
                await runs.approve(*place, approved=True)
            assert refused.value.status == 404
        for body in ({"approval_id": approval}, {"approved": True}, {"approval_id": approval, "approved": "yes"}):
            response = await chat.http.post(f"/chats/{thread}/interactions/{run}/approve", json=body)
            assert response.status_code == 400
    assert rows("SELECT 1 FROM approvals WHERE decision IS NOT NULL") == []


async def test_a_decision_that_is_sent_again_is_answered_alike(asking: Any, model: ScriptedModel, rows: Rows) -> None:
    _, runs = asking
    async with asked_to_delete(asking, model, rows) as (thread, events, seen):
        place = (thread, id_of(seen), seen[-1].data["approval_id"])
        answers = await asyncio.gather(*(runs.approve(*place, approved=True, key="k") for _ in range(4)))
        assert [event async for event in events][-1].data["status"] == "COMPLETED"
    assert all(answer == answers[0] for answer in answers)
    assert await runs.approve(*place, approved=True, key="k") == answers[0]


async def test_a_run_that_waits_is_cancelled_at_once(asking: Any, model: ScriptedModel, rows: Rows) -> None:
    _, runs = asking
    async with asked_to_delete(asking, model, rows) as (thread, events, seen):
        assert (await runs.cancel(thread, id_of(seen)))["status"] == "cancelling"
        seen += [event async for event in events]
    assert names(seen)[-2:] == ["cancelled", "interaction_complete"]
    stored = await runs.get_interaction(thread, id_of(seen))
    assert stored["status"] == "CANCELLED"
    assert stored["approvals"][0]["approved"] is False
    assert open_tasks(rows) == 1


async def test_another_message_refuses_what_waits(asking: Any, model: ScriptedModel, rows: Rows, chat: ChatKit) -> None:
    _, runs = asking
    async with asked_to_delete(asking, model, rows) as (thread, events, seen):
        later = await runs.say(thread, "hello")
        seen += [event async for event in events]
    assert names(seen)[-2:] == ["cancelled", "interaction_complete"]
    assert later[-1].data["status"] == "COMPLETED"
    assert open_tasks(rows) == 1


async def test_who_follows_what_waits_does_not_hold_up_the_end_of_the_process(
    backend: Backend, model: ScriptedModel
) -> None:
    async with backend() as chat, Runs(chat.base_url) as runs:
        thread = await with_tasks(chat, model, 12)
        await model.script(calls(deleting(*range(1, 13))))
        async with runs.interact(thread, "delete all") as events:
            await until_asked(events)
            chat.app.state.parts.turns.shut_down()  # pyright: ignore[reportAttributeAccessIssue]
            async with asyncio.timeout(6):
                assert [event.name async for event in events] == []
