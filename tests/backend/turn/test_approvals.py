"""Calls that wait for their person's consent, over real sockets, with a real MCP server and PostgreSQL."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from backend.agents.assistant import MAX_STEPS
from backend.conversation.errors import NotFound
from backend.conversation.model_input import history
from backend.turn import answers
from backend.turn.waiting import decisions
from service.database import Pipeline, Statement
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import badge, call, calls, cards, decide, deleting, open_tasks, with_tasks
from tests.backend.widgets import component, replaced
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.waiting import until

TWELVE = tuple(range(1, 13))


async def test_a_call_waits_and_an_approval_streams_the_rest_of_the_turn(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE), text="I delete them."), {"text": "They are gone."})
    asking = await chat.say("delete all", thread)
    assert asking.error is None
    [card] = cards(asking)
    assert asking.events[-1]["item"]["id"] == card["id"]
    assert component(card["widget"], "Text")["value"] == "Delete 12 tasks?"
    assert "“task number 3” (3)" in json.dumps(card["widget"], ensure_ascii=False)
    assert open_tasks(rows) == 12
    [run] = rows(
        "SELECT id, status, outcome, usage->>'requests' AS requests FROM runs ORDER BY started_at DESC LIMIT 1"
    )
    assert (run["status"], run["outcome"], run["requests"]) == ("waiting", None, "1")

    rest = await decide(chat, card, approve=True)
    assert rest.error is None
    assert rest.text == "They are gone."
    assert rest.events[0]["type"] == "stream_options"
    first = next(event for event in rest.events if event["type"] == "thread.item.replaced")
    assert first["item"]["id"] == card["id"]
    assert badge(first["item"]) == "Approved"
    assert open_tasks(rows) == 0
    [after] = rows("SELECT status, outcome, usage->>'requests' AS requests FROM runs WHERE id = %s", run["id"])
    assert after == {"status": "ended", "outcome": "completed", "requests": "2"}, "usage adds up"
    requests = [request["body"]["messages"] for request in await model.finished_requests()]
    check_pairs(requests[-1])
    assert requests[-1][: len(requests[-2])] == requests[-2]
    again = await chat.say("thanks", thread)
    assert again.error is None
    last = (await model.finished_requests())[-1]["body"]["messages"]
    assert last[: len(requests[-1])] == requests[-1], "the next turn begins with the last request"


async def test_a_refusal_is_read_by_the_model_with_its_reason(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 11)
    await model.script(calls(deleting(*range(1, 12))), {"text": "I leave them."})
    [card] = cards(await chat.say("delete all", thread))
    rest = await decide(chat, card, approve=False, reason="  only the\nold ones ")
    assert rest.text == "I leave them."
    shown = replaced(rest)
    assert badge(shown) == "Refused"
    assert component(shown["widget"], "Caption")["value"] == "Reason: only the old ones"
    assert not shown["widget"].get("confirm")
    assert open_tasks(rows) == 11
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    assert "The person refused this call" in messages[-1]["content"]
    assert "“only the old ones”" in messages[-1]["content"]
    stored = [item for item in await chat.items(thread) if item["id"] == card["id"]]
    assert badge(stored[0]) == "Refused", "after a reload, too"
    assert [row["operation"] for row in rows("SELECT operation FROM task_calls")] == ["add"]


async def test_bulk_counts_what_the_same_answer_has_deleted_before(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 13)
    await model.script(
        calls(deleting(*range(1, 7)), deleting(7, 8, 9, 10), deleting(11)),
        calls(deleting(12)),
        {"text": "Done."},
    )
    asking = await chat.say("delete them", thread)
    [card] = cards(asking)
    assert component(card["widget"], "Text")["value"] == "Delete task 11?"
    assert open_tasks(rows) == 3, "the ten are deleted"
    again = await decide(chat, card, approve=True)
    [second] = cards(again)
    assert component(second["widget"], "Text")["value"] == "Delete task 12?"
    assert open_tasks(rows) == 2
    assert (await decide(chat, second, approve=True)).text == "Done."
    [run] = rows("SELECT usage->>'requests' AS requests FROM runs ORDER BY started_at DESC LIMIT 1")
    assert run["requests"] == "3"


async def test_what_was_refused_does_not_count(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)), calls(deleting(1, 2)), {"text": "Two are gone."})
    [card] = cards(await chat.say("delete them", thread))
    rest = await decide(chat, card, approve=False, reason="only the first two")
    assert (cards(rest), rest.text) == ([], "Two are gone.")
    assert open_tasks(rows) == 10


async def test_a_list_that_is_written_as_text_counts_as_the_tools_read_it(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(call("delete_task", task_id="1", also=json.dumps(TWELVE[1:]))), {"text": "Done."})
    [card] = cards(await chat.say("delete all", thread))
    assert open_tasks(rows) == 12
    await decide(chat, card, approve=True)
    assert open_tasks(rows) == 0


async def test_calls_that_need_no_consent_run_first_and_the_approved_ones_after_them_in_their_order(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as chat:
        thread = await with_tasks(chat, model, 3)
        wanted = (deleting(3), call("add_task", title="a"), deleting(1), call("add_task", title="b"), deleting(2))
        await model.script(calls(*wanted), {"text": "Done."})
        asking = await chat.say("go", thread)
        third, first, second = cards(asking)
        assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")][3:] == ["a", "b"]
        one = await decide(chat, second, approve=True)
        assert [event["type"] for event in one.events] == ["thread.item.replaced"]
        two = await decide(chat, first, approve=False)
        assert [event["type"] for event in two.events] == ["thread.item.replaced"]
        assert open_tasks(rows) == 5
        assert (await decide(chat, third, approve=True)).text == "Done."
    assert [row["id"] for row in rows("SELECT id FROM tasks ORDER BY id")] == [1, 4, 5]
    deleted = rows(
        "SELECT arguments->>'task_id' AS id, arguments FROM task_calls WHERE operation = 'delete' ORDER BY id"
    )
    assert len(deleted) == 2
    order = rows("SELECT task_id FROM task_changes WHERE after IS NULL ORDER BY id")
    assert [row["task_id"] for row in order] == [3, 2], "in the order in which the model wrote them"
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    outputs = [message["content"] for message in messages[-5:]]
    assert ["refused" in output for output in outputs] == [False, False, True, False, False]


async def test_always_asks_for_every_call_and_none_for_nothing(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("always",)) as chat:
        await model.script(calls(call("list_tasks"), call("add_task", title="milk")), {"text": "Done."})
        asking = await chat.say("add milk")
        looking, adding = cards(asking)
        assert component(looking["widget"], "Text")["value"] == "Look at your list?"
        assert component(adding["widget"], "Text")["value"] == "Add “milk”?"
        await decide(chat, looking, approve=True)
        assert (await decide(chat, adding, approve=True)).text == "Done."
        assert open_tasks(rows) == 1
    async with backend(approvals=("none",)) as chat:
        await model.script(calls(call("add_task", title="a", also=[f"t{n}" for n in range(12)])))
        await model.script(calls(deleting(*range(2, 14))), {"text": "Deleted."})
        assert (await chat.say("go")).text == "Deleted."


@pytest.mark.parametrize("arguments", ["", "{no json", "[1]"])
async def test_arguments_that_are_no_object_are_answered_to_the_model_and_nobody_is_asked(
    backend: Backend, model: ScriptedModel, rows: Rows, arguments: str
) -> None:
    broken = {"name": "delete_task", "arguments": arguments}
    await model.script(calls(broken, call("add_task", title="milk")), {"text": "I could not."})
    async with backend() as chat:
        answer = await chat.say("delete it")
    assert (cards(answer), answer.text) == ([], "I could not.")
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    assert len([message for message in messages if message["role"] == "tool"]) == 2
    assert open_tasks(rows) == 1
    assert rows("SELECT outcome FROM runs") == [{"outcome": "completed"}]


async def test_a_run_waits_for_a_day_and_goes_on_in_another_process(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend() as chat:
        thread = await with_tasks(chat, model, 12)
        await model.script(calls(call("add_task", title="kept"), deleting(*TWELVE)), {"text": "They are gone."})
        [card] = cards(await chat.say("delete all", thread))
    rows("UPDATE runs SET heartbeat_at = now() - interval '1 day' WHERE status = 'waiting'")
    async with backend() as other:
        await asyncio.sleep(1.2)  # the sweep of stale runs has looked
        assert [row["status"] for row in rows("SELECT status FROM runs WHERE outcome IS NULL")] == ["waiting"]
        rest = await decide(other, card, approve=True)
    assert rest.text == "They are gone."
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["kept"]
    kinds = [row["operation"] for row in rows("SELECT operation FROM task_calls ORDER BY id")]
    assert sorted(kinds) == ["add", "add", "delete"]


async def test_the_same_call_again_after_the_resume_is_another_call(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    """Its key counts the calls before the wait, which another process has made."""
    async with backend() as chat:
        thread = await with_tasks(chat, model, 12)
        await model.script(
            calls(call("add_task", title="knock"), deleting(*TWELVE)),
            calls(call("add_task", title="knock")),
            {"text": "Done."},
        )
        [card] = cards(await chat.say("go", thread))
    async with backend() as other:
        assert (await decide(other, card, approve=True)).text == "Done."
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["knock", "knock"]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
async def test_what_is_decided_is_decided(
    backend: Backend, model: ScriptedModel, rows: Rows, first: bool, second: bool
) -> None:
    async with backend() as chat, backend() as other:
        thread = await with_tasks(chat, model, 12)
        await model.script(calls(deleting(*TWELVE)), {"text": "Done."})
        [card] = cards(await chat.say("delete all", thread))
        assert (await decide(chat, card, approve=first)).text == "Done."
        for device in (chat, other):
            again = await decide(device, card, approve=second)
            assert [event["type"] for event in again.events] == ["thread.item.replaced", "error"]
            assert badge(replaced(again)) == ("Approved" if first else "Refused")
            assert (again.error or {})["message"] == "This was decided already."
        assert open_tasks(rows) == (0 if first else 12)
    assert len(rows("SELECT 1 FROM task_calls WHERE operation = 'delete'")) == int(first)


async def test_a_new_message_refuses_what_waits_and_is_answered(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)), {"text": "Milk is added."})
    [card] = cards(await chat.say("delete all", thread))
    answer = await chat.say("rather add milk", thread)
    assert answer.error is None
    assert answer.text == "Milk is added."
    shown = replaced(answer)
    assert (shown["id"], badge(shown)) == (card["id"], "Refused")
    assert component(shown["widget"], "Caption")["value"] == "Reason: The person wrote something else instead."
    asked, answered = rows("SELECT id, status, outcome, parent_run_id FROM runs ORDER BY started_at")[1:]
    assert (asked["status"], asked["outcome"]) == ("ended", "cancelled")
    assert answered["parent_run_id"] == asked["id"]
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    [output] = [message["content"] for message in messages if message["role"] == "tool"][1:]
    assert output == "This call was not made. The person wrote something else instead."
    late = await decide(chat, card, approve=True)
    assert (late.error or {})["message"] == "This was decided already."
    assert open_tasks(rows) == 12


async def test_of_several_the_one_that_was_approved_is_not_made_when_the_person_writes_something_else(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as chat:
        thread = await with_tasks(chat, model, 2)
        await model.script(calls(deleting(1), deleting(2)), {"text": "As you like."})
        first, second = cards(await chat.say("delete both", thread))
        await decide(chat, first, approve=True)
        answer = await chat.say("never mind", thread)
        shown = {event["item"]["id"]: badge(event["item"]) for event in answer.of("thread.item.replaced")}
        assert shown == {first["id"]: "Not done", second["id"]: "Refused"}
    assert open_tasks(rows) == 2
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_retry_refuses_what_waits_and_asks_anew(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)), calls(deleting(*TWELVE)), {"text": "Done."})
    asking = await chat.say("delete all", thread)
    [card] = cards(asking)
    again = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=asking.user_item_id)
    [second] = cards(again)
    assert second["id"] != card["id"]
    gone = await chat.post(
        "threads.custom_action", thread_id=thread, item_id=card["id"], action=card["widget"]["confirm"]["action"]
    )
    assert gone.status_code == 404, "it is not shown any more"
    assert (await decide(chat, second, approve=True)).text == "Done."
    assert open_tasks(rows) == 0
    assert [run["outcome"] for run in rows("SELECT outcome FROM runs ORDER BY started_at")][1:] == [
        "cancelled",
        "completed",
    ]


async def test_a_stop_ends_a_run_that_waits_at_once(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)), {"text": "All right."})
    [card] = cards(await chat.say("delete all", thread))
    turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
    assert await turns.stop_conversation(thread, user_id="local")
    assert not await turns.stop_conversation(thread, user_id="local")
    assert rows("SELECT status, outcome FROM runs ORDER BY started_at")[-1] == {
        "status": "ended",
        "outcome": "cancelled",
    }
    stored = next(item for item in await chat.items(thread) if item["id"] == card["id"])
    assert badge(stored) == "Refused"
    assert (await chat.say("go on", thread)).error is None
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_conversation_whose_run_waits_is_deleted_with_what_it_asked(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)))
    [card] = cards(await chat.say("delete all", thread))
    await chat.ask("threads.delete", thread_id=thread)
    assert rows("SELECT 1 FROM approvals") == rows("SELECT 1 FROM messages") == []
    assert {row["status"] for row in rows("SELECT status FROM runs")} == {"ended"}
    gone = await chat.post(
        "threads.custom_action", thread_id=thread, item_id=card["id"], action=card["widget"]["confirm"]["action"]
    )
    assert gone.status_code == 404


async def test_a_resumed_turn_counts_as_one_that_runs(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend(limit_running_turns=1) as chat:
        thread = await with_tasks(chat, model, 12)
        await model.script(calls(deleting(*TWELVE)))
        [card] = cards(await chat.say("delete all", thread))
        assert (await chat.say("hello")).error is None, "one that waits does not count"
        rows("INSERT INTO runs (id, user_id, status) VALUES ('run_other', 'local', 'running')")
        refused = await decide(chat, card, approve=True)
        assert "answers running" in (refused.error or {})["message"]
        assert rows("SELECT decision FROM approvals") == [{"decision": None}]
        rows("UPDATE runs SET status = 'ended', outcome = 'failed' WHERE id = 'run_other'")
        assert (await decide(chat, card, approve=True)).error is None
    assert open_tasks(rows) == 0


async def test_nothing_a_client_sends_is_taken_for_the_call(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)))
    [card] = cards(await chat.say("delete all", thread))
    elsewhere = (await chat.say("add milk")).items
    widget = next(item for item in elsewhere if item["type"] == "widget")
    action = card["widget"]["confirm"]["action"]
    other = await chat.post("threads.custom_action", thread_id=widget["thread_id"], item_id=widget["id"], action=action)
    assert other.status_code == 404, "of another conversation"
    for payload in (None, {}, {"approval_id": 1}, {"approval_id": "apr_0", "reason": "x" * 1001}):
        broken = {"type": action["type"], "payload": payload}
        answer = await chat.post("threads.custom_action", thread_id=thread, item_id=card["id"], action=broken)
        assert answer.status_code == 400
    unknown = {"type": action["type"], "payload": {"approval_id": "apr_0"}}
    answer = await chat.post("threads.custom_action", thread_id=thread, item_id=card["id"], action=unknown)
    assert answer.status_code == 404
    forged = {**action, "payload": {**action["payload"], "arguments": '{"task_id": 13}', "name": "complete_task"}}
    await chat.stream("threads.custom_action", thread_id=thread, item_id=card["id"], action=forged)
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk"]


async def test_a_stranger_decides_nothing(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)))
    await chat.say("delete all", thread)
    [asked] = rows("SELECT id, run_id FROM approvals")
    turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]

    async def work(turn: Any) -> None:
        raise AssertionError("nothing goes on")

    for wrong in (
        {"user_id": "bob"},
        {"conversation_id": "thr_0"},
        {"run_id": "run_0"},
    ):
        right = {"user_id": "local", "conversation_id": thread, "run_id": asked["run_id"]}
        with pytest.raises(NotFound):
            await turns.decide(work, asked["id"], approved=True, **{**right, **wrong})
    assert rows("SELECT decision FROM approvals") == [{"decision": None}]
    assert open_tasks(rows) == 12


async def test_a_stop_right_after_the_decision_leaves_no_call_without_an_output(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)))
    await chat.say("delete all", thread)
    [asked] = rows("SELECT id FROM approvals")
    parts = chat.app.state.parts  # pyright: ignore[reportAttributeAccessIssue]
    resume = parts.chatkit.server._answers.resume
    _, turn = await parts.turns.decide(resume, asked["id"], approved=True, user_id="local", conversation_id=thread)
    turn.stop()
    await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
    outputs = rows("SELECT item->'content'->'output'->>'output' AS text FROM messages WHERE kind = 'tool_output'")
    assert [row["text"] for row in outputs][1:] == [history.NOT_MADE]
    assert open_tasks(rows) == 12


async def test_a_stop_while_an_approved_call_runs_lets_it_finish_and_makes_no_other(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as chat:
        thread = await with_tasks(chat, model, 2)
        await model.script(calls(deleting(1), deleting(2)))
        first, second = cards(await chat.say("delete both", thread))
        await decide(chat, first, approve=True)
        rows("BEGIN")
        rows("LOCK TABLE tasks")
        action = second["widget"]["confirm"]["action"]
        clicked = {"type": action["type"], "payload": action["payload"]}
        async with chat.open("threads.custom_action", thread_id=thread, item_id=second["id"], action=clicked) as events:
            async for event in events:
                if event["type"] == "progress_update":
                    break
        await asyncio.sleep(0.1)
        rows("COMMIT")
        await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
        assert [row["id"] for row in rows("SELECT id FROM tasks")] == [2]
        asked = len(await model.finished_requests())
        assert asked == 3, "two for the tasks, one that asked; none after the stop"
        await chat.say("go on", thread)
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    assert [message["content"] for message in messages if message["role"] == "tool"][-1] == history.NOT_MADE


async def test_a_process_that_dies_in_an_approved_call_is_repeated_by_a_retry_without_doing_it_twice(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(deleting(*TWELVE)))
    asking = await chat.say("delete all", thread)
    [card] = cards(asking)
    rows("BEGIN")
    rows("LOCK TABLE tasks")
    deciding = asyncio.create_task(decide(chat, card, approve=True))
    await until(lambda: rows("SELECT 1 FROM pg_locks WHERE relation = 'tasks'::regclass AND NOT granted"))
    ended = "UPDATE runs SET status = 'ended', outcome = 'interrupted', ended_at = now() WHERE outcome IS NULL"
    await asyncio.to_thread(rows, ended)  # as who finds its lease run out
    rows("COMMIT")
    assert (await deciding).error is not None
    assert open_tasks(rows) == 0
    await model.script(calls(deleting(*TWELVE)), {"text": "They are gone."})
    again = await chat.stream("threads.retry_after_item", thread_id=thread, item_id=asking.user_item_id)
    [second] = cards(again)
    assert (await decide(chat, second, approve=True)).text == "They are gone."
    assert len(rows("SELECT 1 FROM task_calls WHERE operation = 'delete'")) == 1
    keys = rows("SELECT DISTINCT key FROM approvals")
    assert len(keys) == 1


async def test_a_turn_that_was_asked_to_stop_does_not_wait(
    backend: Backend, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopping(*_: Any, **__: Any) -> dict[int, str]:
        rows("UPDATE runs SET stop_requested = true WHERE outcome IS NULL")
        return {}

    async with backend(heartbeat_seconds=30, lease_seconds=90) as chat:
        thread = await with_tasks(chat, model, 12)
        monkeypatch.setattr(answers, "titles_now", stopping)
        await model.script(calls(deleting(*TWELVE)))
        assert cards(await chat.say("delete all", thread)) == []
        assert rows("SELECT outcome FROM runs ORDER BY started_at")[-1] == {"outcome": "cancelled"}
        assert rows("SELECT 1 FROM approvals") == []
        await chat.say("go on", thread)
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_turn_whose_wait_cannot_be_stored_fails_and_can_be_asked_again(
    backend: Backend, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> bool:
        raise OperationalError("UPDATE runs", {}, psycopg.OperationalError("gone"))

    async with backend(lease_seconds=3.0) as chat:  # for so long it is tried
        thread = await with_tasks(chat, model, 12)
        monkeypatch.setattr(decisions, "wait", away)
        await model.script(calls(deleting(*TWELVE), text="I delete them."))
        asking = await chat.say("delete all", thread)
        assert (asking.error or {})["allow_retry"] is True
        assert rows("SELECT outcome FROM runs ORDER BY started_at")[-1] == {"outcome": "failed"}
        await chat.say("go on", thread)
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


def unanswered(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let nobody say of the first wait that it was stored, and something happen before that is noticed."""
    wait, breaks = decisions.wait, iter([True])

    async def stored(*given: Any, **more: Any) -> bool:
        waits = await wait(*given, **more)
        if next(breaks, False):
            meanwhile()
            raise OperationalError("COMMIT", {}, psycopg.OperationalError("gone"))
        return waits

    monkeypatch.setattr(decisions, "wait", stored)


