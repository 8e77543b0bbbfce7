"""Messages to a run that goes on: a steer before the model's next turn, a follow-up after the answer."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from tests.chatkit_client import text_of
from tests.runs_client import id_of, names
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, find_thread, list_texts, list_user_items, start_run
from tests.support.backends import user_at
from tests.support.fixtures import NewUser
from tests.support.model_requests import requests_to
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
    start_researcher,
)
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.connection import ApiError

CHAT = "groceries"
Mode = Literal["steer", "follow_up"]
MODES: tuple[Mode, ...] = ("steer", "follow_up")
ADD_MILK, ADD_BREAD = add_task("milk"), add_task("bread")


async def queue(user: User, run: str, text: str, mode: Mode) -> str:
    """Sends a message to a run that goes on, and returns the message's id."""
    return (await user.runs.send(CHAT, run, text, mode=mode))["input_id"]


async def unread(user: User) -> list[tuple[str, str, bool]]:
    """Each message that no model has read: its text, its mode, and whether it will still be read."""
    chat = await user.runs.get_chat(CHAT, limit=0)
    return [(one["text"], one["mode"], one["is_queued"]) for one in chat["unread"]]


async def last_said(model: ScriptedModel) -> list[str]:
    """The user's newest message in each request."""
    requests = await requests_to(model)
    said = [[one["content"] for one in body["messages"] if one["role"] == "user"] for body in requests]
    return [[text for text in texts if "<HiddenContext>" not in text][-1] for texts in said]


async def until_all_is_answered(user: User, stored: Stored) -> None:
    await until(lambda: stored.queued_messages(user.name) == 0 and "running" not in stored.run_statuses(user.name))


@asynccontextmanager
async def tool_waits(user: User, stored: Stored) -> AsyncIterator[str]:
    """A run whose first tool call waits until the block ends; then the answer is read to its end."""
    with stored.lock_table("tasks"):
        run = await start_run(user, CHAT, "add milk", until="tool_call")
        yield run
    await user.runs.read(CHAT, run)


