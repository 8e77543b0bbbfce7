"""The Python client against running services: events, interventions, lost connections, branches."""

import asyncio
import random
import threading
from typing import Any

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, start_run
from tests.support.http_relay import HttpRelay
from tests.support.script import (
    PAUSING,
    SLOW_TEXT,
    add_task,
    call,
    calls,
    delete_tasks,
    pausing_answer,
    says,
    start_coder,
)
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client import Agent, AgentEvent, ApiError, ConnectionLost, EventType, RunFailed, Session, SessionEntry, Usage

CHAT = "groceries"
DELETING = (add_task("milk"), delete_tasks(1), says("Gone."))
WORDS = " ".join(f"word{number}" for number in range(80))
LONG: dict[str, Any] = {"text": WORDS, "chunk_chars": 9, "token_delay": 0.02}


@pytest.fixture
def stack_name() -> str:
    return "approvals"


def agent_of(user: User, url: str | None = None) -> Agent:
    return Agent(url or user.url, user.token, CHAT, time_zone="Europe/Berlin")


@pytest.fixture
def agent(user: User) -> Agent:
    return agent_of(user)


def listen(agent: Agent) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    agent.subscribe(events.append)
    return events


def types(events: list[AgentEvent]) -> list[EventType | str]:
    """Without the pieces of texts."""
    return [event.type for event in events if not event.type.endswith("DELTA")]


def text_of(events: list[AgentEvent]) -> str:
    return "".join(event.data["text"] for event in events if event.type is EventType.TEXT_DELTA)


def data_of(events: list[AgentEvent], kind: EventType) -> list[dict[str, Any]]:
    return [event.data for event in events if event.type is kind]


async def test_events_and_result(agent: Agent, model: ScriptedModel) -> None:
    await model.script(add_task("milk"), says("Done.", reasoning="I am done."), says("Hello."))
    events = listen(agent)
    result = await agent.prompt("add milk")
    assert (result.text, result.reason) == ("Done.", "completed")
    assert types(events) == [
        *("AGENT_START", "TURN_START", "TURN_END", "TOOL_CALL_START", "TOOL_CALL_END", "TOOL_RESULT"),
        *("TURN_START", "TURN_END", "THINKING", "TEXT", "AGENT_END"),
    ]
    assert {event.interaction_id for event in events} == {result.interaction_id}
    [started], [ended], [detailed] = (
        data_of(events, kind) for kind in (EventType.TOOL_CALL_START, EventType.TOOL_CALL_END, EventType.TOOL_RESULT)
    )
    assert started["name"] == ended["name"] == detailed["name"] == "add_task"
    assert started["input"] == {"title": "milk"}
    assert (ended["is_error"], "milk" in ended["output"]) == (False, True)
    assert detailed["details"]["title"] == "milk"
    assert events[-1].data == {"reason": "completed"}
    assert text_of(events) == "Done."
    assert (result.usage.requests, result.usage.total_tokens > 0) == (2, True)
    another = await agent.prompt("hello")
    assert agent.usage == result.usage + another.usage
    assert another.usage.requests == 1


async def test_changes_and_a_withdrawn_text(agent: Agent, model: ScriptedModel) -> None:
    """What the result says was changed is that of all answers to the prompt."""
    listed = pausing_answer("It is on ", "the list.")
    await model.script(says("I've added milk."), add_task("milk"), listed, add_task("bread"), says("There it is."))
    events = listen(agent)
    answering = asyncio.create_task(agent.prompt("add milk"))
    await until(lambda: data_of(events, EventType.TOOL_RESULT))
    await asyncio.wrap_future(agent.follow_up("and bread"))
    await model.release()
    result = await answering
    assert types(events).count(EventType.WITHDRAWN) == 1
    assert (result.text, result.named, result.unread) == ("There it is.", None, False)
    assert [(one["title"], one["change"]) for one in result.changes] == [("milk", "added"), ("bread", "added")]


async def test_details_of_a_call_without_any(agent: Agent, model: ScriptedModel) -> None:
    await model.script(calls(call("complete_task", task_id=99)), says("There is none."))
    events = listen(agent)
    await agent.prompt("complete 99")
    [detailed] = data_of(events, EventType.TOOL_RESULT)
    assert (detailed["is_error"], detailed["details"]) == (True, {})


