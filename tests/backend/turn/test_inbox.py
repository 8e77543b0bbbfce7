"""Messages to an answer that is running: a steer before the model's next request, a follow-up after the answer."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from backend.conversation import statements
from backend.conversation.errors import LimitReached
from backend.conversation.items import Said
from backend.conversation.runs import inbox
from backend.turn.inbox import NoRun
from service.database import Pipeline, Statement
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.now import without_now
from tests.backend.slow_turns import SLOW, leave_running, read_text
from tests.chatkit_client import Answer, ChatKit, text_of, user_input
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

ADD_MILK = {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}
ADD_BREAD = {"tool_calls": [{"name": "add_task", "arguments": {"title": "bread"}}]}


async def say_meanwhile(chat: ChatKit, thread: str, text: str, mode: str = "follow_up") -> Answer:
    metadata = {"while_running": mode}
    return await chat.stream("threads.add_user_message", thread_id=thread, input=user_input(text), metadata=metadata)


def queued(answer: Answer) -> dict[str, Any]:
    [event] = answer.events
    assert event["name"] == "todo.queued"
    return event["data"]


async def act(chat: ChatKit, thread: str, kind: str, input_id: str) -> dict[str, Any]:
    action = {"type": kind, "payload": {"input_id": input_id}}
    [event] = (await chat.stream("threads.custom_action", thread_id=thread, action=action)).events
    return event


@asynccontextmanager
async def calling(chat: ChatKit, rows: Rows, text: str, thread: str | None = None) -> AsyncIterator[Any]:
    """An answer whose tool waits until the block ends: the thread, and the answer, whole after the block."""
    answer = Answer()
    rows("BEGIN")
    await asyncio.to_thread(rows, "LOCK TABLE tasks")

    async def read() -> None:
        kind = "threads.add_user_message" if thread else "threads.create"
        where: dict[str, Any] = {"thread_id": thread} if thread else {}
        async with chat.open(kind, input=user_input(text), **where) as events:
            async for event in events:
                answer.events.append(event)

    reading = asyncio.create_task(read())
    await until(lambda: answer.of("progress_update"))
    yield answer
    rows("COMMIT")
    await reading


@asynccontextmanager
async def counting(chat: ChatKit, thread: str | None = None) -> AsyncIterator[Answer]:
    """An answer that is being said; whole after the block."""
    answer = Answer()
    where: dict[str, Any] = {"thread_id": thread} if thread else {}
    kind = "threads.add_user_message" if thread else "threads.create"
    async with chat.open(kind, input=user_input("count"), **where) as events:
        async for event in events:
            answer.events.append(event)
            if event["type"] == "thread.item.updated" and "delta" in event["update"]:
                break
        yield answer
        async for event in events:
            answer.events.append(event)


async def messages_sent(model: ScriptedModel) -> list[list[dict[str, Any]]]:
    sent = [request["body"]["messages"] for request in await model.finished_requests()]
    for messages in sent:
        check_pairs(messages)
    for one, next_one in itertools.pairwise(sent):
        assert next_one[: len(one)] == one, "each request is the beginning of the next"
    return sent


def said(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What the model reads of each message, without the notes of the time."""
    return [(one["role"], one.get("content") or "") for one in without_now(messages)]


async def test_a_steer_is_read_before_the_next_request_and_stays_at_its_place(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, ADD_BREAD, {"text": "Both."})
    async with calling(chat, rows, "add milk") as answer:
        steered = queued(await say_meanwhile(chat, answer.thread_id, "and bread", "steer"))
        assert rows("SELECT 1 FROM messages WHERE id = %s", steered["input_id"]) == [], "nobody has read it"
    assert answer.text == "Both."
    assert [item["id"] for item in answer.items if item["type"] == "user_message"] == [
        answer.user_item_id,
        steered["input_id"],
    ]
    first, second, third = await messages_sent(model)
    assert "and bread" not in str(first)
    assert said(second)[-1] == ("user", "and bread")
    assert [role for role, _ in said(third)] == ["system", "user", "assistant", "tool", "user", "assistant", "tool"]
    kinds = [row["kind"] for row in rows("SELECT kind FROM messages WHERE kind <> 'widget' ORDER BY seq")]
    assert kinds == [
        *("note", "user_message", "tool_calls", "tool_output"),
        *("note", "user_message", "tool_calls", "tool_output", "assistant_message"),
    ]
    await chat.say("thanks", answer.thread_id)
    await messages_sent(model)
    assert rows("SELECT mode, taken_at > created_at AS read, dropped_at FROM run_inputs") == [
        {"mode": "steer", "read": True, "dropped_at": None}
    ]