async def test_steer_is_read_before_the_next_model_turn(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(ADD_MILK, ADD_BREAD, says("Both."))
    async with tool_waits(user, stored) as run:
        queued = await queue(user, run, "and bread", "steer")
        assert stored.queued_messages(user.name) == 1
    assert await last_said(model) == ["add milk", "and bread", "and bread"]
    assert stored.titles(user.name) == ["milk", "bread"]
    thread = await find_thread(user, CHAT)
    assert await list_texts(user, thread) == ["add milk", "and bread", "Both."]
    assert (await list_user_items(user, thread))[1]["id"] == queued
    assert stored.queued_messages(user.name) == 0
    assert await unread(user) == []


async def test_steers_are_read_in_the_order_in_which_they_were_sent(
    user: User, model: ScriptedModel, stored: Stored
) -> None:
    texts = [f"message {number}" for number in range(3)]
    await model.script(ADD_MILK, says("All."))
    async with tool_waits(user, stored) as run:
        for text in texts:
            await queue(user, run, text, "steer")
        stored.reverse_queue(user.name)
    shown = ["add milk", *reversed(texts), "All."]
    assert await list_texts(user, await find_thread(user, CHAT)) == shown, "whatever order the rows are stored in"


async def test_steer_does_not_start_the_interaction_again(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(ADD_MILK, says("Both."))
    async with tool_waits(user, stored) as run:
        await queue(user, run, "and bread", "steer")
    events = await user.runs.read(CHAT, run)
    assert names(events).count("interaction_started") == 1
    for number in filter(None, (event.number for event in events)):
        assert "interaction_started" not in names(await user.runs.read(CHAT, run, after=number))


@pytest.mark.parametrize("mode", MODES)
async def test_message_during_the_last_words_is_answered_after_them(
    mode: Mode, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(PAUSING, says("Eleven."))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    await queue(user, run, "go on", mode)
    await model.release()
    thread = await find_thread(user, CHAT)
    await until_all_is_answered(user, stored)
    assert await list_texts(user, thread) == ["count", SLOW_TEXT, "go on", "Eleven."]
    assert await last_said(model) == ["count", "go on"]


async def test_follow_ups_are_answered_one_after_the_other(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(ADD_MILK, says("Milk."), ADD_MILK, says("Second."), says("Third."))
    async with tool_waits(user, stored) as run:
        for text in ("once more", "third"):
            await queue(user, run, text, "follow_up")
    await until_all_is_answered(user, stored)
    shown = ["add milk", "Milk.", "once more", "Second.", "third", "Third."]
    assert await list_texts(user, await find_thread(user, CHAT)) == shown
    assert await last_said(model) == ["add milk", "add milk", "once more", "once more", "third"]
    assert stored.titles(user.name) == ["milk", "milk"], "the same call for another message is another call"


async def test_steer_drops_waiting_follow_ups(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(ADD_MILK, says("Milk, quickly."))
    async with tool_waits(user, stored) as run:
        waiting = await queue(user, run, "then bread", "follow_up")
        steered = await user.runs.send(CHAT, run, "quick", mode="steer")
        assert steered["dropped"] == [waiting]
        assert await unread(user) == [("quick", "steer", True)]
    assert await last_said(model) == ["add milk", "quick"]


async def test_queued_message_is_cancelled_or_sent_now(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(ADD_MILK, says("Milk."), says("Later."))
    async with tool_waits(user, stored) as run:
        never, now, _ = [await queue(user, run, text, "follow_up") for text in ("never", "now", "later")]
        assert await user.runs.drop(CHAT, run, never) == {"status": "dropped", "input_id": never}
        for _ in range(2):
            assert await user.runs.steer(CHAT, run, now) == {"status": "steering", "input_id": now}
        assert await unread(user) == [("now", "steer", True), ("later", "follow_up", True)]
    await until_all_is_answered(user, stored)
    assert await last_said(model) == ["add milk", "now", "later"]
    for act in (user.runs.drop, user.runs.steer):
        with pytest.raises(ApiError, match="already read") as refused:
            await act(CHAT, run, now)
        assert refused.value.status == 409
        with pytest.raises(ApiError) as refused:
            await act(CHAT, run, never)
        assert refused.value.status == 404
    assert await unread(user) == []


async def test_message_that_waits_for_a_later_run(user: User, model: ScriptedModel, stored: Stored) -> None:
    """It is found by the run that it was sent to."""
    await model.script(ADD_MILK, says("Milk."), HANGS)
    async with tool_waits(user, stored) as run:
        _, never, later = [await queue(user, run, text, "follow_up") for text in ("next", "never", "later")]
    await model.received_requests(3)  # the later run has begun: it would read a steer before its first request
    await user.runs.drop(CHAT, run, never)
    await user.runs.steer(CHAT, run, later)
    assert await unread(user) == [("later", "steer", True)]
    await user.runs.cancel(CHAT, (await user.runs.get_chat(CHAT, limit=0))["answering"])


async def test_message_names_tasks(user: User, model: ScriptedModel, stored: Stored) -> None:
    assert (await user.chatkit.http.post("/tasks", json={"title": "Buy milk"})).status_code == 201
    await model.script(pausing_answer("one ", "two"), says("Fine."))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    parts = [{"type": "text", "text": "complete "}, *({"type": "task", "task_id": number} for number in (1, 2))]
    await user.runs.send(CHAT, run, parts, mode="follow_up")
    [one] = (await user.runs.get_chat(CHAT, limit=0))["unread"]
    assert one["text"] == "complete @Buy milk @task 2 (not on the list)"
    titles = {"title": "Buy milk"}, {"title": "task 2 (not on the list)"}
    assert one["parts"] == [parts[0], *(part | title for part, title in zip(parts[1:], titles, strict=True))]
    await model.release()
    await until_all_is_answered(user, stored)
    assert await last_said(model) == ["count", "complete @1 @2"]


async def test_invalid_messages(user: User, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    place = f"/chats/{CHAT}/interactions/{run}/messages"
    steer = {"mode": "steer"}
    odd = [{"type": "task", "task_id": 0}], [{"type": "task"}], [{"type": "text", "text": " "}], [{}], [], 7
    bodies = (
        {"text": "x"},
        {"text": "x", "mode": "now"},
        {"text": " ", **steer},
        {},
        *({"text": one, **steer} for one in odd),
    )
    for body in bodies:
        assert (await user.runs.http.post(place, json=body)).status_code == 400
    body = {"text": "x", "mode": "steer"}
    for path in (f"/chats/{CHAT}/interactions/run_0/messages", f"/chats/another/interactions/{run}/messages"):
        assert (await user.runs.http.post(path, json=body)).status_code == 404
    assert (await new_user().runs.http.post(place, json=body)).status_code == 404
    assert stored.queued_messages(user.name) == 0
    await user.runs.cancel(CHAT, run)


@pytest.mark.parametrize("mode", MODES)
async def test_ended_run_reads_nothing(mode: Mode, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."))
    run = id_of(await user.runs.say(CHAT, "hello"))
    with pytest.raises(ApiError) as refused:
        await user.runs.send(CHAT, run, "and eggs", mode=mode)
    assert refused.value.status == 409
    assert await list_texts(user, await find_thread(user, CHAT)) == ["hello", "Hello."]
    assert stored.queued_messages(user.name) == 0


async def test_stop_drops_queued_messages(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS, says("Never."))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    await queue(user, run, "and then", "follow_up")
    await user.runs.cancel(CHAT, run)
    await user.runs.read(CHAT, run)
    assert stored.queued_messages(user.name) == 0
    assert await unread(user) == []
    assert stored.run_statuses(user.name) == ["cancelled"]
    assert len(await model.requests()) == 1


async def test_failed_run_leaves_queued_messages_unsent(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script({**PAUSING, "cut_after": 4}, says("Hello."))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    queued = await queue(user, run, "and then", "follow_up")
    await model.release()
    events = await user.runs.read(CHAT, run)
    assert events[-1].data["status"] == "FAILED"
    assert await unread(user) == [("and then", "follow_up", False)]
    thread = await find_thread(user, CHAT)
    await user.chatkit.stream(
        "threads.retry_after_item", thread_id=thread, item_id=(await list_user_items(user, thread))[0]["id"]
    )
    assert await last_said(model) == ["count", "count"], "nobody asked for it any more"
    with pytest.raises(ApiError, match="already ended"):
        await user.runs.steer(CHAT, run, queued)
    await user.runs.drop(CHAT, run, queued)
    assert await unread(user) == []


async def test_steer_reaches_a_sub_agent_of_another_process(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """The sub-agent reads it before its next model turn and keeps it; the assistant reads it after the sub-agent."""
    looks = calls(call("list_tasks"))
    await model.script(start_researcher("look"), looks, looks, says("Looked."), says("Fine."))
    with stored.lock_table("tasks"):
        run = await start_run(user, CHAT, "look it up")
        await model.received_requests(2)
        await until(stored.has_waiting_statements)
        await queue(new_user(user.name, backend=1), run, "quick", "steer")
    await user.runs.read(CHAT, run)
    assert [text.rpartition(" ")[2] for text in (await last_said(model))[2:]] == ["quick"] * 3


async def test_sub_agent_that_waited_for_an_approval_still_reads_the_steer(user: User, model: ScriptedModel) -> None:
    looks = {**calls(call("list_files")), "hold_after": 1}
    await model.script(start_coder("tidy up"), looks, calls(call("commit", message="m")), says("Tidy."), says("Fine."))
    run = await start_run(user, CHAT, "tidy up")
    await model.received_requests(2)
    await queue(user, run, "quick", "steer")
    await model.release()
    async with user.runs.events(CHAT, run) as events:
        approval = await anext(event.data["approval_id"] async for event in events if event.name == "approval_required")
    await user.runs.approve(CHAT, run, approval, approved=True)
    await user.runs.read(CHAT, run)
    assert [text.rpartition(" ")[2] for text in (await last_said(model))[2:]] == ["quick"] * 3


async def test_queue_has_a_limit(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    for number in range(20):
        await queue(user, run, str(number), "follow_up")
    with pytest.raises(ApiError) as refused:
        await queue(user, run, "one more", "follow_up")
    assert refused.value.status in (409, 429)
    assert stored.queued_messages(user.name) == 20
    await user.runs.cancel(CHAT, run)


async def test_queued_messages_count_against_the_limit_per_minute(
    services: Services, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(HANGS)
    async with user_at(services, LIMIT_RUNS_PER_MINUTE="2") as user:
        run = await start_run(user, CHAT, "count", until="answer_delta")
        await queue(user, run, "go on", "follow_up")
        with pytest.raises(ApiError) as refused:
            await queue(user, run, "one more", "steer")
        assert refused.value.status == 429
        await user.chatkit.delete_thread(await find_thread(user, CHAT))
        await until(lambda: "running" not in stored.run_statuses(user.name))
        with pytest.raises(ApiError) as refused:
            await user.runs.say("another", "hello")
        assert refused.value.status == 429, "they count after their deletion, too"


@pytest.mark.parametrize("mode", MODES)
async def test_retry_of_such_a_message_repeats_no_call(
    mode: Mode, user: User, model: ScriptedModel, stored: Stored
) -> None:
    """Where the product lets it be retried at all."""
    await model.script(ADD_MILK, *([says("Milk.")] if mode == "follow_up" else []), ADD_MILK, ADD_BREAD, says("All."))
    async with tool_waits(user, stored) as run:
        queued = await queue(user, run, "milk once more, and bread", mode)
    await until_all_is_answered(user, stored)
    assert sorted(stored.titles(user.name)) == ["bread", "milk", "milk"]
    thread = await find_thread(user, CHAT)
    first = (await list_user_items(user, thread))[0]["id"]
    for item in (queued, first):
        # What a follow-up asks for is no part of the answer to the message before it.
        again = [ADD_MILK] if item == first and mode == "follow_up" else [ADD_BREAD, ADD_MILK]
        await model.script(*again, says("All."))
        response = await user.chatkit.post("threads.retry_after_item", thread_id=thread, item_id=item)
        assert response.status_code in (200, 409)
        assert sorted(stored.titles(user.name)) == ["bread", "milk", "milk"]
        await model.reset()


@pytest.mark.parametrize("stack_name", ["approvals"])
@pytest.mark.parametrize("mode", MODES)
async def test_message_to_a_run_that_waits_rejects_the_call(
    mode: Mode, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(ADD_MILK, delete_tasks(1), says("As you like."))
    run = await start_run(user, CHAT, "delete it", until="approval_required")
    await until(lambda: "waiting" in stored.run_statuses(user.name))
    sent = await user.runs.send(CHAT, run, "no, keep it", mode=mode)
    await until(lambda: not {"waiting", "running"} & {*stored.run_statuses(user.name)})
    events = await user.runs.read(CHAT, run)
    assert "rejected" in names(events)
    assert "approved" not in names(events)
    assert stored.titles(user.name) == ["milk"]
    assert (await last_said(model))[-1] == "no, keep it"
    [interaction] = (await user.runs.get_chat(CHAT))["interactions"]
    [read] = interaction["steering_messages"]
    assert (read["input_id"], read["text"]) == (sent["input_id"], "no, keep it")
    assert read["parts"] == [{"type": "text", "text": "no, keep it"}]
    assert "next_interaction_id" not in events[-1].data
    assert (await list_texts(user, await find_thread(user, CHAT)))[-1] == "As you like."


async def test_unknown_tool_is_answered_before_a_steer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(calls(*ADD_MILK["tool_calls"], {"name": "fly", "arguments": {}}), says("Milk."))
    async with tool_waits(user, stored) as run:
        await queue(user, run, "quick", "steer")
    roles = [one["role"] for one in (await requests_to(model))[-1]["messages"]]
    assert roles[-4:] == ["tool", "tool", "user", "user"]


@pytest.mark.long(seconds=5)
@pytest.mark.parametrize("seed", range(2))
async def test_message_around_the_end_is_read_once(
    seed: int, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Whether it comes before the end or after it, in whichever process: each message is shown and answered once."""
    chance, processes = random.Random(seed), (user, new_user(user.name, backend=1))
    await model.script(says("Hello."))
    await user.runs.say(CHAT, "hello")
    thread, expected = await find_thread(user, CHAT), ["hello"]

    async def arrive(text: str) -> None:
        await asyncio.sleep(chance.uniform(0, 0.06))
        mode, by = chance.choice(MODES), chance.choice(processes)
        while True:
            run = (await by.runs.get_chat(CHAT, limit=0))["answering"]
            try:
                if run is None:
                    await by.runs.say(CHAT, text)
                    return
                queued = await by.runs.send(CHAT, run, text, mode=mode)
            except ApiError as refusal:
                if refusal.status != 409:
                    raise
            else:
                dropped.update(queued["dropped"])
                texts[queued["input_id"]] = text
                return

    for number in range(12):
        texts, dropped = dict[str, str](), set[str]()
        await model.script({"text": "one two", "token_delay": 0.01}, *[says("Yes.")] * 6)
        sent = [f"message {number}.{place}" for place in range(3)]
        first, before = f"go {number}", len(stored.runs(user.name))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(chance.choice(processes).runs.say(CHAT, first))
            # The model's next request may be a summary's.
            await until(lambda before=before: len(stored.runs(user.name)) > before)
            for text in sent:
                tasks.create_task(arrive(text))
        await until_all_is_answered(user, stored)
        await model.reset()
        expected += [first, *(text for text in sent if text not in {texts.get(one) for one in dropped})]
    shown = [text_of(item) for item in await list_user_items(user, thread)]
    assert sorted(shown) == sorted(expected)
    await model.script(says("Bye."))
    await user.runs.say(CHAT, "bye")
    read = [one["content"] for one in (await requests_to(model))[-1]["messages"] if one["role"] == "user"]
    assert [text for text in read if "<HiddenContext>" not in text] == [*shown, "bye"]
