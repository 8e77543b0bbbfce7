"""The forms of schedule that the offline model understands, and what it answers when one is due."""

import json
from typing import Any

import httpx2
import pytest

from tests.mcp.calls import Tools
from tests.offline_model.conftest import NewConversation
from tests.offline_model.conversation import NAMES, NOTE, NOW, offer, said

MADE = "Made: every Friday at 16:00. The first time is Fri 2026-11-27 16:00, Europe/Berlin."


async def reply(client: httpx2.AsyncClient, *messages: dict[str, Any], tools: tuple[str, ...] = ()) -> dict[str, Any]:
    note = said(NOTE.format(f"{NOW:%a %Y-%m-%d %H:%M}, Europe/Berlin"))
    body = {"model": "any", "messages": [note, *messages], "tools": offer(*NAMES, *tools)}
    response = await client.post("/v1/chat/completions", json=body)
    return response.raise_for_status().json()["choices"][0]["message"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("every Friday at 16:00 summarise what I did", ("summarise what I did", "FREQ=WEEKLY;BYDAY=FR", "16:00")),
        ("Please every morning tell me what is open.", ("tell me what is open", "FREQ=DAILY", "09:00")),
        ("every day at 18:00 list what is overdue", ("list what is overdue", "FREQ=DAILY", "18:00")),
        ("tell me what is due today every Friday at 8", ("tell me what is due today", "FREQ=WEEKLY;BYDAY=FR", "08:00")),
    ],
)
async def test_forms(model_client: httpx2.AsyncClient, text: str, wanted: tuple[str, str, str]) -> None:
    answer = await reply(model_client, said(text), tools=("add_schedule",))
    [call] = answer["tool_calls"]
    assert call["function"]["name"] == "add_schedule"
    assert json.loads(call["function"]["arguments"]) == dict(zip(("text", "repeat", "time"), wanted, strict=True))
    for output, expected in ((MADE, MADE), ("The person refused this call: it was not made.", "Not done.")):
        result = {"role": "tool", "tool_call_id": call["id"], "content": output}
        assert (await reply(model_client, said(text), answer, result, tools=("add_schedule",)))["content"] == expected


async def test_without_the_tool_it_says_so(model_client: httpx2.AsyncClient) -> None:
    answer = await reply(model_client, said("every Friday at 16:00 summarise what I did"))
    assert "add_schedule" in answer["content"]


async def test_a_task_that_repeats_is_a_task(model_client: httpx2.AsyncClient) -> None:
    answer = await reply(model_client, said("every day at 18:00 take pills"), tools=("add_schedule",))
    assert [call["function"]["name"] for call in answer["tool_calls"]] == ["add_task"]


async def test_what_was_done(new_conversation: NewConversation, tools: Tools) -> None:
    await tools.add("milk", also=["bread"])
    await tools.complete(1)
    conversation = new_conversation()
    answer = await conversation.say("summarise what I did")
    assert "milk" not in answer, "the card below shows the tasks"
    assert "since last Monday (Mon 2026-11-16 to Mon 2026-11-23)" in answer, "a run each week leaves nothing out"
    [(name, arguments)] = conversation.calls
    assert (name, arguments["status"], arguments["done"]) == (
        "list_tasks",
        "completed",
        "Mon 2026-11-16..Mon 2026-11-23",
    )
