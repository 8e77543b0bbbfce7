"""Messages to a run that waits for its person's consent, or will."""

import asyncio
from typing import Any

import pytest

from backend.conversation.errors import LimitReached
from backend.conversation.items import Said
from backend.turn.inbox import NoRun, Queued
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import badge, call, calls, cards, decide, deleting, open_tasks, with_tasks
from tests.chatkit_client import Answer, ChatKit, text_of, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

DELETE_ALL = calls(deleting(*range(1, 13)))
SLOWLY = {"text": "word " * 20, "token_delay": 0.05}


async def tell(chat: ChatKit, thread: str, text: str, mode: str = "steer", **more: Any) -> Queued:
    """Say it as a door does that lets a run go on that waits."""
    parts = chat.app.state.parts  # pyright: ignore[reportAttributeAccessIssue]
    body = {"content": user_input(text)["content"], "quoted_text": None, "inference_options": {}}
    where = {"user_id": "local", "conversation_id": thread, **more}
    return await parts.inbox.add(Said(text=text, body=body), mode, resume=parts.chatkit.server._answers.resume, **where)


async def asked(chat: ChatKit, thread: str, text: str, *meanwhile: str) -> Answer:
    """The answer to a message, and while it is being said, further ones."""
    saying = asyncio.create_task(chat.say(text, thread))
    parts = chat.app.state.parts  # pyright: ignore[reportAttributeAccessIssue]
    await until(lambda: parts.turns._running)
    for one in meanwhile:
        await tell(chat, thread, one, "follow_up")
    return await saying


def last_run(rows: Rows) -> dict[str, Any]:
    return rows(
        "SELECT id, status, outcome, usage->>'requests' AS requests FROM runs "
        "WHERE conversation_id IS NOT NULL ORDER BY started_at DESC"
    )[0]