async def test_a_steer_that_comes_with_the_last_words_is_answered_in_the_same_turn(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW, {"text": "Eleven."})
    async with counting(chat) as answer:
        queued(await say_meanwhile(chat, answer.thread_id, "go on", "steer"))
    assert answer.text == f"{SLOW['text']}\nEleven."
    _, second = await messages_sent(model)
    assert said(second)[-2:] == [("assistant", SLOW["text"]), ("user", "go on")]
    [run] = rows("SELECT outcome, usage->>'requests' AS requests FROM runs WHERE conversation_id IS NOT NULL")
    assert run == {"outcome": "completed", "requests": "2"}
    items = await chat.items(answer.thread_id)
    assert [text_of(item) for item in items] == ["count", SLOW["text"], "go on", "Eleven."]


async def test_follow_ups_are_answered_one_after_the_other_when_the_answer_has_ended(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, {"text": "Milk."}, {"text": "Second."}, {"text": "Third."})
    async with calling(chat, rows, "add milk") as answer:
        for text in ("second", "third"):
            queued(await say_meanwhile(chat, answer.thread_id, text))
    assert answer.text == "Milk.\nSecond.\nThird."
    assert [said(messages)[-1][1] for messages in (await messages_sent(model))[2:]] == ["second", "third"]
    assert len(rows("SELECT 1 FROM runs WHERE conversation_id IS NOT NULL")) == 1
    shown = [text_of(item) for item in await chat.items(answer.thread_id) if "content" in item]
    assert shown == ["add milk", "Milk.", "second", "Second.", "third", "Third."]


async def test_a_steer_drops_the_follow_ups_that_wait_and_says_which(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, {"text": "Milk, quickly."})
    async with calling(chat, rows, "add milk") as answer:
        waiting = queued(await say_meanwhile(chat, answer.thread_id, "then bread"))
        steered = queued(await say_meanwhile(chat, answer.thread_id, "quick", "steer"))
        assert steered["overtaken"] == [waiting["input_id"]]
    assert "then bread" not in str(await messages_sent(model))
    assert answer.text == "Milk, quickly."


async def test_what_waits_can_be_taken_back_or_sent_now_until_it_is_read(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, {"text": "Milk."}, {"text": "Later."})
    async with calling(chat, rows, "add milk") as answer:
        thread = answer.thread_id
        never, now, later = [
            queued(await say_meanwhile(chat, thread, text))["input_id"] for text in ("never", "now", "later")
        ]
        assert (await act(chat, thread, "drop_input", never))["name"] == "todo.dropped"
        assert (await act(chat, thread, "send_input_now", now))["data"] == {
            "input_id": now,
            "mode": "steer",
            "overtaken": [],
        }
        unread = (await chat.ask("threads.get_by_id", thread_id=thread))["unread"]
        assert [(one["id"], one["mode"], one["is_queued"]) for one in unread] == [
            (now, "steer", True),
            (later, "follow_up", True),
        ]
        assert text_of(unread[0]) == "now"
    assert [said(messages)[-1][1] for messages in (await messages_sent(model))[1:]] == ["now", "later"]
    for kind in ("drop_input", "send_input_now"):
        assert "read this already" in (await act(chat, thread, kind, now))["message"]
    assert "unread" not in await chat.ask("threads.get_by_id", thread_id=thread)