async def test_unsubscribe_and_coroutine_functions(agent: Agent, model: ScriptedModel) -> None:
    await model.script(says("One."), says("Two."))
    texts: list[str] = []

    async def listener(event: AgentEvent) -> None:
        await asyncio.sleep(0)
        texts.extend([event.data["text"]] if event.type is EventType.TEXT else [])

    unsubscribe = agent.subscribe(listener)
    await agent.prompt("one")
    unsubscribe()
    unsubscribe()
    await agent.prompt("two")
    assert texts == ["One."]


async def test_rejected_message(stack: Stack, user: User, agent: Agent) -> None:
    with pytest.raises(ApiError) as rejected:
        await Agent(user.url, "no token").prompt("hello")
    assert rejected.value.status == 401
    with pytest.raises(ApiError, match="characters") as rejected:
        await agent.prompt("x" * 100_000)
    assert rejected.value.status == 400
    with pytest.raises(ConnectionLost):
        await Agent("http://127.0.0.1:9", reconnect_seconds=0.5).prompt("hello")


async def test_failure_raises(agent: Agent, model: ScriptedModel) -> None:
    await model.script({"status": 401, "body": {"error": {"message": "no"}}})
    events = listen(agent)
    with pytest.raises(RunFailed) as failed:
        await agent.prompt("hello")
    [error] = data_of(events, EventType.ERROR)
    assert (str(failed.value), failed.value.code) == (error["error"], error["code"])
    assert (failed.value.result.reason, events[-1].data) == ("error", {"reason": "error"})


async def test_one_prompt_at_a_time(agent: Agent, model: ScriptedModel) -> None:
    await model.script(PAUSING, says("Hello."))
    assert agent.abort().done()
    for intervene in (lambda: agent.steer("stop"), lambda: agent.follow_up("go on"), lambda: agent.approve("call_1")):
        with pytest.raises(RuntimeError, match="not answering"):
            intervene()
    events = listen(agent)
    first = asyncio.create_task(agent.prompt("count"))
    await until(lambda: text_of(events))
    with pytest.raises(RuntimeError, match="answering already"):
        await agent.prompt("hello")
    await model.release()
    assert (await first).text == SLOW_TEXT
    assert (await agent.prompt("hello")).text == "Hello.", "after it, the next one"


