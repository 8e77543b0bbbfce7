"""Calls that wait for their person's consent, over real sockets, with a real MCP server and PostgreSQL."""

import asyncio
import json
from typing import Any

import pytest

from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import badge, call, calls, cards, decide, deleting, open_tasks, with_tasks
from tests.backend.widgets import component, replaced
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel

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
    [run] = rows("SELECT id, status, outcome, usage->>'requests' AS requests FROM runs ORDER BY started_at DESC LIMIT 1")
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