@pytest.mark.parametrize("mode", ["steer", "follow_up"])
async def test_a_message_refuses_what_waits_and_the_same_run_goes_on(
    chat: ChatKit, model: ScriptedModel, rows: Rows, mode: str
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(DELETE_ALL, {"text": "I keep them."})
    [card] = cards(await chat.say("delete all", thread))
    waiting = last_run(rows)
    for wrong in ({"run_id": "run_0"}, {"user_id": "mallory"}, {"conversation_id": "thr_0"}):
        with pytest.raises(NoRun):
            await tell(chat, thread, "keep them", mode, **wrong)
    told = await tell(chat, thread, "keep them", mode, run_id=waiting["id"])
    assert told.run_id == waiting["id"]
    await until(lambda: last_run(rows)["status"] == "ended")
    assert last_run(rows) == {**waiting, "status": "ended", "outcome": "completed", "requests": "2"}
    items = await chat.items(thread)
    assert [badge(item) for item in items if item["id"] == card["id"]] == ["Refused"]
    assert [text_of(item) for item in items if "content" in item][-2:] == ["keep them", "I keep them."]
    assert open_tasks(rows) == 12
    requests = [request["body"]["messages"] for request in await model.finished_requests()]
    check_pairs(requests[-1])
    assert "wrote something else instead" in requests[-1][-3]["content"]
    assert requests[-1][-1]["content"] == "keep them"
    with pytest.raises(NoRun):
        await tell(chat, thread, "too late")


async def test_what_was_approved_before_is_done_and_the_rest_refused(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as chat:
        thread = await with_tasks(chat, model, 3)
        await model.script(calls(deleting(1), deleting(2)), {"text": "One is gone."})
        first, _ = cards(await chat.say("delete two", thread))
        await decide(chat, first, approve=True)
        await tell(chat, thread, "not the other")
        await until(lambda: last_run(rows)["status"] == "ended")
    assert [row["id"] for row in rows("SELECT id FROM tasks ORDER BY id")] == [2, 3]
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


async def test_what_waits_in_the_inbox_is_answered_after_the_decision(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script({**DELETE_ALL, **SLOWLY}, {"text": "Gone."}, {"text": "Later."})
    [card] = cards(await asked(chat, thread, "delete all", "and then"))
    [unread] = (await chat.ask("threads.get_by_id", thread_id=thread))["unread"]
    assert unread["is_queued"], "its run goes on"
    rest = await decide(chat, card, approve=True)
    assert rest.text == "Gone.\nLater."
    assert last_run(rows)["outcome"] == "completed"
    assert rows("SELECT 1 FROM run_inputs WHERE taken_at IS NULL") == []


async def test_a_message_that_begins_another_run_leaves_it_unsent_and_a_stop_drops_it(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    for ending in ("say", "stop"):
        await model.script({**DELETE_ALL, **SLOWLY})
        await asked(chat, thread, "delete all", ending)
        if ending == "say":
            await chat.say("hello", thread)
        else:
            turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
            assert await turns.stop_conversation(thread, user_id="local")
        [unread] = (await chat.ask("threads.get_by_id", thread_id=thread))["unread"]
        assert (text_of(unread), unread["is_queued"]) == ("say", False)


async def test_a_follow_up_that_asks_goes_on_as_the_answer_that_it_was(
    chat: ChatKit, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its steps are counted from it on, and what it changed is taken back alone."""
    monkeypatch.setattr("backend.turn.answers.MAX_STEPS", 3)
    thread = await with_tasks(chat, model, 12)
    add = calls(call("add_task", title="milk"))
    await model.script({**add, **SLOWLY}, add, {"text": "Milk."}, DELETE_ALL, add, {"text": "Done."})
    [card] = cards(await asked(chat, thread, "add milk twice", "delete the others"))
    rest = await decide(chat, card, approve=True)
    assert (rest.error, rest.text) == (None, "Done.")
    assert open_tasks(rows) == 3, "none of the same calls was taken for another"
    made = rows("SELECT operation, batch FROM task_calls ORDER BY id")[1:]
    assert len({row["batch"] for row in made[:2]}) == len({row["batch"] for row in made[2:]}) == 1
    assert made[0]["batch"] != made[2]["batch"]
    said = [item for item in await chat.items(thread) if item["type"] == "user_message"]
    assert made[2]["batch"] == said[-1]["id"]


async def test_ten_messages_at_once_to_a_run_that_waits_are_all_read(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(DELETE_ALL, *[{"text": "Well."}] * 10)
    [card] = cards(await chat.say("delete all", thread))
    texts = [f"message {n}" for n in range(10)]
    results = await asyncio.gather(*(tell(chat, thread, text) for text in texts), return_exceptions=True)
    assert [one for one in results if isinstance(one, BaseException) and not isinstance(one, NoRun)] == []
    await until(lambda: last_run(rows)["status"] == "ended")
    told = {one.input_id for one in results if isinstance(one, Queued)}
    assert told
    shown = await chat.items(thread)
    assert {row["id"] for row in rows("SELECT id FROM run_inputs")} == told
    assert told <= {item["id"] for item in shown}
    assert [badge(item) for item in shown if item["id"] == card["id"]] == ["Refused"]
    check_pairs((await model.finished_requests())[-1]["body"]["messages"])


async def test_a_message_to_a_run_that_waits_is_read_however_many_follow_ups_wait_too(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script({**DELETE_ALL, "text": "word " * 20, "token_delay": 0.05}, {"text": "I keep them."})
    saying = asyncio.create_task(chat.say("delete all", thread))
    await until(lambda: chat.app.state.parts.turns._running)  # pyright: ignore[reportAttributeAccessIssue]
    for number in range(20):
        await tell(chat, thread, f"follow up {number}", "follow_up")
    [_] = cards(await saying)
    told = await tell(chat, thread, "keep them")
    await until(lambda: last_run(rows)["status"] == "ended")
    assert [text_of(item) for item in await chat.items(thread) if item["id"] == told.input_id] == ["keep them"]
    assert open_tasks(rows) == 12


async def test_where_too_much_is_to_be_read_already_nothing_is_refused(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 12)
    await model.script(DELETE_ALL, {"text": "I keep them."})
    [card] = cards(await chat.say("delete all", thread))
    waits = last_run(rows)["id"]
    rows(
        "INSERT INTO run_inputs (user_id, id, conversation_id, run_id, mode, said) SELECT 'local', 'inp_' || n, "
        f"'{thread}', '{waits}', 'steer', '{{}}' FROM generate_series(1, 20) AS n RETURNING 1"
    )
    with pytest.raises(LimitReached):
        await tell(chat, thread, "keep them")
    assert last_run(rows)["status"] == "waiting"
    assert [row["decision"] for row in rows("SELECT decision FROM approvals")] == [None]
    assert next(item for item in await chat.items(thread) if item["id"] == card["id"])["widget"] == card["widget"]