@pytest.mark.parametrize("approved", [True, False])
async def test_approval_in_a_listener(
    approved: bool, agent: Agent, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(*DELETING)
    events = listen(agent)

    def decide(event: AgentEvent) -> None:
        if event.type is EventType.APPROVAL_REQUIRED:
            agent.approve(event.data["approval_id"], approved=approved, reason="As agreed.")

    agent.subscribe(decide)
    assert (await agent.prompt("delete milk")).text == "Gone."
    assert stored.titles(user.name) == ([] if approved else ["milk"])
    [waiting] = data_of(events, EventType.APPROVAL_REQUIRED)
    assert (waiting["name"], waiting["input"], "milk" in waiting["text"]) == ("delete_task", {"task_id": 1}, True)
    [decided] = data_of(events, EventType.APPROVED if approved else EventType.REJECTED)
    assert decided == {"approval_id": waiting["approval_id"], "reason": "As agreed."}


async def test_rejected_request_is_reported(agent: Agent, model: ScriptedModel) -> None:
    await model.script(*DELETING)
    events = listen(agent)
    answering = asyncio.create_task(agent.prompt("delete milk"))
    [waiting] = await until(lambda: data_of(events, EventType.APPROVAL_REQUIRED))
    with pytest.raises(ApiError) as rejected:
        await asyncio.to_thread(agent.approve("call_unknown").result, 30)
    assert rejected.value.status == 404
    assert data_of(events, EventType.ERROR)[0]["error"] == str(rejected.value)
    agent.approve(waiting["approval_id"])
    assert (await answering).text == "Gone."


async def test_steer(agent: Agent, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_task("milk"), add_task("bread"), says("Both."))
    events = listen(agent)
    with stored.lock_table("task_calls"):
        answering = asyncio.create_task(agent.prompt("add milk"))
        await until(lambda: data_of(events, EventType.TOOL_CALL_START))
        await asyncio.wrap_future(agent.steer("and bread"))
    assert (await answering).text == "Both."
    assert stored.titles(user.name) == ["milk", "bread"]
    assert types(events).count(EventType.AGENT_END) == 1


async def test_follow_ups_are_answered(agent: Agent, model: ScriptedModel) -> None:
    await model.script(PAUSING, says("Eleven."), says("Twelve."))
    events = listen(agent)
    answering = asyncio.create_task(agent.prompt("count"))
    await until(lambda: text_of(events))
    for text in ("go on", "and on"):
        await asyncio.wrap_future(agent.follow_up(text))
    await model.release()
    result = await answering
    assert [data["text"] for data in data_of(events, EventType.TEXT)] == [SLOW_TEXT, "Eleven.", "Twelve."]
    assert (result.text, result.usage.requests) == ("Twelve.", 3)
    assert types(events).count(EventType.AGENT_START) == types(events).count(EventType.AGENT_END) == 1
    assert len({event.interaction_id for event in events}) == 3


@pytest.mark.parametrize("mode", ["steer", "follow_up"])
async def test_message_to_an_answer_that_has_ended(mode: str, user: User, agent: Agent, model: ScriptedModel) -> None:
    """The program has not read the end yet: the message is answered as if it had come in time."""
    await model.script(says("Ten."), says("Eleven."))

    async def has_ended(run: str) -> bool:
        return (await user.runs.get_interaction(CHAT, run))["status"] != "RUNNING"

    async def send_after_the_end(event: AgentEvent) -> None:
        if event.type is EventType.TURN_END:
            unsubscribe()
            await until(lambda: has_ended(event.interaction_id))
            getattr(agent, mode)("go on")

    unsubscribe = agent.subscribe(send_after_the_end)
    events = listen(agent)
    assert (await agent.prompt("count")).text == "Eleven."
    assert types(events).count(EventType.AGENT_END) == 1


async def test_abort_from_another_thread(agent: Agent, user: User, model: ScriptedModel) -> None:
    await model.script(HANGS)
    events = listen(agent)
    said = threading.Event()
    agent.subscribe(lambda event: said.set() if event.type is EventType.TEXT_DELTA else None)

    def abort() -> None:
        assert said.wait(30)
        agent.abort().result(30)

    thread = threading.Thread(target=abort)
    thread.start()
    result = await agent.prompt("count")
    await asyncio.to_thread(thread.join)
    assert result.reason == events[-1].data["reason"] == "aborted"
    assert result.text == text_of(events) != ""
    assert (await user.runs.get_interaction(CHAT, result.interaction_id))["status"] == "CANCELLED"


async def test_abort_before_the_answer_begins(agent: Agent, model: ScriptedModel) -> None:
    await model.script(HANGS)
    answering = asyncio.create_task(agent.prompt("count"))
    await asyncio.sleep(0)
    agent.abort()
    assert (await asyncio.wait_for(answering, 30)).reason == "aborted"


async def test_programs_without_asyncio(agent: Agent, model: ScriptedModel) -> None:
    """Each call has an event loop of its own, in any thread."""
    await model.script(says("One."), says("Two."))
    for text in ("One.", "Two."):
        assert (await asyncio.to_thread(lambda: asyncio.run(agent.prompt("go on")))).text == text


@pytest.mark.long(seconds=8)
@pytest.mark.parametrize("seed", range(2))
async def test_connection_breaks_again_and_again(
    seed: int, relay: HttpRelay, stack: Stack, user: User, model: ScriptedModel, stored: Stored
) -> None:
    """Nothing is missing, nothing comes twice, and no request acts twice; each time in any process."""
    await model.script(add_task("milk"), {**delete_tasks(1), "text": "I delete it."}, LONG, says("Never."))
    agent, chance = agent_of(user, relay.url), random.Random(seed)
    events = listen(agent)

    def decide(event: AgentEvent) -> None:
        if event.type is EventType.APPROVAL_REQUIRED:
            relay.lost_responses = 1
            agent.approve(event.data["approval_id"])

    agent.subscribe(decide)
    relay.lost_responses = 1
    answering = asyncio.create_task(agent.prompt("go on"))
    while not answering.done():
        await asyncio.sleep(chance.uniform(0.1, 0.7))
        relay.cut()
        await asyncio.sleep(chance.uniform(0, 0.2))
        await relay.restore(chance.choice(stack.backends).url)
    result = answering.result()
    assert (result.text, text_of(events)) == (WORDS, f"I delete it.{WORDS}")
    expected = [
        *("AGENT_START", "TURN_START", "TURN_END", "TOOL_CALL_START", "TOOL_CALL_END", "TOOL_RESULT"),
        *("TURN_START", "TEXT", "TURN_END", "APPROVAL_REQUIRED", "APPROVED", "TOOL_CALL_START"),
        *("TOOL_CALL_END", "TOOL_RESULT", "TURN_START", "TURN_END", "TEXT", "AGENT_END"),
    ]
    assert [kind for kind in types(events) if kind in expected] == expected
    assert stored.run_statuses(user.name) == ["completed"]
    assert stored.titles(user.name) == []


@pytest.mark.parametrize("mode", ["steer", "follow_up"])
async def test_message_whose_response_is_lost_is_read_once(
    mode: str, relay: HttpRelay, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(pausing_answer("One", " two."), says("Three."), says("Never."))
    agent = agent_of(user, relay.url)
    events = listen(agent)
    answering = asyncio.create_task(agent.prompt("count"))
    await until(lambda: text_of(events))
    relay.lost_responses = 1
    await asyncio.wrap_future(getattr(agent, mode)("go on"))
    assert stored.queued_messages(user.name) == 1
    await model.release()
    assert (await answering).text == "Three."
    assert relay.lost_responses == 0


async def test_program_that_starts_again_resumes(user: User, agent: Agent, model: ScriptedModel) -> None:
    await model.script(*DELETING)
    await start_run(user, CHAT, "delete milk", until="approval_required")
    agent.subscribe(
        lambda event: agent.approve(event.data["approval_id"]) if event.type is EventType.APPROVAL_REQUIRED else None
    )
    resumed = await agent.resume()
    assert resumed
    assert resumed.text == "Gone."
    assert await agent.resume() is None


async def test_sub_agents_are_named(agent: Agent, model: ScriptedModel) -> None:
    await model.script(start_coder("look"), calls(call("list_files")), says("Nothing is there."), says("It is empty."))
    events = listen(agent)

    def approve(event: AgentEvent) -> None:
        if event.type is EventType.APPROVAL_REQUIRED:
            agent.approve(event.data["approval_id"], always=True)

    agent.subscribe(approve)
    result = await agent.prompt("look")
    assert result.text == "It is empty."
    assert [(event.agent, event.data["text"]) for event in events if event.type is EventType.TEXT] == [
        ("coder", "Nothing is there."),
        (None, "It is empty."),
    ]


def path_of(entries: list[SessionEntry], interaction_id: str) -> list[str]:
    """What the user said up to an interaction."""
    by_id = {entry.id: entry for entry in entries}
    one = by_id.get(next(entry.id for entry in entries if entry.interaction_id == interaction_id))
    said: list[str] = []
    while one is not None:
        said = [*([one.data["input"]] if one.type == "user_message" else []), *said]
        one = by_id.get(one.parent_id or "")
    return said


async def test_branches(user: User, model: ScriptedModel) -> None:
    await model.script(says("One."), says("Two."), says("Three."))
    session = Session(user.url, user.token, CHAT)
    assert await session.entries() == []
    agent = session.agent()
    first, second = await agent.prompt("one"), await agent.prompt("two")
    [beginning, *_] = [entry for entry in await session.entries() if entry.interaction_id == first.interaction_id]
    assert (beginning.type, beginning.data["input"]) == ("user_message", "one")
    await session.branch(beginning)
    third = await agent.prompt("three")
    entries = await session.entries()
    assert path_of(entries, second.interaction_id) == ["one", "two"]
    assert path_of(entries, third.interaction_id) == ["one", "three"]
    await session.branch(second.interaction_id)
    assert (await user.runs.get_chat(CHAT))["leaf"] == second.interaction_id
    await session.branch(None)
    assert (await user.runs.get_chat(CHAT))["leaf"] is None
    with pytest.raises(ApiError) as rejected:
        await session.branch("run_unknown")
    assert rejected.value.status == 404


async def test_sessions(user: User, model: ScriptedModel) -> None:
    await model.script(says("One."), says("Two."), says("Three."))
    fresh = await Session.continue_recent(user.url, user.token)
    await fresh.agent().prompt("one")
    await Session(user.url, user.token, CHAT).agent().prompt("two")
    assert (await (await Session.continue_recent(user.url, user.token)).entries())[1].data["input"] == "two"
    opened = await Session.open(user.url, fresh.chat, user.token)
    await opened.agent().prompt("three")
    messages = [entry.data["input"] for entry in await fresh.entries() if entry.type == "user_message"]
    assert messages == ["one", "three"]
    with pytest.raises(ApiError) as rejected:
        await Session.open(user.url, "unknown", user.token)
    assert rejected.value.status == 404


def test_usage_adds_up() -> None:
    total = Usage(1, 10, 5, 2) + Usage(2, 20, 6, 1)
    assert (total, total.total_tokens) == (Usage(3, 30, 11, 3), 41)
