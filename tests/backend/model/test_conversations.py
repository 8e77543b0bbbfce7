"""One conversation with each provider: tools, reasoning, odd ids, refusals, limits and faults."""

from itertools import pairwise
from typing import Any

import pytest

from backend.model.providers import PROFILES
from backend.settings import ProviderName
from tests.backend.completions import call_delta, check_pairs, chunk
from tests.backend.conftest import Backend, Rows
from tests.backend.model.talk import KEY, Talk, call, talking
from tests.chatkit_client import Answer
from tests.strict_provider import habits

# → temperature, effort, whether reasoning goes back
SENT: dict[ProviderName, tuple[float | None, str | None, bool]] = {
    "cerebras": (1.5, "low", True),
    "openai": (2.0, None, False),
    "ollama": (2.0, None, True),
    "anthropic": (None, None, False),
    "groq": (2.0, "low", False),
    "openrouter": (2.0, "low", True),
    "custom": (2.0, None, False),
}


@pytest.mark.parametrize("provider", SENT)
async def test_a_conversation_is_held_with_every_provider(backend: Backend, rows: Rows, provider: ProviderName) -> None:
    temperature, effort, replays = SENT[provider]
    async with talking(backend, provider) as talk:
        await check_all_tools(talk, rows)
        await check_odd_ids(talk, rows)
        await check_what_is_no_failure(talk)
        bodies = await talk.bodies()
        await check_faults(talk, provider)
        assert talk.strict.refused == []
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    for body in bodies:
        check_pairs(body["messages"])
        assert body["stream_options"] == {"include_usage": True}
        assert body[PROFILES[provider].max_tokens_field] == 1000
        assert (body.get("temperature"), body.get("reasoning_effort")) == (temperature, effort)
        assert len(body["tools"]) == 5
        assert body["tool_choice"] == "auto"
    replayed = [message["reasoning"] for message in bodies[-1]["messages"] if "reasoning" in message]
    assert replayed == (["Two things at once."] if replays else [])


async def check_all_tools(talk: Talk, rows: Rows) -> None:
    answer = await talk.say(
        "add a and b, then see to them",
        {
            "text": "Two at once.",
            "reasoning": "Two things at once.",
            "tool_calls": [call("add_task", title="a"), call("add_task", title="b")],
        },
        {"tool_calls": [call("list_tasks")]},
        {
            "tool_calls": [
                call("update_task", task_id=1, title="A"),
                call("complete_task", task_id=1),
                call("delete_task", task_id=2),
            ]
        },
        {"text": "Done.", "reasoning": "Good.", "reasoning_field": "reasoning_content", "usage": None},
    )
    assert talk.strict.refused == []
    assert answer.error is None
    assert answer.text == "Two at once.\nDone."
    assert rows("SELECT title, status FROM tasks") == [{"title": "A", "status": "completed"}]


async def check_odd_ids(talk: Talk, rows: Rows) -> None:
    none = [chunk(call_delta(index=0, name="add_task", arguments='{"title": "c"}')), chunk({}, "tool_calls")]
    again = [
        chunk(call_delta(index=0, id="0", name="add_task", arguments='{"title": "d"}')),
        chunk(call_delta(index=1, id="0", name="add_task", arguments='{"title": "e"}')),
        chunk({}, "tool_calls"),
    ]
    answer = await talk.say("add c, d and e", {"raw": none}, {"raw": again}, {"text": "Added."}, quoted_text="Done.")
    assert (answer.error, answer.text) == (None, "Added.")
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")] == ["A", "c", "d", "e"]


async def check_what_is_no_failure(talk: Talk) -> None:
    refusal = {"raw": [chunk({"refusal": "I will not"}), chunk({"refusal": " do that."}, "stop")]}
    answer = await talk.say("do something bad", refusal)
    assert (answer.error, answer.text) == (None, "I will not do that.")
    answer = await talk.say("count", {"text": "One, two, thr", "finish_reason": "length"})
    assert answer.text == "One, two, thr"
    assert "output limit" in answer.of("notice")[0]["message"]


async def check_faults(talk: Talk, provider: str) -> None:
    busy = {"status": 429, "body": habits.error(provider, f"Requests per minute exceeded for {KEY}", 429)}
    in_a_moment = {**busy, "headers": {"retry-after": "0.02"}}
    answer = await talk.say("hello", busy, in_a_moment, {"text": "Here I am."})
    assert (answer.error, answer.text) == (None, "Here I am.")
    assert [event["text"] for event in answer.of("progress_update")] == ["The model is busy, trying again…"] * 2

    answer = await talk.say("hello", {**busy, "headers": {"retry-after": "3600"}})
    assert "busy right now" in error(answer)["message"]

    answer = await talk.say("hello", {"raw": [chunk({"content": "Let me"}), habits.failing_midway(provider)]})
    assert (answer.text, error(answer)["allow_retry"]) == ("Let me", True)
    assert "service failed" in error(answer)["message"]

    answer = await talk.say("hello", {"text": "Half of it", "finish_reason": None})
    assert (answer.text, error(answer)["allow_retry"]) == ("Half of it", True)
    assert "cut off" in error(answer)["message"]
    assert KEY not in str(answer.events)

    answer = await talk.say("thank you", {"text": "You are welcome."})
    assert (answer.error, answer.text) == (None, "You are welcome.")
    check_pairs((await talk.bodies())[-1]["messages"])


def error(answer: Answer) -> dict[str, Any]:
    assert answer.error is not None
    return answer.error
