"""A conversation that is summarised, by hand and by itself."""

from typing import Any

import pytest

from client.connection import Refused
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.runs_client import Runs, id_of, names, plain
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.long


async def before(model: ScriptedModel, said: str) -> list[dict[str, Any]]:
    """What the model was sent before a message, and the note of its time, without the instructions."""
    requests = [request["body"]["messages"] for request in await model.finished_requests()]
    return next(one for one in requests if one[-1]["content"] == said)[1:-2]


async def test_a_chat_is_summarised_when_its_person_asks(runs: Runs, model: ScriptedModel) -> None:
    for number in range(4):
        await runs.say("one", f"hello {number}")
    assert await runs.compact("one") == {"status": "compacted", "messages": 4}
    assert await runs.compact("one") == {"status": "nothing to compact", "messages": 0}
    chat = await runs.get_chat("one")
    last = chat["interactions"][-1]
    assert last["status"] == "COMPLETED"
    assert last["reason"] is None
    messages = last["final_agent_state"]["messages"]
    assert "Summary of the conversation so far" in messages[0]["content"]
    events = await runs.say("one", "and now?")
    assert names(events)[:3] == ["interaction_started", "compaction", "turn_start"]
    assert await before(model, "and now?") == messages


async def test_a_summary_is_told_by_who_reads_it_first_in_the_stream_and_later(runs: Runs, rows: Rows) -> None:
    told = [await runs.say("one", f"hello {number}") for number in range(4)]
    await runs.compact("one")
    told += [await runs.say("one", f"hello {number}") for number in range(4, 8)]
    await runs.compact("one")
    told.append(await runs.edit_to_its_end("one", id_of(told[6]), "rather this"))
    told.append(await runs.say("one", "and now?"))
    assert [n for n, events in enumerate(told) if "compaction" in names(events)] == [4]
    for events in told:
        assert (await runs.get_interaction("one", id_of(events)))["agent_events"] == plain(events)
    shown = (await runs.get_chat("one"))["interactions"]
    assert [one["agent_events"] for one in shown] == [plain(told[n]) for n in (0, 1, 2, 3, 4, 5, 8, 9)]
    rows("DELETE FROM run_events")
    rows("UPDATE runs SET ended_at = ended_at - interval '1 hour', followed = false")
    for events in told[3:5]:
        assert plain(await runs.read("one", id_of(events)))[1:] == plain(events)[1:]


async def test_the_state_keeps_to_the_window(backend: Backend) -> None:
    async with backend(history_tokens=400) as chat, Runs(chat.base_url) as runs:
        for number in range(8):
            await runs.say("one", f"{number} hello " + "and so on " * 20)
        await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
        state = (await runs.get_chat("one"))["interactions"][-1]["final_agent_state"]["messages"]
    told = "\n".join(message["content"] for message in state)
    assert "Summary of the conversation so far" in told
    assert "0 hello" not in told
    assert "7 hello" in told


async def test_a_chat_that_is_answering_is_not_summarised(runs: Runs, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with runs.interact("one", "count") as events:
        assert id_of([await anext(events)])
        with pytest.raises(Refused) as refused:
            await runs.compact("one")
        assert refused.value.status == 409


async def test_a_summary_that_is_asked_for_again_under_its_key_is_made_once(runs: Runs, rows: Rows) -> None:
    for number in range(4):
        await runs.say("one", f"hello {number}")
    assert await runs.compact("one", key="k") == await runs.compact("one", key="k")
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'summary'")) == 1
