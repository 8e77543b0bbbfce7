"""Every kind of event reaches every reader: live, late, resumed, in another process, and when its process is killed."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from tests.runs_client import Runs, id_of, names, text_of, without_deltas
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS
from tests.support.backends import user_at
from tests.support.database_proxy import database_proxy
from tests.support.fixtures import NewUser
from tests.support.script import PAUSING, add_task, add_tasks, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Services, Stack
from tests.support.users import User
from todo_client.runs import RunEvent

CHAT = "groceries"
TASKS = [f"task {number}" for number in range(1, 12)]

Act = Callable[[Runs, str], Awaitable[object]]


@dataclass(frozen=True)
class Scenario:
    """What the model does, and what its user does once an event of a kind has come.

    `kinds` are the events about its calls and what it says, in their order.
    """

    steps: tuple[dict[str, object], ...]
    kinds: tuple[str, ...]
    on: str = ""
    act: Act | None = None


async def approve(runs: Runs, run: str) -> None:
    await _decide(runs, run, approved=True)


async def reject(runs: Runs, run: str) -> None:
    await _decide(runs, run, approved=False)


async def _decide(runs: Runs, run: str, *, approved: bool) -> None:
    [approval] = (await runs.get_interaction(CHAT, run))["approvals"]
    await runs.approve(
        CHAT, run, approval["approval_id"], approved=approved, reason=None if approved else "I need them."
    )


async def cancel(runs: Runs, run: str) -> None:
    await runs.cancel(CHAT, run)


ADDING = add_tasks(11)
DELETING = delete_tasks(*range(1, 12))
CALLED = ("tool_call", "tool_result")
SCENARIOS: dict[str, Scenario] = {
    "answer": Scenario((says("Hello there."),), ("answer",)),
    "thinking": Scenario((says("Four.", reasoning="Two and two."),), ("thinking", "answer")),
    "withdrawn": Scenario((says("I've added milk."), says("Not yet.")), ("withdrawn", "answer")),
    "tool": Scenario((add_task("milk"), says("Added.")), ("tool_call", "tool_result", "answer")),
    "failed_tool": Scenario(
        (calls(call("complete_task", task_id=99)), says("No.")), ("tool_call", "tool_result", "answer")
    ),
    "approved": Scenario(
        (ADDING, DELETING, says("Deleted.")),
        (*CALLED, "approval_required", "approved", *CALLED, "answer"),
        on="approval_required",
        act=approve,
    ),
    "approved_of_several": Scenario(
        (ADDING, calls(*DELETING["tool_calls"], call("add_task", title="milk")), says("Deleted.")),
        (*CALLED, *CALLED, "approval_required", "approved", *CALLED, "answer"),
        on="approval_required",
        act=approve,
    ),
    "rejected": Scenario(
        (ADDING, DELETING, says("Kept.")),
        (*CALLED, "approval_required", "rejected", "answer"),
        on="approval_required",
        act=reject,
    ),
    "cancelled_while_waiting": Scenario(
        (ADDING, DELETING),
        (*CALLED, "approval_required", "rejected", "cancelled"),
        on="approval_required",
        act=cancel,
    ),
    "cancelled_before_it_waits": Scenario(
        (calls(*start_coder("wait")["tool_calls"], *DELETING["tool_calls"]), {"delay": 60}),
        ("tool_call", "cancelled"),
        on="tool_call",
        act=cancel,
    ),
    "cancelled": Scenario((HANGS,), ("answer", "cancelled"), on="answer_delta", act=cancel),
    "failed": Scenario(({"status": 400, "body": {"error": {"message": "No."}}},), ("error",)),
    "sub_agent": Scenario(
        (start_coder("write"), calls(call("write_file", path="a.txt", content="a")), says("Wrote."), says("Fine.")),
        ("tool_call", *CALLED, "answer", "tool_result", "answer"),
    ),
    "sub_agent_approved": Scenario(
        (
            start_coder("save it"),
            calls(call("write_file", path="a.txt", content="a"), call("commit", message="All of it")),
            says("Saved."),
            says("Fine."),
        ),
        ("tool_call", *CALLED, "approval_required", "approved", *CALLED, "answer", "tool_result", "answer"),
        on="approval_required",
        act=approve,
    ),
}


async def play(scenario: Scenario, user: User, model: ScriptedModel, acting: Runs | None = None) -> list[RunEvent]:
    """The events as the reader that started the interaction has them."""
    await model.script(*scenario.steps)
    events: list[RunEvent] = []
    acted = scenario.act is None
    async with user.runs.interact(CHAT, "go on") as stream:
        async for event in stream:
            events.append(event)
            if not acted and scenario.act and event.name == scenario.on:
                acted = True
                await scenario.act(acting or user.runs, id_of(events))
    return events


def durable(events: list[RunEvent]) -> list[tuple[int, str, object]]:
    """Without pieces of text and the model's turns, which are no part of what is stored.

    Of events that are sent together the last has the number of all.
    """
    passed_over = ("answer_delta", "thinking_delta", "turn_start", "turn_end", "progress")
    kept: list[tuple[int, str, object]] = []
    number = None
    for event in reversed([event for event in events if event.name not in passed_over]):
        number = event.number or number
        assert number is not None
        kept.insert(0, (number, event.name, event.data))
    return kept


def kinds_of(events: list[RunEvent]) -> list[str]:
    """The names of the events about calls and what is said."""
    kinds = {kind for scenario in SCENARIOS.values() for kind in scenario.kinds}
    return [event.name for event in events if event.name in kinds]


def turns(events: list[RunEvent]) -> list[str]:
    """The names of the events, with the model's turns."""
    return [name for name in names(events) if name not in ("answer_delta", "thinking_delta", "progress")]


