"""The run API: what a run streams and what is stored of it have the documented names and shapes."""

import json
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.runs_client import agent_events, id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.support import run_api_specification as specification
from tests.support.answers import HANGS
from tests.support.script import add_task, call, calls, delete_tasks, says
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.runs import RunEvent

CHAT = "groceries"
ADD_MILK = {**add_task("milk"), "reasoning": "Milk, then."}


def read(events: Sequence[RunEvent]) -> list[str]:
    """The names of those that the specification has, each with data that its model takes."""
    known = [event for event in events if event.name in specification.STREAMED]
    for event in known:
        if (model := specification.STREAMED[event.name]) is not None:
            model.model_validate(event.data)
            assert event.data.get("type", event.name.upper()) == event.name.upper()
    return [event.name for event in known]


async def read_chat(user: User) -> specification.Chat:
    return specification.Chat.model_validate_json((await user.runs.request("GET", f"/chats/{CHAT}")).content)


async def read_until(events: AsyncIterator[RunEvent], name: str) -> list[RunEvent]:
    seen: list[RunEvent] = []
    async for event in events:
        seen.append(event)
        if event.name == name:
            break
    return seen


async def test_streamed_events(user: User, model: ScriptedModel) -> None:
    await model.script(ADD_MILK, says("It is on the list."))
    events = await user.runs.say(CHAT, "add milk")
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
    data, run = {event.name: event.data for event in events}, id_of(events)
    assert data["interaction_started"] == {"interaction_id": run, "chat_id": CHAT}
    assert data["thinking"] == {"type": "THINKING", "content": "Milk, then."}
    assert data["tool_call"]["tool_name"] == "add_task"
    assert json.loads(data["tool_call"]["tool_input"]) == {"title": "milk"}
    assert data["tool_result"]["id"] == data["tool_call"]["id"]
    assert json.loads(data["tool_result"]["tool_output"])["title"] == "milk"
    assert data["answer"] == {"type": "ANSWER", "content": text_of(events)}
    assert text_of(events) == "It is on the list."
    changes = [{"task_id": 1, "title": "milk", "change": "added"}]
    assert data["interaction_complete"] == {"interaction_id": run, "status": "COMPLETED", "changes": changes}
    numbers = [event.number for event in events if event.number]
    assert numbers == sorted(set(numbers))


