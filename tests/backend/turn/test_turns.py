"""The lease, stop, and one outcome, over real sockets."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from backend.conversation.acting import Acting
from backend.conversation.items import Hidden
from backend.conversation.rows import Storable
from backend.conversation.store_adapter import PostgresStore
from service.database import create_engine, system_transaction
from tests.backend.completions import chunk
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, adding, leave_running, read_text
from tests.chatkit_client import ChatKit, check_sequence, text_of, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until


async def test_a_second_message_is_answered_at_once_and_not_stored(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    first = await chat.say("hello")
    thread, asked = first.thread_id, first.user_item_id
    await model.script(SLOW)
    async with chat.open("threads.add_user_message", thread_id=thread, input=user_input("count")) as events:
        await read_text(events, at_least=4)
        before = rows("SELECT id FROM messages ORDER BY seq")
        busy = await chat.say("and another thing", thread)
        assert [event["type"] for event in busy.events] == ["error"]
        assert busy.error is not None
        assert "still answering" in busy.error["message"]
        retry = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=asked)
        assert retry.error == busy.error
        assert rows("SELECT id FROM messages ORDER BY seq") == before
        renamed = await chat.ask("threads.update", thread_id=thread, title="Renamed meanwhile")
        assert renamed["title"] == "Renamed meanwhile"
        await chat.ask("items.feedback", thread_id=thread, item_ids=[asked], kind="positive")
        assert [event async for event in events][-1]["type"] == "thread.item.done"
    assert (await chat.say("and another thing", thread)).error is None


async def test_stop_saves_what_was_shown_and_closes_the_models_stream(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        shown = await read_text(events, at_least=8)
    outcome = await until(lambda: rows("SELECT outcome, conversation_id FROM runs WHERE status = 'ended'"), seconds=1)
    assert outcome[0]["outcome"] == "cancelled"
    [request] = await model.finished_requests()
    assert request["outcome"] == "client_closed"
    stored = [item for item in await chat.items(outcome[0]["conversation_id"]) if item["type"] == "assistant_message"]
    assert len(stored) == 1
    assert text_of(stored[0]).startswith(shown)
    after = await chat.say("go on", outcome[0]["conversation_id"])
    assert after.error is None
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    assert text_of(stored[0]) in [message["content"] for message in messages]
    assert any("person stopped this answer" in message["content"] for message in messages)


async def test_stop_saves_what_was_shown_while_its_step_is_being_written(
    chat: ChatKit, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = PostgresStore.write

    async def never_the_step(store: PostgresStore, thread_id: str, items: Sequence[Storable], context: Acting) -> None:
        if any(isinstance(item, Hidden) and item.content["kind"] == "tool_calls" for item in items):
            await asyncio.sleep(60)
        await write(store, thread_id, items, context)

    monkeypatch.setattr(PostgresStore, "write", never_the_step)
    await model.script({"text": "one two", "tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]})
    async with chat.open("threads.create", input=user_input("add milk")) as events:
        assert await read_text(events, at_least=7) == "one two"
        async with asyncio.timeout(5):
            async for event in events:
                if event["type"] == "thread.item.updated" and event["update"]["type"].endswith("content_part.done"):
                    break
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
    kept = rows("SELECT item->'content'->0->>'text' AS text FROM messages WHERE kind = 'assistant_message'")
    assert kept == [{"text": "one two"}]
    assert rows("SELECT 1 FROM tasks") == []


async def test_stop_while_a_tool_runs_lets_it_finish_and_asks_the_model_nothing_more(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    async with adding(chat, model, rows, "milk"):
        pass
    await asyncio.sleep(0.1)
    assert rows("SELECT outcome FROM runs") == [{"outcome": None}]
    rows("COMMIT")
    await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended' AND outcome = 'cancelled'"))
    assert rows("SELECT title FROM tasks") == [{"title": "milk"}]
    kinds = [row["kind"] for row in rows("SELECT kind FROM messages ORDER BY seq")]
    assert kinds.count("tool_calls") == kinds.count("tool_output") == 1
    assert len(await model.finished_requests()) == 1


async def test_stop_waits_for_a_tool_only_so_long(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend(tool_wait_seconds=0.2) as chat:
        async with adding(chat, model, rows, "milk"):
            pass
        await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended'"), seconds=2)
        rows("COMMIT")
        thread = rows("SELECT id FROM conversations")[0]["id"]
        assert (await chat.say("hello", thread)).error is None
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    [output] = [message["content"] for message in messages if message["role"] == "tool"]
    assert "outcome of this call is unknown" in output


async def test_shutting_down_ends_every_turn_and_tells_its_reader(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with backend() as chat:
        async with chat.open("threads.create", input=user_input("count")) as events:
            await read_text(events, at_least=4)
            chat.app.state.parts.turns.shut_down()  # pyright: ignore[reportAttributeAccessIssue]
            last = [event async for event in events][-1]
        assert last["type"] == "error"
        assert last["allow_retry"] is True
    assert rows("SELECT outcome FROM runs") == [{"outcome": "interrupted"}]
    assert rows("SELECT 1 FROM messages WHERE kind = 'assistant_message'")


async def test_a_turn_that_begins_while_the_process_ends_is_ended_too(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    rows("BEGIN")
    await asyncio.to_thread(rows, "LOCK TABLE runs")  # in a thread: the heartbeat, in this one, may hold a row
    asking = asyncio.create_task(chat.say("count"))
    await until(lambda: rows("SELECT 1 FROM pg_locks WHERE relation = 'runs'::regclass AND NOT granted"))
    chat.app.state.parts.turns.shut_down()  # pyright: ignore[reportAttributeAccessIssue]
    rows("COMMIT")
    answer = await asking
    assert answer.error is not None
    assert "server had to end" in answer.error["message"]
    assert rows("SELECT outcome FROM runs") == [{"outcome": "interrupted"}]


async def test_a_stop_signal_reaches_a_turn_in_another_process(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with backend(heartbeat_seconds=30, lease_seconds=60) as runner, backend() as other:
        async with runner.open("threads.create", input=user_input("count")) as events:
            await read_text(events, at_least=4)
            thread = rows("SELECT id FROM conversations")[0]["id"]
            turns = other.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
            async with asyncio.timeout(1):
                assert await turns.stop_conversation(thread, user_id="local")
            assert rows("SELECT outcome, stop_requested FROM runs") == [
                {"outcome": "cancelled", "stop_requested": True}
            ]
        assert not await turns.stop_conversation(thread, user_id="local")


async def test_a_stop_signal_arrives_by_heartbeat_when_the_wake_up_is_lost(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "token_delay": 0.5})
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        rows("UPDATE runs SET stop_requested = true")
        await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))


async def test_the_lease_of_a_dead_process_is_taken_over(chat: ChatKit, rows: Rows) -> None:
    thread = (await chat.say("hello")).thread_id
    leave_running(rows, thread, silent="0.8 seconds", lease=1)
    assert (await chat.say("hello", thread)).error is not None
    await asyncio.sleep(0.3)
    assert (await chat.say("hello", thread)).error is None
    assert rows("SELECT status, outcome FROM runs WHERE id = 'run_dead'") == [
        {"status": "ended", "outcome": "interrupted"}
    ]


async def test_a_turn_that_lost_its_lease_writes_nothing_more(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    """As a process does that was paused for longer than its lease."""
    await model.script({**SLOW, "token_delay": 0.02})
    thread = ""
    async with chat.open("threads.create", input=user_input("count")) as events:
        async for event in events:
            if event["type"] == "thread.item.added":
                thread = event["item"]["thread_id"]
                # In a thread: the heartbeat, in this one, may hold the row.
                await asyncio.to_thread(rows, "UPDATE runs SET status = 'ended', outcome = 'interrupted'")
                break
        rest = [event async for event in events]
    assert rest[-1]["type"] == "error"
    assert [item["type"] for item in await chat.items(thread)] == ["user_message"]
    assert rows("SELECT outcome FROM runs") == [{"outcome": "interrupted"}]


async def test_deleting_a_conversation_stops_its_turn_first(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "token_delay": 0.3})
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        thread = rows("SELECT id FROM conversations")[0]["id"]
        await chat.ask("threads.delete", thread_id=thread)
        assert rows("SELECT 1 FROM conversations") == rows("SELECT 1 FROM messages") == []
        [kept] = rows("SELECT outcome, conversation_id, usage->>'model' AS model FROM runs")
        assert kept == {"outcome": "cancelled", "conversation_id": None, "model": "offline-rules"}, "the usage counts"
        rest = [event async for event in events]
        assert all(event["type"] != "error" or event["allow_retry"] for event in rest)
    assert (await model.finished_requests())[0]["outcome"] == "client_closed"
    assert (await chat.post("threads.get_by_id", thread_id=thread)).status_code == 404


async def test_two_processes_never_interleave_one_conversation(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend() as one, backend() as two:
        thread = (await one.say("hello")).thread_id
        answers = await asyncio.gather(
            *(chat.say(f"add task number {n}", thread) for n in range(6) for chat in (one, two))
        )
        accepted = [answer for answer in answers if answer.error is None]
        assert accepted
        assert all("still answering" in answer.error["message"] for answer in answers if answer.error)
    runs = [row["run_id"] for row in rows("SELECT run_id FROM messages ORDER BY seq")]
    assert len({*runs}) == 1 + len(accepted)
    changes = sum(one != other for one, other in itertools.pairwise(runs))
    assert changes == len(accepted), "the rows of one turn stand together"
    assert len(rows("SELECT 1 FROM tasks")) == len(accepted)


async def test_feedback_is_stored_with_its_run(chat: ChatKit, rows: Rows) -> None:
    answer = await chat.say("hello")
    await chat.ask("items.feedback", thread_id=answer.thread_id, item_ids=[answer.items[-1]["id"]], kind="negative")
    [row] = rows("SELECT m.feedback, r.outcome FROM messages m JOIN runs r ON r.id = m.run_id WHERE m.feedback <> ''")
    assert row == {"feedback": "negative", "outcome": "completed"}


@pytest.mark.parametrize("when", ["at once", "after the first byte"])
async def test_leaving_early_leaves_no_turn_behind(chat: ChatKit, rows: Rows, when: str) -> None:
    async with chat.open("threads.create", input=user_input("add milk")) as events:
        if when != "at once":
            await anext(events)
    await until(lambda: not rows("SELECT 1 FROM runs WHERE status = 'running'"))
    left = rows("SELECT outcome, (SELECT count(*) FROM messages) AS messages FROM runs")
    assert left == [] or left[0]["outcome"] in ("cancelled", "completed")
    assert left == [] or left[0]["messages"] > 0, "a conversation without a message is not kept"


@contextmanager
def refusing(rows: Rows, privilege: str) -> Iterator[None]:
    """A database that fails at one kind of statement."""
    rows(f"REVOKE {privilege} FROM todo_app")
    try:
        yield
    finally:
        rows(f"GRANT {privilege} TO todo_app")


async def test_a_database_that_refuses_in_mid_answer_closes_what_is_open_and_says_so(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "token_delay": 0.02})
    async with chat.open("threads.create", input=user_input("count")) as events:
        received = [await anext(events) for _ in range(4)]
        with refusing(rows, "INSERT ON messages"):
            received += [event async for event in events]
    check_sequence(received, created=True)
    assert received[-1]["type"] == "error"
    assert "Reference" in received[-1]["message"]
    assert [event["type"] for event in received].count("error") == 1
    assert rows("SELECT outcome FROM runs") == [{"outcome": "failed"}]


async def test_an_answer_that_the_database_refuses_is_not_quoted_in_the_log(
    chat: ChatKit, model: ScriptedModel, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    await model.script({"text": "Zwergspitz"})
    number = "(item->'content'->0->>'text')::int > 0"  # PostgreSQL's error quotes what is none
    rows(f"ALTER TABLE messages ADD CONSTRAINT odd CHECK (kind <> 'assistant_message' OR {number})")
    try:
        answer = await chat.say("hello")
    finally:
        rows("ALTER TABLE messages DROP CONSTRAINT odd")
    assert answer.error is not None
    assert "SQLSTATE 22P02" in caplog.text
    assert "Zwergspitz" not in caplog.text
    assert rows("SELECT outcome FROM runs") == [{"outcome": "failed"}]
    assert (await chat.items(answer.thread_id))[-1]["task"]["title"] == answer.error["message"]


async def test_an_outcome_that_could_not_be_written_is_written_when_the_database_is_back(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "token_delay": 0.01})
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        with refusing(rows, "UPDATE ON runs"):
            assert [event async for event in events], "the reader does not wait for the database"
            assert rows("SELECT status FROM runs") == [{"status": "running"}]
    await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended'"), seconds=1)
    assert rows("SELECT outcome FROM runs") != [{"outcome": "interrupted"}]


async def test_what_a_turn_used_counts_when_what_its_tool_said_is_not_stored(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    async with adding(chat, model, rows, "milk") as events:
        with refusing(rows, "INSERT ON messages"):
            rows("COMMIT")
            rest = [event async for event in events]
    assert rest[-1]["type"] == "error"
    [run] = rows("SELECT outcome, usage FROM runs")
    assert run["outcome"] == "failed"
    assert run["usage"]["requests"] == 1


async def test_turns_of_dead_processes_end_even_when_nobody_returns(backend: Backend, rows: Rows) -> None:
    async with backend(lease_seconds=1.0) as chat:
        thread = (await chat.say("hello")).thread_id
        leave_running(rows, thread, silent="1 day")
        await until(lambda: rows("SELECT 1 FROM runs WHERE id = 'run_dead' AND outcome = 'interrupted'"))
        await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'task'"))
        assert "The server had to end this answer" in (await chat.items(thread))[-1]["task"]["title"]


async def test_a_new_conversation_whose_message_was_not_stored_leaves_nothing(chat: ChatKit, rows: Rows) -> None:
    with refusing(rows, "INSERT ON messages"):
        response = await chat.post("threads.create", input=user_input("hello"))
    assert response.status_code == 503
    assert "Reference" in response.json()["error"]
    assert rows("SELECT 1 FROM conversations") == rows("SELECT 1 FROM runs") == []


@pytest.mark.parametrize(("how", "sentence"), [("stop", "person stopped"), ("shut down", "server had to end")])
async def test_the_model_is_told_who_ended_the_answer_before(
    backend: Backend, model: ScriptedModel, rows: Rows, how: str, sentence: str
) -> None:
    await model.script(SLOW)
    async with backend() as chat, chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        if how == "shut down":
            chat.app.state.parts.turns.shut_down()  # pyright: ignore[reportAttributeAccessIssue]
            _ = [event async for event in events]
    await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended'"))
    thread = rows("SELECT id FROM conversations")[0]["id"]
    async with backend() as chat:
        await chat.say("hello", thread)
    assert sentence in str((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_rename_in_mid_answer_is_not_undone(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script({"text": "a few words more", "token_delay": 0.02})
    async with chat.open("threads.create", input=user_input("first words")) as events:
        thread = (await anext(events))["thread"]["id"]
        await chat.ask("threads.update", thread_id=thread, title="Mine")
        _ = [event async for event in events]
    assert rows("SELECT title FROM conversations") == [{"title": "Mine"}]


async def test_two_thoughts_with_text_between_are_two_items_and_long_ones_are_not_sent_again_and_again(
    chat: ChatKit, model: ScriptedModel
) -> None:
    thought = [chunk({"reasoning": "hm " * 10}) for _ in range(400)]
    await model.script(
        {"raw": [*thought, chunk({"content": "One."}), *thought, chunk({"content": " Two."}), chunk({}, "stop")]}
    )
    answer = await chat.say("think")
    workflows = [item for item in answer.items if item["type"] == "workflow"]
    assert len({item["id"] for item in workflows}) == len(workflows) == 2
    assert sum(len(item["workflow"]["tasks"][0]["content"]) for item in workflows) == 400 * 30 * 2
    assert sum(len(str(event)) for event in answer.events) < 400_000
    stored = [item for item in await chat.items(answer.thread_id) if item["type"] == "workflow"]
    assert [item["id"] for item in stored] == [item["id"] for item in workflows]


async def test_a_statement_that_waits_for_ever_is_given_up(
    database_url: str,
) -> None:
    engine = create_engine(database_url)
    async with system_transaction(engine) as session:
        connection = await session.connection()
        assert (await connection.execute(text("SHOW statement_timeout"))).scalar() == "10s"
    await engine.dispose()