def turns_after(events: list[RunEvent], number: int) -> list[str]:
    """What a reader gets who goes on after a number: a model turn starts again if it has not ended there."""
    read = max(position for position, event in enumerate(events) if event.number == number) + 1
    before, rest = turns(events[:read]), turns(events[read:])
    is_open = before.count("turn_start") > before.count("turn_end") and "turn_end" in rest
    return [*(["turn_start"] if is_open else []), *rest]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_late_and_resuming_readers_of_any_process_get_the_same_events(
    name: str, user: User, model: ScriptedModel, new_user: NewUser
) -> None:
    scenario = SCENARIOS[name]
    live = await play(scenario, user, model)
    assert (live[0].name, live[-1].name) == ("interaction_started", "interaction_complete")
    assert kinds_of(live) == [*scenario.kinds]
    agents = {event.data.get("agent") for event in live if event.name in ("tool_call", "tool_result", "answer")}
    assert ("coder" in agents) is name.startswith("sub_agent")
    run = id_of(live)
    other = new_user(user.name, backend=1)
    for runs in (user.runs, other.runs):
        late = await runs.read(CHAT, run)
        assert durable(late) == durable(live)
        assert turns(late) == turns(live) or name == "failed", "nothing is stored of a model turn that failed"
        assert text_of(late) in ("", text_of(live)), "text comes whole or is left to `answer`"
        for number in {event.number for event in live if event.number}:
            rest = await runs.read(CHAT, run, after=number)
            assert durable(rest) == [one for one in durable(live) if one[0] > number]
            assert turns(rest) == turns_after(live, number) or name == "failed"
        assert (await runs.get_interaction(CHAT, run))["status"] == live[-1].data["status"]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_reader_in_another_process_follows_live(
    name: str, user: User, model: ScriptedModel, new_user: NewUser
) -> None:
    """It reads while the run goes on, and whatever its user does is done through that process."""
    scenario, other = SCENARIOS[name], new_user(user.name, backend=1)
    reading: list[asyncio.Task[list[RunEvent]]] = []
    started = asyncio.Event()

    async def follow(run: str) -> list[RunEvent]:
        async with other.runs.events(CHAT, run) as stream:
            started.set()
            return [event async for event in stream]

    await model.script(*scenario.steps)
    live: list[RunEvent] = []
    acted = scenario.act is None
    async with user.runs.interact(CHAT, "go on") as stream:
        async for event in stream:
            live.append(event)
            if len(live) == 1:
                reading.append(asyncio.create_task(follow(id_of(live))))
                await started.wait()
            if not acted and scenario.act and event.name == scenario.on:
                acted = True
                await scenario.act(other.runs, id_of(live))
    followed = await asyncio.wait_for(reading[0], 60)
    assert durable(followed) == durable(live)
    # Text comes in pieces, or is left to `answer` where a reader looked when it was complete.
    assert len({text_of(followed), text_of(live)} - {""}) <= 1


