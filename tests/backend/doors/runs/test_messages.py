"""What is said to an interaction that goes on."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from client.connection import Refused
from client.runs import Event
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import calls, deleting, open_tasks, with_tasks
from tests.backend.slow_turns import SLOW
from tests.runs_client import Runs, id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long


def last_said(request: dict[str, Any]) -> str:
    return [message["content"] for message in request["body"]["messages"] if message["role"] == "user"][-1]


@pytest.mark.parametrize("mode", ["steer", "follow_up"])
async def test_a_message_is_read_by_the_interaction_that_goes_on(
    backend: Backend, model: ScriptedModel, rows: Rows, mode: Any
) -> None:
    await model.script(SLOW, {"text": " Eggs, too."})
    async with backend() as chat, Runs(chat.base_url) as runs:
        async with runs.interact("one", "count") as events:
            seen = [await anext(events)]
            queued = await runs.send("one", id_of(seen), "and eggs", mode=mode, key="k")
            assert await runs.send("one", id_of(seen), "and eggs", mode=mode, key="k") == queued
            seen += [event async for event in events]
        assert text_of(seen) == SLOW["text"] + " Eggs, too."
        assert names(seen).count("interaction_complete") == 1
        assert last_said((await model.finished_requests())[-1]) == "and eggs"
        stored = await runs.get_chat("one")
        assert len(stored["interactions"]) == 1
        assert stored["interactions"][0]["user_message"] == "count"
    said = rows("SELECT id FROM messages WHERE kind = 'user_message' ORDER BY seq")
    assert said[1:] == [{"id": queued["input_id"]}]


async def test_it_refuses_what_waits_and_the_interaction_goes_on(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(approvals=("delete_task",)) as chat, Runs(chat.base_url) as runs:
        thread = await with_tasks(chat, model, 1)
        await model.script(calls(deleting(1)), {"text": "Kept."})
        async with runs.interact(thread, "delete it") as events:
            seen = [event async for event in _until_asked(events)]
            await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'waiting'"))
            assert await runs.send(thread, id_of(seen), "no, keep it", mode="steer")
            seen += [event async for event in events]
    assert seen[-1].data["status"] == "COMPLETED"
    assert names(seen).index("rejected") < names(seen).index("answer")
    assert open_tasks(rows) == 1


async def _until_asked(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        if event.name == "approval_required":
            return


async def test_one_that_has_ended_reads_nothing(runs: Runs, rows: Rows) -> None:
    run = id_of(await runs.say("one", "hello"))
    for mode in ("steer", "follow_up"):
        with pytest.raises(Refused) as refused:
            await runs.send("one", run, "and eggs", mode=mode)
        assert refused.value.status == 409
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'user_message'")) == 1


@pytest.mark.parametrize("body", [{"text": "x"}, {"text": "x", "mode": "now"}, {"text": " ", "mode": "steer"}, {}])
async def test_what_is_no_message_is_refused(runs: Runs, body: Any) -> None:
    run = id_of(await runs.say("one", "hello"))
    assert (await runs.http.post(f"/chats/one/interactions/{run}/messages", json=body)).status_code == 400