@pytest.mark.parametrize("payload", [None, {}, {"input_id": 1}, {"input_id": "x" * 101}, {"input_id": None}])
async def test_an_action_on_what_waits_names_it(chat: ChatKit, payload: Any) -> None:
    thread = (await chat.say("hello")).thread_id
    for kind in ("drop_input", "send_input_now"):
        action = {"type": kind, "payload": payload}
        response = await chat.post("threads.custom_action", thread_id=thread, action=action)
        assert (response.status_code, "input_id" in response.json()["error"]) == (400, True)


async def test_a_word_that_is_no_mode_is_refused(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    asked = {"thread_id": thread, "input": user_input("x"), "metadata": {"while_running": "abort"}}
    assert (await chat.post("threads.add_user_message", **asked)).status_code == 400
    assert len(rows("SELECT 1 FROM runs WHERE conversation_id IS NOT NULL")) == 1


async def test_where_nothing_is_running_it_is_a_message_like_any_other(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    for mode in ("steer", "follow_up"):
        answer = await say_meanwhile(chat, thread, "add milk", mode)
        assert answer.text
    assert rows("SELECT 1 FROM run_inputs") == []
    assert (await chat.post("threads.add_user_message", thread_id="thr_0", input=user_input("x"))).status_code == 404


async def test_without_a_word_about_it_an_answer_that_is_running_is_busy(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(SLOW)
    async with counting(chat) as answer:
        busy = await chat.say("and this", answer.thread_id)
        assert "still answering" in (busy.error or {})["message"]


async def test_a_stop_drops_what_waits(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        thread = rows("SELECT id FROM conversations")[0]["id"]
        queued(await say_meanwhile(chat, thread, "and then"))
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
    assert rows("SELECT 1 FROM run_inputs WHERE dropped_at IS NULL") == []
    assert "unread" not in await chat.ask("threads.get_by_id", thread_id=thread)
    assert len(await model.finished_requests()) == 1


async def test_a_stop_between_an_answer_and_the_next_stops_the_next(
    chat: ChatKit, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
    end = inbox.end_if_empty

    async def stopping(pipeline: Pipeline, run_id: str, **more: Any) -> Any:
        turns._running[run_id].stop()
        return await end(pipeline, run_id, **more)

    await model.script(SLOW)
    async with counting(chat) as answer:
        queued(await say_meanwhile(chat, answer.thread_id, "and then"))
        monkeypatch.setattr(inbox, "end_if_empty", stopping)
    assert rows("SELECT outcome FROM runs WHERE conversation_id IS NOT NULL") == [{"outcome": "cancelled"}]
    assert len(await model.finished_requests()) == 1
    assert rows("SELECT 1 FROM run_inputs WHERE dropped_at IS NULL") == []
    assert answer.text == SLOW["text"]


async def test_what_an_answer_that_failed_did_not_read_is_kept_as_unsent(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "cut_after": 6})
    async with counting(chat) as answer:
        thread = answer.thread_id
        kept = queued(await say_meanwhile(chat, thread, "and then"))["input_id"]
    assert answer.error is not None
    [unread] = (await chat.ask("threads.get_by_id", thread_id=thread))["unread"]
    assert (unread["id"], unread["is_queued"], text_of(unread)) == (kept, False, "and then")
    assert (await chat.stream("threads.retry_after_item", thread_id=thread, item_id=answer.user_item_id)).error is None
    assert "and then" not in str(await model.finished_requests()), "nobody asked for it any more"
    assert "read this already" in (await act(chat, thread, "send_input_now", kept))["message"]
    assert (await act(chat, thread, "drop_input", kept))["name"] == "todo.dropped"
    assert "unread" not in await chat.ask("threads.get_by_id", thread_id=thread)


async def test_what_the_process_that_died_did_not_read_is_kept_as_unsent(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    leave_running(rows, thread, silent="0.9 seconds", lease=1)
    queued(await say_meanwhile(chat, thread, "and then"))
    await asyncio.sleep(0.2)
    assert (await chat.say("hello again", thread)).error is None
    [unread] = (await chat.ask("threads.get_by_id", thread_id=thread))["unread"]
    assert (text_of(unread), unread["is_queued"]) == ("and then", False)


async def test_a_steer_reaches_an_answer_in_another_process(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(ADD_MILK, {"text": "Quick."})
    async with (
        backend(heartbeat_seconds=30, lease_seconds=60) as runner,
        backend() as other,
        calling(runner, rows, "add milk") as answer,
    ):
        queued(await say_meanwhile(other, answer.thread_id, "quick", "steer"))
        [turn] = runner.app.state.parts.turns._running.values()  # pyright: ignore[reportAttributeAccessIssue]
        await until(lambda: turn.has_news, seconds=5)
    assert said((await messages_sent(model))[1])[-1] == ("user", "quick")


async def test_a_steer_whose_wake_up_is_lost_is_read_at_the_end(
    backend: Backend, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    await model.script(ADD_MILK, {"text": "Milk."}, {"text": "Quick."})
    async with backend(heartbeat_seconds=30, lease_seconds=60) as chat:
        turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        async with calling(chat, rows, "add milk") as answer:
            [turn] = turns._running.values()
            queued(await say_meanwhile(chat, answer.thread_id, "quick", "steer"))
            await until(lambda: turn.has_news)
            await asyncio.sleep(0.2)
            turn.has_news = False
    assert answer.text == "Milk.\nQuick."
    await messages_sent(model)


async def test_what_is_added_while_the_end_waits_for_it_is_answered(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    """The end of the run comes between the beginning and the commit of a transaction that adds to its inbox."""
    await model.script(SLOW, {"text": "Late."})
    async with backend(heartbeat_seconds=30, lease_seconds=60) as chat, counting(chat) as answer:
        where = rows("SELECT user_id, conversation_id, id AS run_id FROM runs")[0]
        body = user_input("late")["content"]
        await asyncio.to_thread(rows, "BEGIN")
        await asyncio.to_thread(rows, "SELECT 1 FROM runs WHERE status = 'running' FOR SHARE")
        rows(
            "INSERT INTO run_inputs (user_id, conversation_id, run_id, id, mode, said) "
            "VALUES (%s, %s, %s, 'msg_late', 'follow_up', %s)",
            *where.values(),
            Jsonb({"text": "late", "body": {"content": body, "inference_options": {}, "quoted_text": None}}),
        )
        await until(lambda: rows("SELECT 1 FROM pg_locks WHERE NOT granted"))
        rows("COMMIT")
    assert answer.text == f"{SLOW['text']}\nLate."
    assert rows("SELECT outcome FROM runs WHERE conversation_id IS NOT NULL") == [{"outcome": "completed"}]


async def test_an_answer_whose_end_is_written_later_leaves_what_it_did_not_read_unsent(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    """The database goes away as the end is written: what waits is not taken for answered, nor told as answered."""
    await model.script(SLOW)
    async with backend(heartbeat_seconds=30, lease_seconds=60) as chat, Runs(chat.base_url) as runs:
        async with runs.interact("counted", "count") as events:
            run = (await anext(events)).data["interaction_id"]
            await anext(event async for event in events if event.name == "answer_delta")
            waiting = await runs.send("counted", run, "late", mode="follow_up")
            await asyncio.to_thread(rows, "BEGIN")
            await asyncio.to_thread(rows, "SELECT 1 FROM runs WHERE status = 'running' FOR SHARE")
            await until(lambda: rows("SELECT 1 FROM pg_locks WHERE NOT granted"))
            rows("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
            rows("COMMIT")
            told = [event async for event in events]
        assert [event.name for event in told][-2:] == ["error", "interaction_complete"]
        assert told[-1].data["status"] == "FAILED"
        await until(lambda: not rows("SELECT 1 FROM runs WHERE status = 'running'"))
        stored = await runs.get_interaction("counted", run)
        assert stored["status"] == "FAILED"
        assert [one["data"]["content"] for one in stored["agent_events"] if one["event"] == "answer"] == [SLOW["text"]]
        [thread] = rows("SELECT id FROM conversations")
        assert [one["id"] for one in (await chat.get_thread(thread["id"]))["unread"]] == [waiting["input_id"]]


async def test_nobody_writes_into_the_answer_of_another_person(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    mailbox = chat.app.state.parts.inbox  # pyright: ignore[reportAttributeAccessIssue]
    await model.script(SLOW)
    async with counting(chat) as answer:
        message = Said(text="x", body=user_input("x"))
        where = {"user_id": "local", "conversation_id": answer.thread_id}
        for wrong in ({"user_id": "mallory"}, {"conversation_id": "thr_0"}, {"run_id": "run_0"}):
            with pytest.raises(NoRun):
                await mailbox.add(message, "steer", **{**where, **wrong})
        [run] = rows("SELECT id FROM runs WHERE conversation_id IS NOT NULL")
        added = await mailbox.add(message, "follow_up", run_id=run["id"], **where)
        assert (added.run_id, added.input_id) == (run["id"], message.id)
        for wrong in ({"user_id": "mallory"}, {"conversation_id": "thr_0"}):
            assert not await mailbox.waiting(**{**where, **wrong})
            with pytest.raises(Exception, match="read this already"):
                await mailbox.drop(message.id, **{**where, **wrong})


async def test_an_inbox_holds_no_more_than_it_may(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "hang": True})
    async with counting(chat) as answer:
        for n in range(inbox.MOST):
            queued(await say_meanwhile(chat, answer.thread_id, str(n)))
        full = await say_meanwhile(chat, answer.thread_id, "one more")
        assert "20 messages wait" in (full.error or {})["message"]
        turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        await turns.stop_conversation(answer.thread_id, user_id="local")


async def test_what_an_answer_is_told_counts_as_asked(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "hang": True})
    async with backend(limit_turns_per_minute=3) as chat, counting(chat) as answer:
        for n in range(2):
            queued(await say_meanwhile(chat, answer.thread_id, str(n)))
        refused = await say_meanwhile(chat, answer.thread_id, "one more")
        assert "3 times in a minute" in (refused.error or {})["message"]
        assert len(rows("SELECT 1 FROM run_inputs")) == 2
        mailbox = chat.app.state.parts.inbox  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(LimitReached):
            where = {"user_id": "local", "conversation_id": answer.thread_id}
            await mailbox.add(Said(text="x", body=user_input("x")), "steer", **where)
        turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        await turns.stop_conversation(answer.thread_id, user_id="local")


async def test_what_was_asked_and_told_counts_together_and_after_its_deletion(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "hang": True})
    async with backend(limit_turns_per_minute=3, limit_running_turns=1) as chat:
        async with counting(chat) as answer:
            for n in range(2):
                queued(await say_meanwhile(chat, answer.thread_id, str(n)))
            await chat.ask("threads.delete", thread_id=answer.thread_id)
        refused = await chat.say("hello")
        assert "3 times in a minute" in (refused.error or {})["message"]
        rows("UPDATE runs SET started_at = started_at - interval '61 seconds'")
        assert (await chat.say("hello")).error is None


async def test_the_same_call_for_a_follow_up_is_another_call(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(ADD_MILK, {"text": "Milk."}, ADD_MILK, {"text": "Milk again."})
    async with calling(chat, rows, "add milk") as answer:
        queued(await say_meanwhile(chat, answer.thread_id, "once more"))
    assert answer.text == "Milk.\nMilk again."
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk", "milk"]
    batches = [row["batch"] for row in rows("SELECT batch FROM task_calls ORDER BY id")]
    assert len({*batches}) == 2, "each answer can be taken back alone"


@pytest.mark.parametrize("mode", ["steer", "follow_up"])
async def test_answering_such_a_message_again_repeats_no_call(
    chat: ChatKit, model: ScriptedModel, rows: Rows, mode: str
) -> None:
    await model.script(ADD_MILK, *([{"text": "Milk."}] if mode == "follow_up" else []))
    await model.script(ADD_MILK, ADD_BREAD, {"text": "All."})
    async with calling(chat, rows, "add milk") as answer:
        second = queued(await say_meanwhile(chat, answer.thread_id, "milk once more, and bread", mode))["input_id"]
    tasks = rows("SELECT title FROM tasks")
    assert len(tasks) == 3
    for _ in range(2):
        await model.script(ADD_BREAD, ADD_MILK, {"text": "All."})
        again = await chat.stream("threads.retry_after_item", thread_id=answer.thread_id, item_id=second)
        assert again.error is None
        assert rows("SELECT title FROM tasks") == tasks
    await model.script(ADD_MILK, {"text": "Milk."})
    await chat.stream("threads.retry_after_item", thread_id=answer.thread_id, item_id=answer.user_item_id)
    assert rows("SELECT title FROM tasks") == tasks
    shown = [text_of(item) for item in await chat.items(answer.thread_id) if item["type"] == "user_message"]
    assert shown == ["add milk"]


async def test_a_steer_in_an_answer_to_a_steer_is_counted_from_the_first_message(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, ADD_BREAD, {"text": "Both."})
    async with calling(chat, rows, "add milk") as answer:
        thread = answer.thread_id
        steered = queued(await say_meanwhile(chat, thread, "and bread", "steer"))["input_id"]
    await model.script({**SLOW, "tool_calls": ADD_BREAD["tool_calls"]}, ADD_MILK, {"text": "Both and milk."})
    retried = asyncio.create_task(
        chat.stream("threads.retry_after_item", thread_id=thread, item_id=steered),
    )
    await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'running'"))
    deeper = queued(await say_meanwhile(chat, thread, "and milk once more", "steer"))["input_id"]
    assert (await retried).error is None
    assert sorted(row["title"] for row in rows("SELECT title FROM tasks")) == ["bread", "milk", "milk"]
    await model.script(ADD_MILK, {"text": "Both and milk."})
    await chat.stream("threads.retry_after_item", thread_id=thread, item_id=deeper)
    assert sorted(row["title"] for row in rows("SELECT title FROM tasks")) == ["bread", "milk", "milk"]


async def test_a_follow_up_has_steps_of_its_own_and_a_steer_has_not(
    chat: ChatKit, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.turn.answers.MAX_STEPS", 2)
    await model.script(ADD_MILK, {"text": "Milk."}, ADD_BREAD, {"text": "Bread."})
    async with calling(chat, rows, "add milk") as answer:
        queued(await say_meanwhile(chat, answer.thread_id, "and bread"))
    assert answer.text == "Milk.\nBread."
    await model.reset()
    await model.script(ADD_MILK, ADD_BREAD, {"text": "Never."})
    async with calling(chat, rows, "add milk", answer.thread_id) as answer:
        queued(await say_meanwhile(chat, answer.thread_id, "and bread", "steer"))
    assert "too many steps" in (answer.error or {})["message"]


async def test_a_tool_that_is_not_there_is_answered_before_a_steer(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    both = {"tool_calls": [*ADD_MILK["tool_calls"], {"name": "fly", "arguments": {}}]}
    await model.script(both, {"text": "Milk."})
    async with calling(chat, rows, "add milk and fly") as answer:
        queued(await say_meanwhile(chat, answer.thread_id, "quick", "steer"))
    await chat.say("thanks", answer.thread_id)
    await messages_sent(model)
    kinds = [row["kind"] for row in rows("SELECT kind FROM messages WHERE kind LIKE 'tool_%%' OR role = 'user'")]
    assert kinds[:5] == ["user_message", "tool_calls", "tool_output", "tool_output", "user_message"]


async def test_an_answer_to_which_nothing_is_said_never_looks(
    chat: ChatKit, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Statement] = []
    send = Pipeline.send

    async def seeing(self: Pipeline, statement: Statement, **parameters: Any) -> Any:
        sent.append(statement)
        return await send(self, statement, **parameters)

    monkeypatch.setattr(Pipeline, "send", seeing)
    await model.script(ADD_MILK, ADD_BREAD, {"text": "Both."})
    await chat.say("add milk and bread")
    assert inbox._TAKE not in sent
    assert [sent.count(one) for one in (statements._WRITE_ALONE, inbox._END)] == [1, 1], "only at the end"
    assert inbox._LOCK not in sent, "what is stored at the end locks, too"
