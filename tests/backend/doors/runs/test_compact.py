"""A conversation that is summarised, by hand and by itself."""

from typing import Any

import pytest

from client.connection import Refused
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.runs_client import Runs, id_of, names
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
    assert {"event": "compaction", "data": {"messages": 4}} in last["agent_events"]
    messages = last["final_agent_state"]["messages"]
    assert "Summary of the conversation so far" in messages[0]["content"]
    events = await runs.say("one", "and now?")
    assert "compaction" in names(events)
    assert await before(model, "and now?") == messages


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