@pytest.mark.long
async def test_response_is_an_event_stream_that_no_proxy_keeps(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    response = await user.runs.http.post(f"/chats/{CHAT}/interactions", json={"user_message": "hello"})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"


@pytest.mark.long
async def test_stored_interaction_is_what_was_streamed(user: User, model: ScriptedModel) -> None:
    await model.script(ADD_MILK, says("It is on the list."))
    events = await user.runs.say(CHAT, "add milk")
    stored = await user.runs.get_interaction(CHAT, id_of(events))
    assert stored["agent_events"] == agent_events(events)
    assert (stored["status"], stored["reason"], stored["user_message"]) == ("COMPLETED", None, "add milk")
    assert stored["created_at"] < stored["completed_at"]
    assert stored["usage"]["requests"] == 2
    assert stored["siblings"] == [id_of(events)]
    brief = await user.runs.get_interaction(CHAT, id_of(events), brief=True)
    assert brief == {**stored, "agent_events": [], "final_agent_state": None}
    chat = await user.runs.get_chat(CHAT)
    assert (chat["interactions"], chat["has_more"], chat["before"]) == ([stored], False, None)
    assert (await user.runs.http.get(f"/chats/{CHAT}?brief=true")).json() == chat | {"interactions": [brief]}


@pytest.mark.long
async def test_clients_of_the_specification_read_all(user: User, model: ScriptedModel, stored: Stored) -> None:
    both = calls(call("add_task", title="milk"), call("complete_task", task_id=99), reasoning="A task.")
    await model.script(both, says("Added."))
    first = await user.runs.say(CHAT, "add milk")
    titles = [f"task {number}" for number in range(11)]
    await model.script(add_task(titles[0], also=titles[1:]), delete_tasks(*range(1, 12)), delete_tasks(*range(2, 13)))
    await model.script(says("Deleted."))
    seen: list[RunEvent] = []
    async with user.runs.interact(CHAT, "delete them") as events:
        for approved in (False, True):
            seen += await read_until(events, "approval_required")
            await until(lambda: stored.run_statuses(user.name)[-1] == "waiting")
            waiting = (await read_chat(user)).interactions[-1]
            assert (waiting.status, waiting.completed_at) == ("WAITING_APPROVAL", None)
            asked = seen[-1].data["approval_id"]
            answer = await user.runs.approve(CHAT, id_of(seen), asked, approved=approved)
            assert specification.Approved.model_validate(answer).approved is approved
        seen += [event async for event in events]
    chat = await read_chat(user)
    tools = ["tool_call", "tool_result"]
    calls_of_first = [name for name in read(first) if name in tools]
    assert sorted(calls_of_first) == sorted(tools * 2)
    others = [name for name in read(first) if name not in tools]
    assert others == ["interaction_started", "thinking", "answer", "interaction_complete"]
    assert read(seen) == [
        *("interaction_started", *tools, "approval_required", "rejected", "approval_required", "approved", *tools),
        *("answer", "interaction_complete"),
    ]
    types = [event.type for event in chat.interactions[1].agent_events]
    assert types == ["TOOL_CALL", "TOOL_RESULT", "TOOL_CALL", "TOOL_RESULT", "ANSWER"]
    assert stored.titles(user.name) == ["milk"]
    assert (chat.id, [one.id for one in chat.interactions]) == (CHAT, [id_of(first), id_of(seen)])
    assert [one.user_message for one in chat.interactions] == ["add milk", "delete them"]
    types = [event.type for event in chat.interactions[0].agent_events]
    assert (types[:2], types[-2:]) == (["THINKING", "TOOL_CALL"], ["TOOL_RESULT", "ANSWER"])
    assert sorted(types[2:-2]) == ["TOOL_CALL", "TOOL_RESULT"]
    assert all(one.final_agent_state is not None for one in chat.interactions)


@pytest.mark.long
async def test_cancelled_and_failed_interactions(user: User, model: ScriptedModel) -> None:
    await model.script(HANGS)
    async with user.runs.interact(CHAT, "count") as events:
        seen = await read_until(events, "answer_delta")
        assert (await read_chat(user)).interactions[0].status == "RUNNING"
        specification.Cancelling.model_validate(await user.runs.cancel(CHAT, id_of(seen)))
        seen += [event async for event in events]
    assert read(seen)[-2:] == ["cancelled", "interaction_complete"]
    again = await user.runs.http.post(f"/chats/{CHAT}/interactions/{id_of(seen)}/cancel")
    assert again.status_code == 409
    await model.script({"status": 401})
    failed = await user.runs.say(CHAT, "hello")
    assert read(failed) == ["interaction_started", "error", "interaction_complete"]
    assert failed[-2].data["allow_retry"] in (True, False)
    interactions = (await user.runs.get_chat(CHAT))["interactions"]
    assert [one["status"] for one in interactions] == ["CANCELLED", "FAILED"]
    assert interactions[1]["reason"] == failed[-2].data["error"]


@pytest.mark.parametrize("stack_name", ["approvals"])
@pytest.mark.long
async def test_approvals_of_a_run(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Each is decided once, in any order; the run goes on after the last one."""
    await model.script(add_task("one", also=["two", "three"]), says("Added."))
    await user.runs.say(CHAT, "add three")
    await model.script(calls(*(delete_tasks(number)["tool_calls"][0] for number in (1, 2, 3))), says("Fine."))
    async with user.runs.interact(CHAT, "delete them") as events:
        seen: list[RunEvent] = []
        for _ in range(3):
            seen += await read_until(events, "approval_required")
        run, asked = id_of(seen), [event.data for event in seen if event.name == "approval_required"]
        first, second, third = [one["approval_id"] for one in asked]
        assert [one["tool_name"] for one in asked] == ["delete_task"] * 3
        await until(lambda: stored.run_statuses(user.name)[-1] == "waiting")
        assert (await user.runs.get_interaction(CHAT, run))["approvals"] == [
            {**one, "approved": None, "reason": None} for one in asked
        ]
        other = user.at(1)
        async with other:
            await other.runs.approve(CHAT, run, third, approved=True, reason="because")
        await user.runs.approve(CHAT, run, first, approved=False, reason="no")
        assert len(stored.titles(user.name)) == 3, "nothing is done before all is decided"
        await user.runs.approve(CHAT, run, second, approved=True)
        seen += [event async for event in events]
    decided = [(one.name, one.data["approval_id"]) for one in seen if one.name in ("approved", "rejected")]
    assert decided == [("approved", third), ("rejected", first), ("approved", second)]
    assert stored.titles(user.name) == ["one"]
    interaction = await user.runs.get_interaction(CHAT, run)
    assert [(one["approved"], one["reason"]) for one in interaction["approvals"]] == [
        (False, "no"),
        (True, None),
        (True, "because"),
    ]
    assert interaction["agent_events"] == agent_events(seen)
    place = f"/chats/{CHAT}/interactions/{run}/approve"
    for body, status in (
        ({"approval_id": first, "approved": True}, 400),
        ({"approval_id": "apr_0", "approved": True}, 404),
        ({"approval_id": first}, 400),
        ({"approved": True}, 400),
        ({"approval_id": first, "approved": "yes"}, 400),
    ):
        assert (await user.runs.http.post(place, json=body)).status_code == status, body
    await model.script(says("Hello."))
    another = id_of(await user.runs.say("another", "hello"))
    body = {"approval_id": first, "approved": True}
    response = await user.runs.http.post(f"/chats/another/interactions/{another}/approve", json=body)
    assert response.status_code == 404