async def test_a_reader_who_comes_back_gets_only_the_open_model_turn(
    user: User, model: ScriptedModel, new_user: NewUser
) -> None:
    await model.script(ADDING, DELETING, PAUSING)
    async with user.runs.interact(CHAT, "go on") as stream:
        live = [await anext(stream)]
        async for event in stream:
            live.append(event)
            if event.name == "approval_required":
                await approve(user.runs, id_of(live))
            if event.name == "answer_delta":
                break
    for runs in (user.runs, new_user(user.name, backend=1).runs):
        for number in {event.number for event in live if event.number}:
            async with runs.events(CHAT, id_of(live), after=number) as stream:
                read = [await anext(stream)]
                while read[-1].name != "answer_delta":
                    read.append(await anext(stream))
            assert turns(read) == turns_after(live, number)
    await model.release()


async def test_decision_that_comes_before_the_run_is_stored_as_waiting(
    services: Services, user: User, model: ScriptedModel
) -> None:
    """The call of an agent is decided in another process, while the assistant's run is about to wait."""
    await model.script(*SCENARIOS["sub_agent_approved"].steps)
    async with (
        database_proxy(services.database_url) as proxy,
        user_at(services, user, DATABASE_URL=proxy.url, APPROVALS="bulk,commit") as there,
    ):
        proxy.holds_before = b"SET status = 'waiting'"
        events: list[RunEvent] = []
        async with there.runs.interact(CHAT, "go on") as stream:
            async for event in stream:
                events.append(event)
                if event.name == "approval_required":
                    await approve(user.runs, id_of(events))
                    proxy.released.set()
        assert kinds_of(events) == [*SCENARIOS["sub_agent_approved"].kinds]
        assert durable(await user.runs.read(CHAT, id_of(events))) == durable(events)


KILLED: dict[str, Scenario] = {
    "assistant": Scenario(
        (add_task("milk"), {**HANGS, "reasoning": "Two and two.", "eof_after": 8}),
        ("tool_call", "tool_result"),
        on="answer_delta",
    ),
    "sub_agent": Scenario(
        (start_coder("write"), calls(call("run_command", command="sleep 30"))), ("tool_call",), on="tool_call"
    ),
}


@pytest.mark.long(seconds=6)
@pytest.mark.parametrize("name", KILLED)
async def test_a_reader_in_another_process_learns_that_the_process_was_killed(
    name: str, stack: Stack, user: User, model: ScriptedModel, new_user: NewUser
) -> None:
    scenario, other = KILLED[name], new_user(user.name, backend=1)
    await model.script(*scenario.steps)
    async with user.runs.interact(CHAT, "go on") as stream:
        events: list[RunEvent] = []
        async for event in stream:
            events.append(event)
            if event.name == scenario.on:
                break
        run = id_of(events)
        followed: list[RunEvent] = []
        async with other.runs.events(CHAT, run) as stream_of_other:
            async for event in stream_of_other:
                followed.append(event)
                if event.name == scenario.on:
                    stack.backends[0].end(signal.SIGKILL)
    assert names(followed)[-2:] == ["error", "interaction_complete"]
    assert followed[-1].data["status"] == "FAILED"
    assert set(scenario.kinds) <= set(names(followed))
    assert [event for event in without_deltas(events) if event in without_deltas(followed)] == without_deltas(events), (
        "what was read stays"
    )
    again = await other.runs.read(CHAT, run)
    assert durable(again) == durable(followed)
    stack.ensure_running()
    assert durable(await user.runs.read(CHAT, run)) == durable(followed)
    await model.reset()
    await model.script(says("Free again."))
    assert names(await other.runs.say(CHAT, "hello"))[-1] == "interaction_complete"
