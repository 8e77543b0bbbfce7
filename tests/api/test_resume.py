"""Readers that lose their connection, leave or come back: what they read goes on where it was left."""

import asyncio
import random

import pytest

from tests.chatkit_client import ChatKit
from tests.runs_client import agent_events, id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import FOLLOW, HANGS, find_thread, follow, start_run
from tests.support.fixtures import NewUser
from tests.support.resuming import TASKS, DisconnectingReader, last_number, script_long_run
from tests.support.script import SLOW, SLOW_TEXT, add_task, delete_tasks, says
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import request, user_input
from todo_client.runs import RunEvent

pytestmark = pytest.mark.long

CHAT = "groceries"


async def test_reader_goes_on_from_any_event(user: User, model: ScriptedModel) -> None:
    await model.script(SLOW)
    seen: list[RunEvent] = []
    async with user.runs.interact(CHAT, "count") as events:
        async for event in events:
            seen.append(event)
            if len(text_of(seen)) > 8:
                break
    run = id_of(seen)
    assert (await user.runs.get_interaction(CHAT, run))["status"] == "RUNNING", "who leaves stops nothing"
    rest = await user.runs.read(CHAT, run, after=last_number(seen))
    assert SLOW_TEXT in (text_of(seen + rest), text_of(rest)), "a message is continued, or sent again"
    assert (await user.runs.get_interaction(CHAT, run))["agent_events"] == agent_events(seen + rest)
    last = rest[-1].number or 0
    assert names(await user.runs.read(CHAT, run, after=last - 1))[-1] == "interaction_complete"


@pytest.mark.long(seconds=5)
@pytest.mark.parametrize("seed", range(2))
async def test_reader_that_is_cut_off_at_any_byte(
    seed: int, user: User, new_user: NewUser, model: ScriptedModel
) -> None:
    """A call, an approval that is decided elsewhere and a long text: nothing is missing, and nothing comes twice."""
    chance, other = random.Random(seed), new_user(user.name, backend=1)
    processes = (user.runs, other.runs)
    await script_long_run(model)
    run = await start_run(user, CHAT, "go on")
    reading = [asyncio.create_task(DisconnectingReader(chance, processes).read(CHAT, run)) for _ in range(3)]
    approvals: list[dict[str, str]] = []
    while not approvals:
        approvals = (await other.runs.get_interaction(CHAT, run))["approvals"]
    approved = chance.random() < 0.5
    await other.runs.approve(CHAT, run, approvals[0]["approval_id"], approved=approved)
    first, *others = await asyncio.wait_for(asyncio.gather(*reading), 60)
    stored = await user.runs.get_interaction(CHAT, run)
    for events in (first, *others):
        numbers = [event.number for event in events if event.number]
        assert numbers == sorted(set(numbers))
        assert agent_events(events) == stored["agent_events"]
        assert ("approved" if approved else "rejected") in names(events)
        assert events[-1].data["status"] == "COMPLETED"


async def test_page_that_leaves_does_not_stop_its_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(SLOW)
    async with (
        ChatKit(user.url, headers=dict(user.chatkit.http.headers), detached=True) as page,
        page.open("threads.create", input=user_input("count")) as events,
    ):
        first = await anext(events)
        thread = (await anext(events))["thread"]["id"]
    [run] = stored.runs(user.name)
    assert first == {"type": "client_effect", "name": "todo.interaction", "data": {"interaction_id": run.id}}
    assert run.status == "running"
    await until(lambda: stored.run_statuses(user.name) == ["completed"])
    assert (await user.chatkit.items(thread))[-1]["content"][0]["text"] == SLOW_TEXT


