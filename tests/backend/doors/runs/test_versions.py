"""Interactions that stand beside each other, and which of them is shown."""

from typing import Any

import pytest

from client.connection import Refused
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import ChatKit
from tests.runs_client import Runs, check, id_of, text_of
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.long


async def edit(runs: Runs, run: str, text: str, **more: Any) -> str:
    async with runs.edit("one", run, text, **more) as events:
        seen = [check(event) async for event in events]
    assert seen[-1].data["status"] == "COMPLETED"
    assert text_of(seen)
    return id_of(seen)


async def shown(runs: Runs) -> list[str]:
    return [one["id"] for one in (await runs.get_chat("one"))["interactions"]]


async def test_an_edit_stands_beside_what_it_replaces_and_either_can_be_shown(runs: Runs, rows: Rows) -> None:
    first, second, third = [id_of(await runs.say("one", f"add {name}")) for name in ("milk", "bread", "eggs")]
    edited = await edit(runs, second, "add butter")
    assert await shown(runs) == [first, edited]
    for run in (second, edited):
        assert (await runs.get_interaction("one", run))["siblings"] == [second, edited]
    assert (await runs.get_interaction("one", edited))["user_message"] == "add butter"
    assert await runs.branch("one", third) == {"chat_id": "one", "leaf": third}
    assert await shown(runs) == [first, second, third]
    assert await runs.branch("one", first) == {"chat_id": "one", "leaf": first}
    other = id_of(await runs.say("one", "add jam"))
    assert (await runs.get_interaction("one", other))["siblings"] == [second, edited, other]
    assert await runs.branch("one", None) == {"chat_id": "one", "leaf": None}
    assert await shown(runs) == []
    anew = id_of(await runs.say("one", "hello"))
    assert (await runs.get_interaction("one", anew))["siblings"] == [first, anew]
    assert len(rows("SELECT 1 FROM tasks")) == 5


async def test_the_state_is_that_of_the_interactions_own_path(
    runs: Runs, chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    first = id_of(await runs.say("one", "add milk"))
    second = id_of(await runs.say("one", "add bread"))
    before = {run: await runs.get_interaction("one", run) for run in (first, second)}
    edited = await edit(runs, second, "add butter")
    thread = (await runs.get_chats())["chats"][0]["chat_id"]
    [message] = rows("SELECT message_id FROM runs WHERE id = %s", edited)
    await chat.stream("threads.retry_after_item", thread_id=thread, item_id=message["message_id"])
    for run, stored in before.items():
        now = await runs.get_interaction("one", run)
        assert now["final_agent_state"] == stored["final_agent_state"]
        assert now["agent_events"] == stored["agent_events"]
    last = (await runs.get_chat("one"))["interactions"][-1]
    assert last["siblings"][:2] == [second, edited]
    await runs.say("one", "show all")
    requests = [request["body"]["messages"] for request in await model.finished_requests()]
    state = last["final_agent_state"]["messages"]
    assert next(one for one in requests if one[-1]["content"] == "show all")[1:-2] == state
    told = str(state)
    assert "add butter" in told
    assert "Added \"bread\"" not in told  # fmt: skip


async def test_an_edit_under_a_key_is_done_once(runs: Runs) -> None:
    run = id_of(await runs.say("one", "add milk"))
    assert await edit(runs, run, "add bread", key="k") == await edit(runs, run, "add bread", key="k")


async def test_what_is_not_shown_is_not_edited(runs: Runs) -> None:
    run = id_of(await runs.say("one", "add milk"))
    await edit(runs, run, "add bread")
    with pytest.raises(Refused, match="branch") as refused:
        await edit(runs, run, "add jam")
    assert refused.value.status == 409


async def test_an_interaction_whose_message_is_not_known_is_not_edited(runs: Runs, rows: Rows) -> None:
    run = id_of(await runs.say("one", "add milk"))
    rows("UPDATE runs SET message_id = NULL")
    with pytest.raises(Refused, match="branch") as refused:
        await edit(runs, run, "add bread")
    assert refused.value.status == 409
    assert len(rows("SELECT 1 FROM runs")) == 1


async def test_nothing_moves_while_the_chat_is_answering(backend: Backend, model: ScriptedModel) -> None:
    async with backend() as chat, Runs(chat.base_url) as runs:
        first = id_of(await runs.say("one", "hello"))
        await model.script(SLOW)
        async with runs.interact("one", "count") as events:
            await anext(events)
            for asked in (runs.branch("one", first), edit(runs, first, "add jam")):
                with pytest.raises(Refused) as refused:
                    await asked
                assert refused.value.status == 409
            assert text_of([event async for event in events]) == SLOW["text"]


async def test_what_is_not_there_is_not_shown(runs: Runs) -> None:
    run = id_of(await runs.say("one", "hello"))
    await runs.say("two", "hello")
    for chat, wanted in (("two", run), ("one", "run_0"), ("three", None)):
        with pytest.raises(Refused) as refused:
            await runs.branch(chat, wanted)
        assert refused.value.status == 404