async def test_a_wait_that_was_stored_though_nobody_said_so_waits(
    chat: ChatKit, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away between the commit and its answer."""
    thread = await with_tasks(chat, model, 12)
    unanswered(monkeypatch, lambda: None)
    await model.script(calls(deleting(*TWELVE), text="I delete them."), {"text": "They are gone."})
    asking = await chat.say("delete all", thread)
    assert asking.error is None
    [card] = cards(asking)
    assert rows("SELECT status FROM runs ORDER BY started_at")[-1] == {"status": "waiting"}
    assert (await decide(chat, card, approve=True)).text == "They are gone."
    assert len(rows("SELECT 1 FROM approvals")) == 1


async def test_a_wait_that_is_stored_twice_ends_nothing_that_goes_on_since(
    chat: ChatKit, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person decides in another process before the first one is told that it was stored."""
    thread = await with_tasks(chat, model, 12)
    unanswered(monkeypatch, lambda: rows("UPDATE runs SET status = 'running' WHERE status = 'waiting'"))
    await model.script(calls(deleting(*TWELVE), text="I delete them."))
    assert (await chat.say("delete all", thread)).error is None
    assert rows("SELECT status, outcome FROM runs ORDER BY started_at")[-1] == {"status": "running", "outcome": None}


async def test_a_shutdown_leaves_what_waits(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend() as chat:
        thread = await with_tasks(chat, model, 12)
        await model.script(calls(deleting(*TWELVE)))
        await chat.say("delete all", thread)
        chat.app.state.parts.turns.shut_down()  # pyright: ignore[reportAttributeAccessIssue]
    assert rows("SELECT status FROM runs ORDER BY started_at")[-1] == {"status": "waiting"}


async def test_the_steps_before_the_wait_count(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = await with_tasks(chat, model, 12)
    looking = calls(call("list_tasks", query="x"))
    await model.script(*[looking] * (MAX_STEPS - 2), calls(deleting(*TWELVE)), looking, {"text": "never said"})
    [card] = cards(await chat.say("go", thread))
    rest = await decide(chat, card, approve=True)
    assert "too many steps" in (rest.error or {})["message"]
    assert open_tasks(rows) == 0
    used = rows("SELECT usage->>'requests' AS requests FROM runs ORDER BY started_at")[-1]
    assert used == {"requests": str(MAX_STEPS)}


async def test_buttons_take_back_what_was_done_before_and_after_the_wait(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(calls(call("add_task", title="kept"), deleting(*TWELVE)), {"text": "Done."})
    asking = await chat.say("go", thread)
    [added] = [item for item in asking.items if item["type"] == "widget" and not item["widget"].get("confirm")]
    rest = await decide(chat, cards(asking)[0], approve=True)
    redrawn = [event["item"] for event in rest.of("thread.item.replaced") if event["item"]["id"] == added["id"]]
    button = component(redrawn[-1]["widget"] if redrawn else added["widget"], "Button", "Undo all")
    await chat.stream("threads.custom_action", thread_id=thread, item_id=added["id"], action=button["onClickAction"])
    assert open_tasks(rows) == 12
    assert rows("SELECT 1 FROM tasks WHERE title = 'kept'") == []


async def test_a_turn_that_asks_nothing_sends_nothing_more(
    chat: ChatKit, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    send = Pipeline.send

    async def seeing(self: Pipeline, statement: Statement, **parameters: Any) -> Any:
        sent.append(statement.text)
        return await send(self, statement, **parameters)

    thread = await with_tasks(chat, model, 3)
    monkeypatch.setattr(Pipeline, "send", seeing)
    await model.script(calls(deleting(1, 2)), {"text": "Done."})
    assert (await chat.say("delete two", thread)).text == "Done."
    assert sent
    assert not [text for text in sent if "approvals" in text]


async def test_a_wait_has_its_line_and_tokens_are_counted_once(
    chat: ChatKit, model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    async def measured() -> dict[str, float]:
        lines = (await chat.http.get("/metrics")).text.splitlines()
        wanted = ("todo_turn_waits_total", 'todo_model_tokens_total{direction="input"}', "todo_turns_running")
        return {name: float(line.split()[-1]) for line in lines for name in wanted if line.startswith(f"{name} ")}

    thread = await with_tasks(chat, model, 12)
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    await model.script({**calls(deleting(*TWELVE)), "usage": usage}, {"text": "Done.", "usage": usage})
    before = await measured()
    caplog.set_level("INFO")
    [card] = cards(await chat.say("delete all", thread))
    between = await measured()
    await decide(chat, card, approve=True)
    after = await measured()
    assert [one["todo_turn_waits_total"] - before["todo_turn_waits_total"] for one in (between, after)] == [1, 1]
    tokens = 'todo_model_tokens_total{direction="input"}'
    assert [one[tokens] - before[tokens] for one in (between, after)] == [100, 200]
    assert before["todo_turns_running"] == between["todo_turns_running"] == after["todo_turns_running"]
    lines = [record.message for record in caplog.records if record.name == "backend.turn.reports"]
    assert lines == ["turn waits", "turn ended"]


async def test_two_cards_of_a_run_are_decided_at_once_in_two_processes(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as one, backend() as two:
        for n in range(8):
            await model.script(calls(call("add_task", title="a", also=["b"])), {"text": "Added."})
            thread = (await one.say("add both")).thread_id
            await model.script(calls(deleting(2 * n + 1), deleting(2 * n + 2)), {"text": "Done."})
            first, second = cards(await one.say("delete both", thread))
            both = await asyncio.gather(decide(one, first, approve=True), decide(two, second, approve=True))
            assert sorted(answer.text for answer in both) == ["", "Done."]
            assert open_tasks(rows) == 0
    assert len(rows("SELECT 1 FROM task_calls WHERE operation = 'delete'")) == 16


async def test_the_offline_model_asks_in_words_and_then_its_person_by_a_card(chat: ChatKit, rows: Rows) -> None:
    added = await chat.say("add " + ", ".join(f"task{number}" for number in range(1, 13)))
    thread = added.thread_id
    rows("UPDATE tasks SET status = 'completed', completed_at = now()")
    question = await chat.say("delete all completed tasks", thread)
    assert (cards(question), open_tasks(rows)) == ([], 12)
    asking = await chat.say("yes", thread)
    [card] = cards(asking)
    assert component(card["widget"], "Text")["value"] == "Delete 12 tasks?"
    rest = await decide(chat, card, approve=True)
    assert rest.error is None
    assert open_tasks(rows) == 0
    again = await chat.say("add milk", thread)
    assert "milk" in json.dumps(again.items)