async def test_page_that_comes_back_follows_from_the_beginning(
    user: User, new_user: NewUser, model: ScriptedModel
) -> None:
    await model.script(add_task("milk"), {**SLOW, "reasoning": "One after the other."})
    run = await start_run(user, CHAT, "count", until="answer_delta")
    thread = await find_thread(user, CHAT)
    other = new_user(user.name, backend=1)
    assert (await other.runs.get_chat(thread))["answering"] == run
    here, elsewhere = await asyncio.gather(follow(user, thread), follow(other, thread))
    for answer in (here, elsewhere):
        assert answer.text == SLOW_TEXT
        assert answer.events[0]["data"] == {"interaction_id": run}
        assert [item["type"] for item in answer.items] == ["user_message", "widget", "workflow", "assistant_message"]
    assert (await user.runs.get_chat(thread))["answering"] is None
    assert (await follow(user, thread)).events == []


async def test_stop_is_seen_by_whoever_follows(user: User, new_user: NewUser, model: ScriptedModel) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    other = new_user(user.name, backend=1)
    thread = await find_thread(user, CHAT)
    following = asyncio.create_task(follow(other, thread))
    async with other.runs.events(CHAT, run) as events:
        async for event in events:
            if event.name == "answer_delta":
                break
        await other.runs.cancel(CHAT, run)
    answer = await asyncio.wait_for(following, 20)
    assert answer.error is None
    assert HANGS["text"].startswith(answer.text)


async def test_only_own_conversations_are_followed(user: User, new_user: NewUser, model: ScriptedModel) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    thread = await find_thread(user, CHAT)
    for one, followed in ((user, "thr_none"), (new_user(), thread)):
        response = await one.chatkit.post("threads.custom_action", thread_id=followed, action=FOLLOW)
        assert response.status_code == 404
    await user.runs.cancel(CHAT, run)


async def test_reader_of_a_run_that_waits_has_all_so_far_at_once(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(add_task(TASKS[0], also=TASKS[1:]), delete_tasks(*range(1, 12)), says("Deleted."))
    run = await start_run(user, CHAT, "go on", until="approval_required")
    await until(lambda: stored.run_statuses(user.name) == ["waiting"])
    other = new_user(user.name, backend=1)
    reading = [asyncio.create_task(one.runs.read(CHAT, run)) for one in (user, other)]
    seen: list[RunEvent] = []
    async with asyncio.timeout(10), other.runs.events(CHAT, run) as events:
        async for event in events:
            seen.append(event)
            if event.name == "approval_required":
                break
    now = await user.runs.get_interaction(CHAT, run)
    assert (now["status"], now["final_agent_state"]) == ("WAITING_APPROVAL", None)
    assert agent_events(seen) == now["agent_events"]
    await user.runs.approve(CHAT, run, now["approvals"][0]["approval_id"], approved=True)
    first, second = await asyncio.gather(*reading)
    assert agent_events(first) == agent_events(second)
    assert names(first)[-1] == names(second)[-1] == "interaction_complete"


async def test_readers_of_a_user_are_limited(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    events = f"/chats/{CHAT}/interactions/{run}/events"
    thread = await find_thread(user, CHAT)
    async with asyncio.timeout(20), asyncio.TaskGroup() as readers:
        held = [asyncio.Event() for _ in range(20)]
        leave = asyncio.Event()

        async def hold(reading: asyncio.Event) -> None:
            async with user.runs.events(CHAT, run) as stream:
                await anext(stream)
                reading.set()
                await leave.wait()

        for one in held:
            readers.create_task(hold(one))
        for one in held:
            await one.wait()
        rejected = [
            await user.runs.http.get(events),
            await user.runs.http.post("/chats/other/interactions", json={"user_message": "hello"}),
        ]
        assert [response.status_code for response in rejected] == [429, 429]
        body = request("threads.custom_action", thread_id=thread, action=FOLLOW)
        response = await user.chatkit.http.post("/chatkit", json=body)
        assert '"type":"error"' in response.text.replace('": "', '":"')
        assert len(stored.runs(user.name)) == 1
        leave.set()

    async def is_read() -> bool:
        async with user.runs.http.stream("GET", events) as response:
            return response.status_code == 200

    async with asyncio.timeout(5):
        while not await is_read():
            await asyncio.sleep(0.05)
    await user.runs.cancel(CHAT, run)
